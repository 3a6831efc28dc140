"""Every setting of a Kafka 3.9.1 broker in ZooKeeper mode, one a line, in the order of Kafka's own
definition.

Columns: name, type, default, importance, when it may change (read-only: at start; per-broker and
cluster-wide: also by AlterConfigs, KIP-226; internal: read-only and never shown), its effect here, and the
rule for its values if it has one: `[low,...,high]` bounds with either end open, `-1|[...]` that or -1,
`one-of:`, `any-case:`, `version` (a metadata version such as 3.9-IV0), `non-empty`. `null` is no default at
all, `""` an empty one.

The effect: `works`; `listener`, works and may be given to one listener alone, as listener.name.L.X;
`stored`, accepted, kept and shown, which the log says; `unneeded`, the same without a word: a setting of
threads, buffers or Java's libraries, which this broker does not have.
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
zookeeper.connect string null high read-only works
zookeeper.session.timeout.ms int 18000 high read-only works
zookeeper.connection.timeout.ms int null high read-only works
zookeeper.set.acl boolean false high read-only works
zookeeper.max.in.flight.requests int 10 high read-only stored [1,...]
zookeeper.ssl.client.enable boolean false medium read-only works
zookeeper.clientCnxnSocket string null medium read-only works
zookeeper.ssl.keystore.location string null medium read-only works
zookeeper.ssl.keystore.password password null medium read-only works
zookeeper.ssl.keystore.type string null medium read-only works
zookeeper.ssl.truststore.location string null medium read-only works
zookeeper.ssl.truststore.password password null medium read-only works
zookeeper.ssl.truststore.type string null medium read-only works
zookeeper.ssl.protocol string TLSv1.2 low read-only works
zookeeper.ssl.enabled.protocols list null low read-only works
zookeeper.ssl.cipher.suites list null low read-only works
zookeeper.ssl.endpoint.identification.algorithm string HTTPS low read-only works
zookeeper.ssl.crl.enable boolean false low read-only works
zookeeper.ssl.ocsp.enable boolean false low read-only works
broker.id.generation.enable boolean true medium read-only works
reserved.broker.max.id int 1000 medium read-only works [0,...]
broker.id int -1 high read-only works
message.max.bytes int 1048588 high cluster-wide works [0,...]
num.io.threads int 8 high cluster-wide unneeded [1,...]
num.replica.alter.log.dirs.threads int null high read-only unneeded
background.threads int 10 high cluster-wide unneeded [1,...]
request.timeout.ms int 30000 high read-only stored
socket.connection.setup.timeout.ms long 10000 medium read-only stored
socket.connection.setup.timeout.max.ms long 30000 medium read-only stored
authorizer.class.name string "" low read-only works
early.start.listeners string null high read-only stored
broker.rack string null medium read-only works
controlled.shutdown.max.retries int 3 medium read-only works
controlled.shutdown.retry.backoff.ms long 5000 medium read-only works
controlled.shutdown.enable boolean true medium read-only works
delete.topic.enable boolean true high read-only works
compression.type string producer high cluster-wide works one-of:uncompressed,zstd,lz4,snappy,gzip,producer
compression.gzip.level int -1 medium cluster-wide stored -1|[1,...,9]
compression.lz4.level int 9 medium cluster-wide stored [1,...,17]
compression.zstd.level int 3 medium cluster-wide stored [-131072,...,22]
max.incremental.fetch.session.cache.slots int 1000 medium read-only works [0,...]
fetch.max.bytes int 57671680 medium read-only works [1024,...]
max.request.partition.size.limit int 2000 medium read-only works [1,...]
unstable.api.versions.enable boolean false high internal stored
unstable.feature.versions.enable boolean false high internal stored
metadata.log.max.record.bytes.between.snapshots long 20971520 high read-only stored [1,...]
metadata.log.max.snapshot.interval.ms long 3600000 high read-only stored [0,...]
process.roles list "" high read-only stored one-of:broker,controller
node.id int -1 high read-only works
initial.broker.registration.timeout.ms int 60000 medium read-only stored
broker.heartbeat.interval.ms int 2000 medium read-only stored
broker.session.timeout.ms int 9000 medium read-only stored
controller.listener.names string null high read-only stored
sasl.mechanism.controller.protocol string GSSAPI high read-only stored
metadata.log.dir string null high read-only stored
metadata.log.segment.bytes int 1073741824 high read-only stored [12,...]
metadata.log.segment.min.bytes int 8388608 high internal stored [12,...]
metadata.log.segment.ms long 604800000 high read-only stored
metadata.max.retention.bytes long 104857600 high read-only stored
metadata.max.retention.ms long 604800000 high read-only stored
metadata.max.idle.interval.ms int 500 low read-only stored [0,...]
server.max.startup.time.ms long 9223372036854775807 medium internal stored [0,...]
zookeeper.metadata.migration.enable boolean false high read-only stored
eligible.leader.replicas.enable boolean false high read-only stored
zookeeper.metadata.migration.min.batch.size int 200 medium internal stored [1,...]
listeners string PLAINTEXT://:9092 high per-broker works
advertised.listeners string null high per-broker works
listener.security.protocol.map string SASL_SSL:SASL_SSL,PLAINTEXT:PLAINTEXT,SSL:SSL,SASL_PLAINTEXT:SASL_PLAINTEXT low per-broker works
control.plane.listener.name string null high read-only stored
socket.send.buffer.bytes int 102400 high read-only works
socket.receive.buffer.bytes int 102400 high read-only works
socket.request.max.bytes int 104857600 high read-only works [1,...]
socket.listen.backlog.size int 50 medium read-only stored [1,...]
max.connections.per.ip int 2147483647 medium cluster-wide works [0,...]
max.connections.per.ip.overrides string "" medium cluster-wide works
max.connections int 2147483647 medium cluster-wide works [0,...]
max.connection.creation.rate int 2147483647 medium cluster-wide works [0,...]
connections.max.idle.ms long 600000 medium read-only works
connection.failed.authentication.delay.ms int 100 low read-only works [0,...]
queued.max.requests int 500 high read-only unneeded [1,...]
queued.max.request.bytes long -1 medium read-only works
num.network.threads int 3 high cluster-wide unneeded [1,...]
controller.socket.timeout.ms int 30000 medium read-only works
default.replication.factor int 1 medium read-only works
replica.lag.time.max.ms long 30000 high read-only works
replica.socket.timeout.ms int 30000 high read-only works
replica.socket.receive.buffer.bytes int 65536 high read-only stored
replica.fetch.max.bytes int 1048576 medium read-only works [0,...]
replica.fetch.wait.max.ms int 500 high read-only works
replica.fetch.backoff.ms int 1000 medium read-only works [0,...]
replica.fetch.min.bytes int 1 high read-only works
replica.fetch.response.max.bytes int 10485760 medium read-only works [0,...]
num.replica.fetchers int 1 high cluster-wide works
replica.high.watermark.checkpoint.interval.ms long 5000 high read-only works
fetch.purgatory.purge.interval.requests int 1000 medium read-only unneeded
producer.purgatory.purge.interval.requests int 1000 medium read-only unneeded
delete.records.purgatory.purge.interval.requests int 1 medium read-only unneeded
auto.leader.rebalance.enable boolean true high read-only works
leader.imbalance.per.broker.percentage int 10 high read-only works
leader.imbalance.check.interval.seconds long 300 high read-only works [1,...]
unclean.leader.election.interval.ms long 300000 medium internal stored [1,...]
unclean.leader.election.enable boolean false high cluster-wide works
security.inter.broker.protocol string PLAINTEXT medium read-only works one-of:PLAINTEXT,SSL,SASL_PLAINTEXT,SASL_SSL
inter.broker.protocol.version string 3.9-IV0 medium read-only stored version
inter.broker.listener.name string null medium read-only works
replica.selector.class string null medium read-only works
group.min.session.timeout.ms int 6000 medium read-only works
group.max.session.timeout.ms int 1800000 medium read-only works
group.initial.rebalance.delay.ms int 3000 medium read-only works
group.max.size int 2147483647 medium read-only works [1,...]
group.coordinator.rebalance.protocols list classic medium read-only stored one-of:consumer,classic,share,unknown
group.coordinator.threads int 1 medium read-only unneeded [1,...]
group.coordinator.append.linger.ms int 10 medium read-only stored [0,...]
group.coordinator.new.enable boolean false medium internal stored
offset.metadata.max.bytes int 4096 high read-only works
offsets.load.buffer.size int 5242880 high read-only stored [1,...]
offsets.topic.replication.factor short 3 high read-only works [1,...]
offsets.topic.num.partitions int 50 high read-only works [1,...]
offsets.topic.segment.bytes int 104857600 high read-only works [1,...]
offsets.topic.compression.codec int 0 high read-only works
offsets.retention.minutes int 10080 high read-only works [1,...]
offsets.retention.check.interval.ms long 600000 high read-only works [1,...]
offsets.commit.timeout.ms int 5000 high read-only works [1,...]
offsets.commit.required.acks short -1 high read-only stored
group.consumer.session.timeout.ms int 45000 medium read-only stored [1,...]
group.consumer.min.session.timeout.ms int 45000 medium read-only stored [1,...]
group.consumer.max.session.timeout.ms int 60000 medium read-only stored [1,...]
group.consumer.heartbeat.interval.ms int 5000 medium read-only stored [1,...]
group.consumer.min.heartbeat.interval.ms int 5000 medium read-only stored [1,...]
group.consumer.max.heartbeat.interval.ms int 15000 medium read-only stored [1,...]
group.consumer.max.size int 2147483647 medium read-only stored [1,...]
group.consumer.assignors list org.apache.kafka.coordinator.group.assignor.UniformAssignor,org.apache.kafka.coordinator.group.assignor.RangeAssignor medium read-only stored
group.consumer.migration.policy string disabled medium internal stored any-case:DISABLED,DOWNGRADE,UPGRADE,BIDIRECTIONAL
group.share.session.timeout.ms int 45000 medium read-only stored [1,...]
group.share.min.session.timeout.ms int 45000 medium read-only stored [1,...]
group.share.max.session.timeout.ms int 60000 medium read-only stored [1,...]
group.share.heartbeat.interval.ms int 5000 medium read-only stored [1,...]
group.share.min.heartbeat.interval.ms int 5000 medium read-only stored [1,...]
group.share.max.heartbeat.interval.ms int 15000 medium read-only stored [1,...]
group.share.max.size short 200 medium read-only stored [10,...,1000]
log.cleaner.threads int 1 medium cluster-wide works [0,...]
log.cleaner.io.max.bytes.per.second double 1.7976931348623157E308 medium cluster-wide works
log.cleaner.dedupe.buffer.size long 134217728 medium cluster-wide works
log.cleaner.io.buffer.size int 524288 medium cluster-wide unneeded [0,...]
log.cleaner.io.buffer.load.factor double 0.9 medium cluster-wide works
log.cleaner.backoff.ms long 15000 medium cluster-wide works [0,...]
log.cleaner.min.cleanable.ratio double 0.5 medium cluster-wide works [0,...,1]
log.cleaner.enable boolean true medium read-only works
log.cleaner.delete.retention.ms long 86400000 medium cluster-wide works [0,...]
log.cleaner.min.compaction.lag.ms long 0 medium cluster-wide works [0,...]
log.cleaner.max.compaction.lag.ms long 9223372036854775807 medium cluster-wide works [1,...]
num.partitions int 1 medium read-only works [1,...]
log.dir string /tmp/kafka-logs high read-only works
log.dirs string null high read-only works
log.segment.bytes int 1073741824 high cluster-wide works [14,...]
log.roll.ms long null high cluster-wide works
log.roll.hours int 168 high read-only works [1,...]
log.roll.jitter.ms long null high cluster-wide works
log.roll.jitter.hours int 0 high read-only works [0,...]
log.retention.ms long null high cluster-wide works
log.retention.minutes int null high read-only works
log.retention.hours int 168 high read-only works
log.retention.bytes long -1 high cluster-wide works
log.retention.check.interval.ms long 300000 medium read-only works [1,...]
log.cleanup.policy list delete medium cluster-wide works one-of:compact,delete
log.index.size.max.bytes int 10485760 medium cluster-wide works [4,...]
log.index.interval.bytes int 4096 medium cluster-wide works [0,...]
log.flush.interval.messages long 9223372036854775807 high cluster-wide works [1,...]
log.segment.delete.delay.ms long 60000 high cluster-wide works [0,...]
log.flush.scheduler.interval.ms long 9223372036854775807 high read-only works
log.flush.interval.ms long null high cluster-wide works
log.flush.offset.checkpoint.interval.ms int 60000 high read-only works [0,...]
log.flush.start.offset.checkpoint.interval.ms int 60000 high read-only works [0,...]
log.preallocate boolean false medium cluster-wide stored
num.recovery.threads.per.data.dir int 1 high cluster-wide unneeded [1,...]
auto.create.topics.enable boolean true high read-only works
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
log.initial.task.delay.ms long 30000 low internal works [0,...]
group.share.enable boolean false medium internal stored
group.share.delivery.count.limit int 5 medium read-only stored [2,...,10]
group.share.record.lock.duration.ms int 30000 medium read-only stored [1000,...,60000]
group.share.min.record.lock.duration.ms int 15000 medium read-only stored [1000,...,30000]
group.share.max.record.lock.duration.ms int 60000 medium read-only stored [30000,...,3600000]
group.share.max.groups short 10 medium read-only stored [1,...,100]
group.share.partition.max.record.locks int 200 medium read-only stored [100,...,10000]
transaction.state.log.min.isr int 2 high read-only works [1,...]
transaction.state.log.load.buffer.size int 5242880 high read-only unneeded [1,...]
transaction.state.log.replication.factor short 3 high read-only works [1,...]
transaction.state.log.num.partitions int 50 high read-only works [1,...]
transaction.state.log.segment.bytes int 104857600 high read-only works [1,...]
transaction.partition.verification.enable boolean true low cluster-wide works
producer.id.expiration.ms int 86400000 low cluster-wide works [1,...]
producer.id.expiration.check.interval.ms int 600000 low internal works [1,...]
transactional.id.expiration.ms int 604800000 high read-only works [1,...]
transaction.max.timeout.ms int 900000 high read-only works [1,...]
transaction.abort.timed.out.transaction.cleanup.interval.ms int 10000 low read-only works [1,...]
transaction.remove.expired.transaction.cleanup.interval.ms int 3600000 low read-only works [1,...]
controller.quorum.voters list "" high read-only stored
controller.quorum.bootstrap.servers list "" high read-only stored
controller.quorum.election.timeout.ms int 1000 high read-only stored
controller.quorum.fetch.timeout.ms int 2000 high read-only stored
controller.quorum.election.backoff.max.ms int 1000 high read-only stored
controller.quorum.append.linger.ms int 25 medium read-only stored
controller.quorum.request.timeout.ms int 2000 medium read-only stored
controller.quorum.retry.backoff.ms int 20 low read-only stored
metrics.num.samples int 2 low read-only stored [1,...]
metrics.sample.window.ms long 30000 low read-only stored [1,...]
metric.reporters list "" low cluster-wide stored
metrics.recording.level string INFO low read-only stored
auto.include.jmx.reporter boolean true low read-only unneeded
kafka.metrics.reporters list "" low read-only stored
kafka.metrics.polling.interval.secs int 10 low read-only stored [1,...]
telemetry.max.bytes int 1048576 low read-only works [1,...]
quota.window.num int 11 low read-only works [1,...]
replication.quota.window.num int 11 low read-only works [1,...]
alter.log.dirs.replication.quota.window.num int 11 low read-only stored [1,...]
controller.quota.window.num int 11 low read-only works [1,...]
quota.window.size.seconds int 1 low read-only works [1,...]
replication.quota.window.size.seconds int 1 low read-only works [1,...]
alter.log.dirs.replication.quota.window.size.seconds int 1 low read-only stored [1,...]
controller.quota.window.size.seconds int 1 low read-only works [1,...]
client.quota.callback.class class null low read-only stored
connections.max.reauth.ms long 0 medium read-only listener
sasl.server.max.receive.size int 524288 medium read-only works
security.providers string null low read-only stored
principal.builder.class class org.apache.kafka.common.security.authenticator.DefaultKafkaPrincipalBuilder medium per-broker stored
ssl.client.auth string none medium per-broker listener one-of:required,requested,none
ssl.principal.mapping.rules string DEFAULT low read-only listener
ssl.allow.dn.changes boolean false low read-only listener
ssl.allow.san.changes boolean false low read-only listener
ssl.protocol string TLSv1.3 medium per-broker listener
ssl.provider string null medium per-broker unneeded
ssl.enabled.protocols list TLSv1.2,TLSv1.3 medium per-broker listener
ssl.keystore.type string JKS medium per-broker listener
ssl.keystore.location string null medium per-broker listener
ssl.keystore.password password null medium per-broker listener
ssl.key.password password null medium per-broker listener
ssl.keystore.key password null medium per-broker listener
ssl.keystore.certificate.chain password null medium per-broker listener
ssl.truststore.type string JKS medium per-broker listener
ssl.truststore.location string null medium per-broker listener
ssl.truststore.password password null medium per-broker listener
ssl.truststore.certificates password null medium per-broker listener
ssl.keymanager.algorithm string SunX509 medium per-broker unneeded
ssl.trustmanager.algorithm string PKIX medium per-broker unneeded
ssl.endpoint.identification.algorithm string https low per-broker listener
ssl.secure.random.implementation string null low per-broker unneeded
ssl.cipher.suites list "" medium per-broker listener
ssl.engine.factory.class class null low per-broker stored
sasl.mechanism.inter.broker.protocol string GSSAPI medium per-broker listener
sasl.enabled.mechanisms list GSSAPI medium per-broker listener
sasl.server.callback.handler.class class null medium read-only listener
sasl.kerberos.principal.to.local.rules list DEFAULT medium per-broker listener
sasl.jaas.config password null medium per-broker listener
sasl.client.callback.handler.class class null medium read-only stored
sasl.login.class class null medium read-only stored
sasl.login.callback.handler.class class null medium read-only listener
sasl.kerberos.service.name string null medium per-broker listener
sasl.kerberos.kinit.cmd string /usr/bin/kinit medium per-broker stored
sasl.kerberos.ticket.renew.window.factor double 0.8 medium per-broker stored
sasl.kerberos.ticket.renew.jitter double 0.05 medium per-broker stored
sasl.kerberos.min.time.before.relogin long 60000 medium per-broker stored
sasl.login.refresh.window.factor double 0.8 medium per-broker listener
sasl.login.refresh.window.jitter double 0.05 medium per-broker listener
sasl.login.refresh.min.period.seconds short 60 medium per-broker listener
sasl.login.refresh.buffer.seconds short 300 medium per-broker listener
sasl.login.connect.timeout.ms int null low read-only stored
sasl.login.read.timeout.ms int null low read-only stored
sasl.login.retry.backoff.max.ms long 10000 low read-only listener
sasl.login.retry.backoff.ms long 100 low read-only listener
sasl.oauthbearer.scope.claim.name string scope low read-only listener
sasl.oauthbearer.sub.claim.name string sub low read-only listener
sasl.oauthbearer.token.endpoint.url string null medium read-only listener
sasl.oauthbearer.jwks.endpoint.url string null medium read-only listener
sasl.oauthbearer.jwks.endpoint.refresh.ms long 3600000 low read-only listener
sasl.oauthbearer.jwks.endpoint.retry.backoff.ms long 100 low read-only listener
sasl.oauthbearer.jwks.endpoint.retry.backoff.max.ms long 10000 low read-only listener
sasl.oauthbearer.clock.skew.seconds int 30 low read-only listener
sasl.oauthbearer.expected.audience list null low read-only listener
sasl.oauthbearer.expected.issuer string null low read-only listener
delegation.token.master.key password null medium read-only works
delegation.token.secret.key password null medium read-only works
delegation.token.max.lifetime.ms long 604800000 medium read-only works [1,...]
delegation.token.expiry.time.ms long 86400000 medium read-only works [1,...]
delegation.token.expiry.check.interval.ms long 3600000 low read-only works [1,...]
password.encoder.secret password null medium read-only stored
password.encoder.old.secret password null medium read-only stored
password.encoder.keyfactory.algorithm string null low read-only stored
password.encoder.cipher.algorithm string AES/CBC/PKCS5Padding low read-only stored
password.encoder.key.length int 128 low read-only stored [8,...]
password.encoder.iterations int 4096 low read-only stored [1024,...]
"""  # noqa: E501

#: Settings that only AlterConfigs can set; a properties file may not hold them (KIP-73, KIP-113).
DYNAMIC_ONLY_TABLE = """
leader.replication.throttled.rate long 9223372036854775807 medium cluster-wide works [0,...]
follower.replication.throttled.rate long 9223372036854775807 medium cluster-wide works [0,...]
replica.alter.log.dirs.io.max.bytes.per.second long 9223372036854775807 medium cluster-wide works [0,...]
"""
