"""All settings of a Kafka 3.9.1 broker, one per line, in the order of Kafka's definition.
The settings for consumer groups (group.consumer.*), share groups (group.share.*) and dead letter queues
(errors.deadletterqueue.*), and their defaults, are those of Kafka 4.4. The settings group.coordinator.* also
accept the values of Kafka 4.4, and controller.quorum.* have its bounds. controller.quorum.auto.join.enable,
which Kafka 4.2 added, is reported only by nodes of a quorum.

Columns: name, type, default, importance, update mode (read-only: only at startup; per-broker and
cluster-wide: also by AlterConfigs, KIP-226; internal: read-only and never reported), effect, rule for values
(optional), and documentation (after ` # `). Rules: `[low,...,high]` bounds, either of which may be missing;
`-1|[...]` bounds or -1; `one-of:`; `any-case:`; `version` (a metadata version such as 3.9-IV0); `non-empty`.
The default `null` means no default, and `""` the empty string.

Effects: `works`; `listener`, which works and may be set for one listener, as listener.name.L.X; `stored`,
which is accepted, stored and reported, with a warning in the log; `unneeded`, like `stored` but without a
warning, for threads, buffers and Java libraries that this broker does not have.

The documentation states what the setting controls, its unit, and the effect of its default. It may be missing
for a setting without effect, and for the broker-wide default of a topic setting that has documentation.
"""

BROKER_TABLE = """
remote.log.storage.system.enable boolean false medium read-only stored
remote.log.storage.manager.impl.prefix string rsm.config. medium read-only stored non-empty
remote.log.metadata.manager.impl.prefix string rlmm.config. medium read-only stored non-empty
remote.log.storage.manager.class.name string null medium read-only stored non-empty
remote.log.storage.manager.class.path string null medium read-only stored
remote.log.metadata.manager.class.name string org.apache.kafka.server.log.remote.metadata.storage.TopicBasedRemoteLogMetadataManager medium read-only stored non-empty
remote.log.metadata.manager.class.path string null medium read-only stored
remote.log.metadata.manager.listener.name string null medium read-only stored non-empty
remote.log.metadata.custom.metadata.max.bytes int 128 low read-only stored [0,...]
remote.log.index.file.cache.total.size.bytes long 1073741824 low cluster-wide stored [1,...]
remote.log.manager.thread.pool.size int 10 medium read-only stored [1,...]
remote.log.manager.copier.thread.pool.size int -1 medium read-only stored -1|[1,...]
remote.log.manager.expiration.thread.pool.size int -1 medium read-only stored -1|[1,...]
remote.log.manager.task.interval.ms long 30000 low read-only stored [1,...]
remote.log.manager.task.retry.backoff.ms long 500 low internal stored [1,...]
remote.log.manager.task.retry.backoff.max.ms long 30000 low internal stored [1,...]
remote.log.manager.task.retry.jitter double 0.2 low internal stored [0,...,0.5]
remote.log.reader.threads int 10 medium read-only stored [1,...]
remote.log.reader.max.pending.tasks int 100 medium read-only stored [1,...]
log.local.retention.ms long -2 medium cluster-wide stored [-2,...]
log.local.retention.bytes long -2 medium cluster-wide stored [-2,...]
remote.log.manager.copy.max.bytes.per.second long 9223372036854775807 medium cluster-wide stored [1,...]
remote.log.manager.copy.quota.window.num int 11 medium read-only stored [1,...]
remote.log.manager.copy.quota.window.size.seconds int 1 medium read-only stored [1,...]
remote.log.manager.fetch.max.bytes.per.second long 9223372036854775807 medium cluster-wide stored [1,...]
remote.log.manager.fetch.quota.window.num int 11 medium read-only stored [1,...]
remote.log.manager.fetch.quota.window.size.seconds int 1 medium read-only stored [1,...]
remote.fetch.max.wait.ms int 500 medium cluster-wide stored [1,...]
zookeeper.connect string null high read-only works # ZooKeeper servers of the cluster, as HOST:PORT,HOST:PORT/CHROOT. Unset: the broker is standalone and stores its own metadata.
zookeeper.session.timeout.ms int 18000 high read-only works # Time in milliseconds without contact after which ZooKeeper ends the broker's session and the cluster treats the broker as failed.
zookeeper.connection.timeout.ms int null high read-only works # Maximum time in milliseconds to establish the first connection to ZooKeeper before startup is aborted. Unset: zookeeper.session.timeout.ms.
zookeeper.set.acl boolean false high read-only works # Whether nodes in ZooKeeper may be changed only by the identity that created them. false: any ZooKeeper client may change them.
zookeeper.max.in.flight.requests int 10 high read-only stored [1,...]
zookeeper.ssl.client.enable boolean false medium read-only works # Whether connections to ZooKeeper use TLS. false: connections are unencrypted.
zookeeper.clientCnxnSocket string null medium read-only works # Java class for ZooKeeper connections with TLS, accepted for compatibility. Only org.apache.zookeeper.ClientCnxnSocketNetty is valid.
zookeeper.ssl.keystore.location string null medium read-only works # File with the certificate and private key that the broker presents to ZooKeeper. Unset: no certificate is presented.
zookeeper.ssl.keystore.password password null medium read-only works # Password of the ZooKeeper key store or, with PEM, of the private key.
zookeeper.ssl.keystore.type string null medium read-only works # Format of the ZooKeeper key store: JKS, PKCS12 or PEM. Unset: detected from the content of the file.
zookeeper.ssl.truststore.location string null medium read-only works # File with the certificate authorities trusted for ZooKeeper. Unset: the authorities trusted by the operating system.
zookeeper.ssl.truststore.password password null medium read-only works # Password of the ZooKeeper trust store; ignored for PEM.
zookeeper.ssl.truststore.type string null medium read-only works # Format of the ZooKeeper trust store: JKS, PKCS12 or PEM. Unset: detected from the content of the file.
zookeeper.ssl.protocol string TLSv1.2 low read-only works # TLS version for ZooKeeper if zookeeper.ssl.enabled.protocols is unset: TLSv1.2 or TLSv1.3.
zookeeper.ssl.enabled.protocols list null low read-only works # TLS versions allowed for ZooKeeper: TLSv1.2, TLSv1.3 or both. Unset: the version in zookeeper.ssl.protocol.
zookeeper.ssl.cipher.suites list null low read-only works # Cipher suites allowed for connections to ZooKeeper, as Java or OpenSSL names. Unset: OpenSSL's defaults.
zookeeper.ssl.endpoint.identification.algorithm string HTTPS low read-only works # Verification of host names in ZooKeeper's certificate. HTTPS: the certificate must contain the host name in zookeeper.connect. Empty: host names are not verified.
zookeeper.ssl.crl.enable boolean false low read-only works # Whether ZooKeeper certificates are checked against certificate revocation lists. Not supported: true aborts startup.
zookeeper.ssl.ocsp.enable boolean false low read-only works # Whether the revocation of ZooKeeper certificates is checked with OCSP. Not supported: true aborts startup.
broker.id.generation.enable boolean true medium read-only works # Whether a broker without a broker.id obtains an ID from ZooKeeper. false: such a broker does not start.
reserved.broker.max.id int 1000 medium read-only works [0,...] # Highest broker.id that may be configured while ID generation is enabled; generated IDs are greater.
broker.id int -1 high read-only works # ID of this broker, unique in the cluster. -1: ZooKeeper generates an ID; without ZooKeeper, the ID is reserved.broker.max.id + 1.
message.max.bytes int 1048588 high cluster-wide works [0,...]
num.io.threads int 8 high cluster-wide unneeded [1,...]
num.replica.alter.log.dirs.threads int null high read-only unneeded
background.threads int 10 high cluster-wide unneeded [1,...]
request.timeout.ms int 30000 high read-only works # Timeout for requests to other brokers about transactions, groups and offsets, in milliseconds.
socket.connection.setup.timeout.ms long 10000 medium read-only stored
socket.connection.setup.timeout.max.ms long 30000 medium read-only stored
authorizer.class.name string "" low read-only works # Fully qualified class name of one of Kafka's authorizers, such as kafka.security.authorizer.AclAuthorizer, to enable the built-in authorizer. Empty: every request is allowed.
early.start.listeners string null high read-only stored
broker.rack string null medium read-only works # Rack or availability zone of the broker, used to spread replicas and to serve consumers from nearby replicas. Unset: the broker has no rack.
controlled.shutdown.max.retries int 3 medium read-only works # Maximum number of attempts to move leadership to other brokers. After the last attempt, the broker shuts down even if it still leads partitions.
controlled.shutdown.retry.backoff.ms long 5000 medium read-only works # Time in milliseconds between attempts to move leadership to other brokers at shutdown.
controlled.shutdown.enable boolean true medium read-only works # Whether a broker moves leadership to other brokers before it shuts down. false: new leaders are elected only after its session has ended.
delete.topic.enable boolean true high read-only works # Whether clients may delete topics. false: DeleteTopics fails with TOPIC_DELETION_DISABLED.
compression.type string producer high cluster-wide works one-of:uncompressed,zstd,lz4,snappy,gzip,producer
compression.gzip.level int -1 medium cluster-wide works -1|[1,...,9]
compression.lz4.level int 9 medium cluster-wide works [1,...,17]
compression.zstd.level int 3 medium cluster-wide works [-131072,...,22]
max.incremental.fetch.session.cache.slots int 1000 medium read-only works [0,...] # Maximum number of incremental fetch sessions. At the limit, a new session replaces an idle or smaller session; if no such session exists, the client fetches without a session.
fetch.max.bytes int 57671680 medium read-only works [1024,...] # Maximum size in bytes of a fetch response. The first batch is returned even if it is larger.
max.request.partition.size.limit int 2000 medium read-only works [1,...] # Maximum number of partitions in one DescribeTopicPartitions response. Clients request further partitions with a cursor.
unstable.api.versions.enable boolean false high internal stored
unstable.feature.versions.enable boolean false high internal stored
metadata.log.max.record.bytes.between.snapshots long 20971520 high read-only works [1,...] # Size in bytes of committed changes after which a node writes a new snapshot of the metadata.
metadata.log.max.snapshot.interval.ms long 3600000 high read-only works [0,...] # Time in milliseconds after which a node writes a new snapshot if there are new changes. 0: only their size counts.
process.roles list "" high read-only works one-of:broker,controller # Roles of this node in a cluster with a quorum: broker, controller, or both. Empty: a standalone broker, or a cluster with ZooKeeper. If zookeeper.connect is set, all settings of the quorum are ignored, unless zookeeper.metadata.migration.enable=true.
node.id int -1 high read-only works # ID of this node, unique in the cluster: a synonym for broker.id. Required if process.roles is set.
initial.broker.registration.timeout.ms int 60000 medium read-only stored
broker.heartbeat.interval.ms int 2000 medium read-only unneeded
broker.session.timeout.ms int 9000 medium read-only works # Time in milliseconds without a fetch of the metadata log after which the cluster treats a node of the quorum as failed.
controller.listener.names string null high read-only works # Names of the listeners for other nodes of the quorum, separated by commas. Connections to controllers use the first one. Required if process.roles is set.
sasl.mechanism.controller.protocol string GSSAPI high read-only works # SASL mechanism with which nodes authenticate to the controllers.
metadata.log.dir string null high read-only works # Directory of the metadata log (__cluster_metadata-0). Unset: the first log directory.
metadata.log.segment.bytes int 1073741824 high read-only works [12,...] # Size in bytes at which a new segment of the metadata log begins.
metadata.log.segment.min.bytes int 8388608 high internal stored [12,...]
metadata.log.segment.ms long 604800000 high read-only works # Age in milliseconds at which a new segment of the metadata log begins.
metadata.max.retention.bytes long 104857600 high read-only works # Size in bytes of the metadata log above which it and its snapshots are deleted, up to the latest snapshot. Negative: unlimited.
metadata.max.retention.ms long 604800000 high read-only works # Age in milliseconds of the oldest records above which the metadata log and its snapshots are deleted, up to the latest snapshot. Negative: unlimited.
metadata.max.idle.interval.ms int 500 low read-only unneeded [0,...]
server.max.startup.time.ms long 9223372036854775807 medium internal stored [0,...]
zookeeper.metadata.migration.enable boolean false high read-only works # Whether a broker with zookeeper.connect and process.roles is connected to ZooKeeper and to the quorum, so that the metadata can move from one to the other (kafka.compat.metadata.store). false: a broker with zookeeper.connect ignores the settings of the quorum.
eligible.leader.replicas.enable boolean false high read-only stored
zookeeper.metadata.migration.min.batch.size int 200 medium internal stored [1,...]
listeners string PLAINTEXT://:9092 high per-broker works # Addresses that the broker listens on, as NAME://HOST:PORT, separated by commas. By default, only clients on this machine can connect.
advertised.listeners string null high per-broker works # Addresses that the broker advertises to clients, in the format of listeners. Unset: each client receives the address to which it connected.
listener.security.protocol.map string SASL_SSL:SASL_SSL,PLAINTEXT:PLAINTEXT,SSL:SSL,SASL_PLAINTEXT:SASL_PLAINTEXT low per-broker works # Security protocol of each listener, as NAME:PROTOCOL. By default, listeners are named after their protocols.
control.plane.listener.name string null high read-only stored
socket.send.buffer.bytes int 102400 high read-only works # Size of the send buffers of client sockets (SO_SNDBUF), in bytes. -1: the operating system chooses the size.
socket.receive.buffer.bytes int 102400 high read-only works # Size of the receive buffers of client sockets (SO_RCVBUF), in bytes. -1: the operating system chooses the size.
socket.request.max.bytes int 104857600 high read-only works [1,...] # Maximum size in bytes of a request. The broker closes the connection of a client that sends a larger request.
socket.listen.backlog.size int 50 medium read-only stored [1,...]
max.connections.per.ip int 2147483647 medium cluster-wide works [0,...] # Maximum number of connections from one IP address. Additional connections are closed. The default is no limit.
max.connections.per.ip.overrides string "" medium cluster-wide works # Limits that replace max.connections.per.ip for individual addresses, as HOST:LIMIT,HOST:LIMIT. Empty: no exceptions.
max.connections int 2147483647 medium cluster-wide works [0,...] # Maximum number of open connections. At the limit, new clients wait until a connection closes. The default is no limit.
max.connection.creation.rate int 2147483647 medium cluster-wide works [0,...] # Maximum number of new connections per second. Additional connections wait. The default is no limit.
connections.max.idle.ms long 600000 medium read-only works # Time in milliseconds without a request after which a connection is closed.
connection.failed.authentication.delay.ms int 100 low read-only works [0,...] # Time in milliseconds by which the response to a failed authentication is delayed, to slow down password guessing.
queued.max.requests int 500 high read-only unneeded [1,...]
queued.max.request.bytes long -1 medium read-only works # Maximum memory in bytes for requests that are incomplete or waiting to be processed. At the limit, the broker stops reading from connections. -1: no limit.
num.network.threads int 3 high cluster-wide unneeded [1,...]
controller.socket.timeout.ms int 30000 medium read-only works # Timeout for requests between the controller and a broker, in milliseconds.
default.replication.factor int 1 medium read-only works # Default replication factor of new topics, including auto-created topics.
replica.lag.time.max.ms long 30000 high read-only works # Time in milliseconds after which a replica that lags behind the end of the leader's log is removed from the in-sync replicas.
replica.socket.timeout.ms int 30000 high read-only works # Time in milliseconds that a follower waits for a response from its leader before it reconnects.
replica.socket.receive.buffer.bytes int 65536 high read-only stored
replica.fetch.max.bytes int 1048576 medium read-only works [0,...] # Maximum size in bytes of the records of one partition in the response to a follower's fetch request. The first batch is returned even if it is larger.
replica.fetch.wait.max.ms int 500 high read-only works # Maximum time in milliseconds that the leader waits for replica.fetch.min.bytes before it responds to a follower.
replica.fetch.backoff.ms int 1000 medium read-only works [0,...] # Time in milliseconds that a follower waits before it retries a failed fetch of a partition.
replica.fetch.min.bytes int 1 high read-only works # Minimum number of bytes that the leader collects before it responds to a follower. 1: the leader responds as soon as a record arrives.
replica.fetch.response.max.bytes int 10485760 medium read-only works [0,...] # Maximum size in bytes of the response to a follower's fetch request. The first batch is returned even if it is larger.
num.replica.fetchers int 1 high cluster-wide works # Number of connections that a follower opens to each leader broker to fetch in parallel.
replica.high.watermark.checkpoint.interval.ms long 5000 high read-only works # Interval in milliseconds at which the high watermarks are written to disk.
fetch.purgatory.purge.interval.requests int 1000 medium read-only unneeded
producer.purgatory.purge.interval.requests int 1000 medium read-only unneeded
delete.records.purgatory.purge.interval.requests int 1 medium read-only unneeded
auto.leader.rebalance.enable boolean true high read-only works # Whether the controller periodically moves leadership back to preferred replicas. false: only kafka-leader-election moves it back.
leader.imbalance.per.broker.percentage int 10 high read-only works # Maximum percentage of a broker's preferred partitions that other brokers may lead. Above this percentage, the controller moves leadership back.
leader.imbalance.check.interval.seconds long 300 high read-only works [1,...] # Interval in seconds between the controller's checks for leader imbalance.
unclean.leader.election.interval.ms long 300000 medium internal stored [1,...]
unclean.leader.election.enable boolean false high cluster-wide works
security.inter.broker.protocol string PLAINTEXT medium read-only works one-of:PLAINTEXT,SSL,SASL_PLAINTEXT,SASL_SSL # Security protocol of the listener for traffic between brokers. Not allowed together with inter.broker.listener.name.
inter.broker.protocol.version string 3.9-IV0 medium read-only works version # Protocol between brokers, with ZooKeeper: that of the oldest Kafka version in the cluster, from 2.8 to 3.9, and the same on all brokers. Without ZooKeeper, brokers use the protocol of Kafka 3.9.
inter.broker.listener.name string null medium read-only works # Name of the listener for traffic between brokers. Unset: the listener selected by security.inter.broker.protocol if that is set, otherwise the first listener.
replica.selector.class string null medium read-only works # Class that selects the replica from which consumers fetch. org.apache.kafka.common.replica.RackAwareReplicaSelector: a replica in the consumer's rack. Unset: the leader.
group.min.session.timeout.ms int 6000 medium read-only works # Minimum session timeout of a group member, in milliseconds. Members with a shorter timeout are rejected.
group.max.session.timeout.ms int 1800000 medium read-only works # Maximum session timeout of a group member, in milliseconds. Members with a longer timeout are rejected.
group.initial.rebalance.delay.ms int 3000 medium read-only works # Time in milliseconds that the coordinator waits for more members after the first member joins an empty group. Use 0 in tests.
group.max.size int 2147483647 medium read-only works [1,...] # Maximum number of members of a group. Additional members are rejected. The default is no limit.
group.coordinator.rebalance.protocols list classic medium read-only stored one-of:consumer,classic,streams,share,unknown
group.coordinator.threads int 1 medium read-only unneeded [1,...]
group.coordinator.append.linger.ms int 10 medium read-only stored [-1,...]
group.coordinator.new.enable boolean false medium internal stored
offset.metadata.max.bytes int 4096 high read-only works # Maximum size of the metadata in an offset commit, in bytes.
offsets.load.buffer.size int 5242880 high read-only stored [1,...]
offsets.topic.replication.factor short 3 high read-only works [1,...] # Replication factor of __consumer_offsets. The topic cannot be created until the cluster has at least this many brokers. A standalone broker uses 1.
offsets.topic.num.partitions int 50 high read-only works [1,...] # Number of partitions of __consumer_offsets. Do not change it after the topic has been created.
offsets.topic.segment.bytes int 104857600 high read-only works [1,...] # Segment size of the topic __consumer_offsets, in bytes.
offsets.topic.compression.codec int 0 high read-only works # Compression codec of batches in __consumer_offsets. 0: none, 1: gzip, 2: snappy, 3: lz4, 4: zstd.
offsets.retention.minutes int 10080 high read-only works [1,...] # Time in minutes that a group's committed offsets are kept after its last member has left.
offsets.retention.check.interval.ms long 600000 high read-only works [1,...] # Interval in milliseconds between checks for expired offsets.
offsets.commit.timeout.ms int 5000 high read-only works [1,...] # Maximum time in milliseconds that an offset commit waits for the in-sync replicas before it fails.
offsets.commit.required.acks short -1 high read-only stored
group.consumer.session.timeout.ms int 45000 medium read-only works [1,...] # Session timeout of members of consumer groups, in milliseconds, unless the group overrides it with consumer.session.timeout.ms.
group.consumer.min.session.timeout.ms int 45000 medium read-only works [1,...] # Minimum session timeout that consumer groups may set, in milliseconds.
group.consumer.max.session.timeout.ms int 60000 medium read-only works [1,...] # Maximum session timeout that consumer groups may set, in milliseconds.
group.consumer.heartbeat.interval.ms int 5000 medium read-only works [1,...] # Interval in milliseconds between heartbeats of members of consumer groups, unless the group overrides it with consumer.heartbeat.interval.ms.
group.consumer.min.heartbeat.interval.ms int 5000 medium read-only works [1,...] # Minimum heartbeat interval that consumer groups may set, in milliseconds.
group.consumer.max.heartbeat.interval.ms int 15000 medium read-only works [1,...] # Maximum heartbeat interval that consumer groups may set, in milliseconds.
group.consumer.max.size int 2147483647 medium read-only works [1,...] # Maximum number of members of a group that uses the consumer protocol. Additional members are rejected. The default is no limit.
group.consumer.assignors list uniform,range medium read-only works one-of:uniform,range,org.apache.kafka.coordinator.group.assignor.UniformAssignor,org.apache.kafka.coordinator.group.assignor.RangeAssignor # Assignors that consumer groups may choose. A group without a preference uses the first assignor.
group.consumer.migration.policy string bidirectional medium read-only works any-case:DISABLED,DOWNGRADE,UPGRADE,BIDIRECTIONAL # Conversion of groups with members. UPGRADE: from the classic to the consumer protocol. DOWNGRADE: back to the classic protocol. BIDIRECTIONAL: both. DISABLED: neither.
group.consumer.assignment.interval.ms int 1000 medium cluster-wide works [0,...] # Minimum time in milliseconds between two assignments of a consumer group, unless the group overrides it with consumer.assignment.interval.ms.
group.consumer.min.assignment.interval.ms int 0 medium read-only works [0,...] # Minimum assignment interval that consumer groups may set, in milliseconds.
group.consumer.max.assignment.interval.ms int 15000 medium read-only works [0,...] # Maximum assignment interval that consumer groups may set, in milliseconds.
group.consumer.regex.refresh.interval.ms int 600000 medium internal works [10000,...] # Interval in milliseconds at which the regular expressions of consumer groups are matched against the topics again.
group.share.session.timeout.ms int 45000 medium read-only works [1,...] # Session timeout of members of share groups, in milliseconds, unless the group overrides it with share.session.timeout.ms.
group.share.min.session.timeout.ms int 45000 medium read-only works [1,...] # Minimum session timeout that share groups may set, in milliseconds.
group.share.max.session.timeout.ms int 60000 medium read-only works [1,...] # Maximum session timeout that share groups may set, in milliseconds.
group.share.heartbeat.interval.ms int 5000 medium read-only works [1,...] # Interval in milliseconds between heartbeats of members of share groups, unless the group overrides it with share.heartbeat.interval.ms.
group.share.min.heartbeat.interval.ms int 5000 medium read-only works [1,...] # Minimum heartbeat interval that share groups may set, in milliseconds.
group.share.max.heartbeat.interval.ms int 15000 medium read-only works [1,...] # Maximum heartbeat interval that share groups may set, in milliseconds.
group.share.max.size int 200 medium read-only works [1,...,1000] # Maximum number of members of a share group. Additional members are rejected.
group.share.assignors list simple medium read-only works one-of:simple,org.apache.kafka.coordinator.group.assignor.SimpleAssignor # Assignor of all share groups. There is only one.
group.share.assignment.interval.ms int 1000 medium cluster-wide works [0,...] # Minimum time in milliseconds between two assignments of a share group, unless the group overrides it with share.assignment.interval.ms.
group.share.min.assignment.interval.ms int 0 medium read-only works [0,...] # Minimum assignment interval that share groups may set, in milliseconds.
group.share.max.assignment.interval.ms int 15000 medium read-only works [0,...] # Maximum assignment interval that share groups may set, in milliseconds.
group.share.initialize.retry.interval.ms int 30000 low internal works [1,...] # Time in milliseconds after which the initialization of the state of share-partitions is attempted again, but at least offsets.commit.timeout.ms.
errors.deadletterqueue.auto.create.topics.enable boolean false medium cluster-wide works # Whether the dead letter topic of a share group is created if it does not exist (KIP-1191).
errors.deadletterqueue.topic.name.prefix string dlq. medium cluster-wide works # Prefix that the names of dead letter topics must have. Empty: every name is allowed.
log.cleaner.threads int 1 medium cluster-wide works [0,...] # Maximum number of logs that are compacted at the same time. 0: no log is compacted.
log.cleaner.io.max.bytes.per.second double 1.7976931348623157E308 medium cluster-wide works # Maximum number of bytes per second that all compactions together read and write. The default is no limit.
log.cleaner.dedupe.buffer.size long 134217728 medium cluster-wide works # Memory in bytes for deduplication, shared by all compactions. With more memory, each pass compacts more of a log.
log.cleaner.io.buffer.size int 524288 medium cluster-wide unneeded [0,...]
log.cleaner.io.buffer.load.factor double 0.9 medium cluster-wide works # Maximum fraction of the deduplication buffer that keys may fill in one compaction pass.
log.cleaner.backoff.ms long 15000 medium cluster-wide works [0,...] # Interval in milliseconds between checks for logs to compact.
log.cleaner.min.cleanable.ratio double 0.5 medium cluster-wide works [0,...,1]
log.cleaner.enable boolean true medium read-only works # Whether the broker compacts logs. false: topics with cleanup.policy=compact grow without limit.
log.cleaner.delete.retention.ms long 86400000 medium cluster-wide works [0,...]
log.cleaner.min.compaction.lag.ms long 0 medium cluster-wide works [0,...]
log.cleaner.max.compaction.lag.ms long 9223372036854775807 medium cluster-wide works [1,...]
num.partitions int 1 medium read-only works [1,...] # Default number of partitions of new topics, including auto-created topics.
log.dir string /tmp/kafka-logs high read-only works # Data directory if log.dirs is unset.
log.dirs string null high read-only works # Data directories, separated by commas. A new partition is placed in the directory with the fewest partitions. Unset: log.dir.
log.segment.bytes int 1073741824 high cluster-wide works [14,...]
log.roll.ms long null high cluster-wide works # Time in milliseconds after which a segment is closed even if it is not full. Unset: log.roll.hours.
log.roll.hours int 168 high read-only works [1,...] # Time in hours after which a segment is closed even if it is not full. log.roll.ms takes precedence.
log.roll.jitter.ms long null high cluster-wide works # Maximum random jitter in milliseconds that is subtracted from log.roll.ms. Unset: log.roll.jitter.hours.
log.roll.jitter.hours int 0 high read-only works [0,...] # Maximum random jitter in hours that is subtracted from log.roll.hours. log.roll.jitter.ms takes precedence.
log.retention.ms long null high cluster-wide works # Time in milliseconds that records are kept. -1: no limit. Unset: log.retention.minutes.
log.retention.minutes int null high read-only works # Time in minutes that records are kept; log.retention.ms takes precedence. Unset: log.retention.hours.
log.retention.hours int 168 high read-only works # Time in hours that records are kept. log.retention.ms and log.retention.minutes take precedence.
log.retention.bytes long -1 high cluster-wide works
log.retention.check.interval.ms long 300000 medium read-only works [1,...] # Interval in milliseconds between checks for segments to delete under the retention settings.
log.cleanup.policy list delete medium cluster-wide works one-of:compact,delete
log.index.size.max.bytes int 10485760 medium cluster-wide works [4,...]
log.index.interval.bytes int 4096 medium cluster-wide works [0,...]
log.flush.interval.messages long 9223372036854775807 high cluster-wide works [1,...]
log.segment.delete.delay.ms long 60000 high cluster-wide works [0,...]
log.flush.scheduler.interval.ms long 9223372036854775807 high read-only works # Interval in milliseconds between checks for logs to flush. Values below 1,000 count as 1,000, and values above 3,000 as 3,000. The configured value is also the default of log.flush.interval.ms.
log.flush.interval.ms long null high cluster-wide works # Time in milliseconds after which a record is flushed to disk (fsync). Unset: log.flush.scheduler.interval.ms.
log.flush.offset.checkpoint.interval.ms int 60000 high read-only works [0,...] # Interval in milliseconds at which recovery points are written to disk. After a crash, each log is checked from its recovery point.
log.flush.start.offset.checkpoint.interval.ms int 60000 high read-only works [0,...] # Interval in milliseconds at which the log start offsets are written to disk.
log.preallocate boolean false medium cluster-wide stored
num.recovery.threads.per.data.dir int 1 high cluster-wide unneeded [1,...]
auto.create.topics.enable boolean true high read-only works # Whether a topic is created when a client first requests it. false: the client receives UNKNOWN_TOPIC_OR_PARTITION.
min.insync.replicas int 1 high cluster-wide works [1,...]
log.message.format.version string 3.0-IV1 medium read-only unneeded version
log.message.timestamp.type string CreateTime medium cluster-wide works one-of:CreateTime,LogAppendTime
log.message.timestamp.difference.max.ms long 9223372036854775807 medium cluster-wide works [0,...]
log.message.timestamp.before.max.ms long 9223372036854775807 medium cluster-wide works [0,...]
log.message.timestamp.after.max.ms long 9223372036854775807 medium cluster-wide works [0,...]
create.topic.policy.class.name class null low read-only stored
alter.config.policy.class.name class null low read-only stored
log.message.downconversion.enable boolean true low cluster-wide works
log.dir.failure.timeout.ms long 30000 low read-only stored [1,...]
log.initial.task.delay.ms long 30000 low internal works [0,...] # Time in milliseconds between startup and the first retention check.
group.share.enable boolean false medium internal stored
group.share.delivery.count.limit int 5 medium read-only works [2,...,10] # Maximum number of deliveries of a record to a share group, unless the group overrides it with share.delivery.count.limit.
group.share.min.delivery.count.limit int 2 medium read-only works [2,...,5] # Minimum number of deliveries that share groups may set as their limit.
group.share.max.delivery.count.limit int 10 medium read-only works [5,...,25] # Maximum number of deliveries that share groups may set as their limit.
group.share.record.lock.duration.ms int 30000 medium read-only works [1000,...,3600000] # Time in milliseconds after which an acquired record becomes available again, unless the share group overrides it with share.record.lock.duration.ms.
group.share.min.record.lock.duration.ms int 15000 medium read-only works [1000,...,30000] # Minimum lock duration that share groups may set, in milliseconds.
group.share.max.record.lock.duration.ms int 60000 medium read-only works [30000,...,3600000] # Maximum lock duration that share groups may set, in milliseconds.
group.share.partition.max.record.locks int 2000 medium read-only works [100,...,10000] # Maximum number of records in flight in a share-partition, unless the group overrides it with share.partition.max.record.locks.
group.share.min.partition.max.record.locks int 100 medium read-only works [100,...,2000] # Minimum number of records in flight that share groups may set as their limit.
group.share.max.partition.max.record.locks int 4000 medium read-only works [2000,...,10000] # Maximum number of records in flight that share groups may set as their limit.
group.share.max.share.sessions int 2000 medium read-only works [1,...] # Maximum number of share sessions of a broker. Additional sessions are rejected.
share.fetch.purgatory.purge.interval.requests int 1000 medium read-only unneeded
group.share.persister.class.name string org.apache.kafka.server.share.persister.DefaultStatePersister medium internal stored
group.share.dlq.manager.class.name string org.apache.kafka.server.share.dlq.DefaultShareGroupDLQManager medium internal stored
group.share.max.groups short 10 medium read-only stored [1,...,100]
share.coordinator.state.topic.num.partitions int 50 high read-only works [1,...] # Number of partitions of __share_group_state. Do not change it after the topic has been created.
share.coordinator.state.topic.replication.factor short 3 high read-only works [1,...] # Replication factor of __share_group_state. The topic cannot be created until the cluster has at least this many brokers. A standalone broker uses 1.
share.coordinator.state.topic.min.isr short 2 high read-only works [1,...] # Minimum number of in-sync replicas (min.insync.replicas) of __share_group_state.
share.coordinator.state.topic.segment.bytes int 104857600 high read-only works [1,...] # Segment size of the topic __share_group_state, in bytes.
share.coordinator.state.topic.compression.codec int 0 high read-only works # Compression codec of batches in __share_group_state. 0: none, 1: gzip, 2: snappy, 3: lz4, 4: zstd.
share.coordinator.state.topic.prune.interval.ms int 300000 low internal works [1,...] # Interval in milliseconds between deletions of the records in __share_group_state that are no longer needed.
share.coordinator.snapshot.update.records.per.snapshot int 500 medium read-only works [0,...,500] # Number of changes to a share-partition between two snapshots of its whole state in __share_group_state.
share.coordinator.cold.partition.snapshot.interval.ms int 300000 low internal works [1,...] # Interval in milliseconds between snapshots of share-partitions that have not changed.
share.coordinator.write.timeout.ms int 5000 high read-only works [1,...] # Maximum time in milliseconds that the share coordinator waits for the in-sync replicas of __share_group_state before a write fails.
share.coordinator.threads int 1 medium read-only unneeded [1,...]
share.coordinator.load.buffer.size int 5242880 high read-only unneeded [1,...]
share.coordinator.append.linger.ms int -1 medium read-only stored [-1,...]
share.coordinator.cached.buffer.max.bytes int 1048588 medium cluster-wide unneeded [524288,...]
transaction.state.log.min.isr int 2 high read-only works [1,...] # Minimum number of in-sync replicas (min.insync.replicas) of __transaction_state.
transaction.state.log.load.buffer.size int 5242880 high read-only unneeded [1,...]
transaction.state.log.replication.factor short 3 high read-only works [1,...] # Replication factor of __transaction_state. The topic cannot be created until the cluster has at least this many brokers. A standalone broker uses 1.
transaction.state.log.num.partitions int 50 high read-only works [1,...] # Number of partitions of __transaction_state. Do not change it after the topic has been created.
transaction.state.log.segment.bytes int 104857600 high read-only works [1,...] # Segment size of the topic __transaction_state, in bytes.
transaction.partition.verification.enable boolean true low cluster-wide works # Whether records of a transaction are rejected if their partition has not been added to the transaction.
producer.id.expiration.ms int 86400000 low cluster-wide works [1,...] # Time in milliseconds that an idempotent producer's sequence numbers are kept after its last batch.
producer.id.expiration.check.interval.ms int 600000 low internal works [1,...] # Interval in milliseconds between checks for expired producer IDs.
transactional.id.expiration.ms int 604800000 high read-only works [1,...] # Time in milliseconds that a transactional ID is kept after its last transaction.
transaction.max.timeout.ms int 900000 high read-only works [1,...] # Maximum transaction timeout of a producer, in milliseconds; longer timeouts are rejected.
transaction.abort.timed.out.transaction.cleanup.interval.ms int 10000 low read-only works [1,...] # Interval in milliseconds at which the coordinator aborts timed-out transactions.
transaction.remove.expired.transaction.cleanup.interval.ms int 3600000 low read-only works [1,...] # Interval in milliseconds between checks for expired transactional IDs.
controller.quorum.voters list "" high read-only works # The voters of the quorum, as ID@HOST:PORT,ID@HOST:PORT; the same on all nodes. Empty: the voters are those in the metadata log, found through controller.quorum.bootstrap.servers.
controller.quorum.bootstrap.servers list "" high read-only works # Controllers to connect to first, as HOST:PORT,HOST:PORT. Empty: the addresses in controller.quorum.voters.
controller.quorum.election.timeout.ms int 1000 high read-only works [0,...] # Time in milliseconds to wait for votes or for a leader before the next election. Each wait is extended by a random time of up to the same length.
controller.quorum.fetch.timeout.ms int 2000 high read-only works [0,...] # Time in milliseconds without a response of the leader after which a voter starts an election. A leader resigns if no majority has fetched for one and a half times as long.
controller.quorum.election.backoff.max.ms int 1000 high read-only works [0,...] # Maximum time in milliseconds that a voter waits after a lost election, or after the leader has resigned.
controller.quorum.append.linger.ms int 25 medium read-only works [0,...] # Maximum time in milliseconds that the leader collects changes before it writes them to the metadata log.
controller.quorum.request.timeout.ms int 2000 medium read-only works [0,...] # Timeout in milliseconds of requests to other nodes of the quorum.
controller.quorum.retry.backoff.ms int 20 low read-only works [0,...] # Time in milliseconds before a failed request to another node of the quorum is repeated.
controller.quorum.auto.join.enable boolean false low internal works # Whether this controller joins the voters by itself if the voters are those in the metadata log (KIP-853). false: it must be added with `metadata-quorum add-controller`.
metrics.num.samples int 2 low read-only stored [1,...]
metrics.sample.window.ms long 30000 low read-only stored [1,...]
metric.reporters list "" low cluster-wide stored
metrics.recording.level string INFO low read-only stored
auto.include.jmx.reporter boolean true low read-only unneeded
kafka.metrics.reporters list "" low read-only stored
kafka.metrics.polling.interval.secs int 10 low read-only stored [1,...]
telemetry.max.bytes int 1048576 low read-only works [1,...] # Maximum compressed size of one push of client metrics, in bytes. The decompressed size may be up to four times as large.
quota.window.num int 11 low read-only works [1,...] # Number of samples over which the rates for client quotas are measured. More samples make the rates smoother.
replication.quota.window.num int 11 low read-only works [1,...] # Number of samples over which the rates for replication quotas are measured.
alter.log.dirs.replication.quota.window.num int 11 low read-only stored [1,...]
controller.quota.window.num int 11 low read-only works [1,...] # Number of samples over which the rate for controller_mutation_rate quotas is measured.
quota.window.size.seconds int 1 low read-only works [1,...] # Duration of one sample for client quotas, in seconds.
replication.quota.window.size.seconds int 1 low read-only works [1,...] # Duration of one sample for replication quotas, in seconds.
alter.log.dirs.replication.quota.window.size.seconds int 1 low read-only stored [1,...]
controller.quota.window.size.seconds int 1 low read-only works [1,...] # Duration of one sample for controller_mutation_rate quotas, in seconds.
client.quota.callback.class class null low read-only stored
connections.max.reauth.ms long 0 medium read-only listener # Time in milliseconds after which a SASL client must authenticate again to keep its connection. 0: no reauthentication.
sasl.server.max.receive.size int 524288 medium read-only works # Maximum size of a request from an unauthenticated client, in bytes.
security.providers string null low read-only stored
principal.builder.class class org.apache.kafka.common.security.authenticator.DefaultKafkaPrincipalBuilder medium per-broker stored
ssl.client.auth string none medium per-broker listener one-of:required,requested,none # Whether clients must present a certificate: required, requested (optional) or none. For SASL_SSL listeners, only listener.name.NAME.ssl.client.auth applies.
ssl.principal.mapping.rules string DEFAULT low read-only listener # Rules that map the subject of a client certificate to a user name. DEFAULT: the whole distinguished name.
ssl.allow.dn.changes boolean false low read-only listener # Whether a replacement certificate may have a different distinguished name. false: such a certificate is rejected.
ssl.allow.san.changes boolean false low read-only listener # Whether a replacement certificate may lack host names that the old certificate contains. false: such a certificate is rejected.
ssl.protocol string TLSv1.3 medium per-broker listener # TLS versions allowed if ssl.enabled.protocols is empty. TLSv1.2: only TLS 1.2. TLSv1.3: TLS 1.2 and 1.3.
ssl.provider string null medium per-broker unneeded
ssl.enabled.protocols list TLSv1.2,TLSv1.3 medium per-broker listener # Allowed TLS versions: TLSv1.2, TLSv1.3 or both.
ssl.keystore.type string JKS medium per-broker listener # Format of the key store: JKS, PKCS12, JCEKS or PEM.
ssl.keystore.location string null medium per-broker listener # File with the broker's private key and certificate chain.
ssl.keystore.password password null medium per-broker listener # Password of the key store. Do not set it for PEM; use ssl.key.password instead.
ssl.key.password password null medium per-broker listener # Password of the private key. Unset: the password of the key store.
ssl.keystore.key password null medium per-broker listener # Private key as PEM text, an alternative to ssl.keystore.location. Requires ssl.keystore.type=PEM.
ssl.keystore.certificate.chain password null medium per-broker listener # Certificate chain as PEM text, for the private key in ssl.keystore.key.
ssl.truststore.type string JKS medium per-broker listener # Format of the trust store: JKS, PKCS12, JCEKS or PEM.
ssl.truststore.location string null medium per-broker listener # File with the trusted certificate authorities. If neither this nor ssl.truststore.certificates is set, the operating system's authorities are trusted.
ssl.truststore.password password null medium per-broker listener # Password of the trust store. Do not set it for PEM.
ssl.truststore.certificates password null medium per-broker listener # Trusted certificate authorities as PEM text, an alternative to ssl.truststore.location. Requires ssl.truststore.type=PEM.
ssl.keymanager.algorithm string SunX509 medium per-broker unneeded
ssl.trustmanager.algorithm string PKIX medium per-broker unneeded
ssl.endpoint.identification.algorithm string https low per-broker listener # Verification of host names in the certificates of other brokers. https: a certificate must contain the broker's host name. Empty: host names are not verified.
ssl.secure.random.implementation string null low per-broker unneeded
ssl.cipher.suites list "" medium per-broker listener # Allowed cipher suites, as Java or OpenSSL names. Empty: OpenSSL's defaults.
ssl.engine.factory.class class null low per-broker stored
sasl.mechanism.inter.broker.protocol string GSSAPI medium per-broker listener # SASL mechanism with which brokers authenticate to each other.
sasl.enabled.mechanisms list GSSAPI medium per-broker listener # SASL mechanisms that clients may use: PLAIN, SCRAM-SHA-256, SCRAM-SHA-512, OAUTHBEARER, GSSAPI.
sasl.server.callback.handler.class class null medium read-only listener # Fully qualified class name of the OAUTHBEARER token validator, normally org.apache.kafka.common.security.oauthbearer.OAuthBearerValidatorCallbackHandler. Set it for each listener and mechanism.
sasl.kerberos.principal.to.local.rules list DEFAULT medium per-broker listener # Rules that map a Kerberos principal to a user name. The first matching rule applies. DEFAULT: the part before / or @, for principals in the default realm only.
sasl.jaas.config password null medium per-broker listener # Users, and the broker's own credentials, in JAAS format. Set it for each listener and mechanism, for example with listener.name.NAME.plain.sasl.jaas.config.
sasl.client.callback.handler.class class null medium read-only stored
sasl.login.class class null medium read-only stored
sasl.login.callback.handler.class class null medium read-only listener # Fully qualified name of the class that requests the broker's own OAUTHBEARER tokens, normally org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginCallbackHandler. Unset: unsecured tokens.
sasl.kerberos.service.name string null medium per-broker listener # First part of the brokers' Kerberos principals, such as kafka in kafka/HOST@REALM.
sasl.kerberos.kinit.cmd string /usr/bin/kinit medium per-broker stored
sasl.kerberos.ticket.renew.window.factor double 0.8 medium per-broker stored
sasl.kerberos.ticket.renew.jitter double 0.05 medium per-broker stored
sasl.kerberos.min.time.before.relogin long 60000 medium per-broker stored
sasl.login.refresh.window.factor double 0.8 medium per-broker listener # Fraction of an OAuth token's lifetime after which the broker requests a new token.
sasl.login.refresh.window.jitter double 0.05 medium per-broker listener # Maximum random delay before the request for a new token, as a fraction of the token's lifetime.
sasl.login.refresh.min.period.seconds short 60 medium per-broker listener # Minimum time in seconds between requests for a token, unless the token expires earlier.
sasl.login.refresh.buffer.seconds short 300 medium per-broker listener # Minimum remaining lifetime of a token when the broker replaces it, in seconds.
sasl.login.connect.timeout.ms int null low read-only stored
sasl.login.read.timeout.ms int null low read-only stored
sasl.login.retry.backoff.max.ms long 10000 low read-only listener # Maximum total time in milliseconds spent waiting between attempts to request a token. If the next wait would bring the total above this limit, the request fails.
sasl.login.retry.backoff.ms long 100 low read-only listener # Time in milliseconds before the first retry of a failed token request. Each failure doubles the time.
sasl.oauthbearer.scope.claim.name string scope low read-only listener # Name of the claim that contains a token's scopes.
sasl.oauthbearer.sub.claim.name string sub low read-only listener # Name of the claim that contains a token's user name.
sasl.oauthbearer.token.endpoint.url string null medium read-only listener # URL from which the broker requests its own tokens for connections to other brokers.
sasl.oauthbearer.jwks.endpoint.url string null medium read-only listener # URL of the issuer's key set (JWKS). The broker verifies tokens with these keys.
sasl.oauthbearer.jwks.endpoint.refresh.ms long 3600000 low read-only listener # Interval in milliseconds between downloads of the key set.
sasl.oauthbearer.jwks.endpoint.retry.backoff.ms long 100 low read-only listener # Time in milliseconds before the first retry of a failed download of the key set. Each failure doubles the time.
sasl.oauthbearer.jwks.endpoint.retry.backoff.max.ms long 10000 low read-only listener # Maximum total time in milliseconds spent waiting between attempts to download the key set. If the next wait would bring the total above this limit, the download fails.
sasl.oauthbearer.clock.skew.seconds int 30 low read-only listener # Tolerated difference between the clocks of the issuer and the broker, in seconds.
sasl.oauthbearer.expected.audience list null low read-only listener # Accepted audiences; a token must name at least one of them. Unset: tokens that name an audience are rejected.
sasl.oauthbearer.expected.issuer string null low read-only listener # Issuer that a token must name. Unset: any issuer is accepted.
delegation.token.master.key password null medium read-only works # Former name of delegation.token.secret.key, used if delegation.token.secret.key is unset.
delegation.token.secret.key password null medium read-only works # Secret key that signs delegation tokens. It must be the same on all brokers. Unset: delegation tokens are disabled.
delegation.token.max.lifetime.ms long 604800000 medium read-only works [1,...] # Maximum lifetime of a delegation token in milliseconds, including renewals.
delegation.token.expiry.time.ms long 86400000 medium read-only works [1,...] # Time in milliseconds after which a delegation token expires unless it is renewed.
delegation.token.expiry.check.interval.ms long 3600000 low read-only works [1,...] # Interval in milliseconds at which the controller deletes expired delegation tokens.
password.encoder.secret password null medium read-only stored
password.encoder.old.secret password null medium read-only stored
password.encoder.keyfactory.algorithm string null low read-only stored
password.encoder.cipher.algorithm string AES/CBC/PKCS5Padding low read-only stored
password.encoder.key.length int 128 low read-only stored [8,...]
password.encoder.iterations int 4096 low read-only stored [1024,...]
"""  # noqa: E501

#: Settings that Kafka accepts only in AlterConfigs (KIP-73, KIP-113). This broker also accepts them in files.
DYNAMIC_ONLY_TABLE = """
leader.replication.throttled.rate long 9223372036854775807 medium cluster-wide works [0,...] # Maximum number of bytes per second that the broker sends to followers from the replicas in leader.replication.throttled.replicas. The default is no limit.
follower.replication.throttled.rate long 9223372036854775807 medium cluster-wide works [0,...] # Maximum number of bytes per second that the broker fetches for the replicas in follower.replication.throttled.replicas. The default is no limit.
replica.alter.log.dirs.io.max.bytes.per.second long 9223372036854775807 medium cluster-wide works [0,...] # Maximum rate, in bytes per second, at which replicas are moved between log directories. The default is no limit.
"""  # noqa: E501
