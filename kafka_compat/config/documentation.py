"""A sentence on what a setting does, for DescribeConfigs; imported when a client asks for it."""

from kafka_compat.config.keys import ConfigKey, broker_keys, dynamic_only_keys, topic_keys

_ABOUT = {
    "advertised.listeners": "The addresses that clients are told; unset, the one by which each client came.",
    "auto.create.topics.enable": "Whether a topic that a client names is made if there is none.",
    "broker.id": "The number of this broker, unique in the cluster.",
    "broker.rack": "Where the broker stands, so that replicas can be spread and readers served nearby.",
    "cleanup.policy": "What happens to old segments: delete by age and size, compact by key, or both.",
    "compression.type": "The codec that batches are stored with; producer keeps the producer's own.",
    "connections.max.idle.ms": "How long a silent connection is kept.",
    "default.replication.factor": "The replicas of a topic that does not say how many it wants.",
    "delete.retention.ms": "How long a compacted topic keeps the mark of a deleted key.",
    "delete.topic.enable": "Whether clients may delete topics.",
    "fetch.max.bytes": "The most bytes that one fetch returns; a single batch may be larger.",
    "file.delete.delay.ms": "How long a deleted segment stays on disk for those who still read it.",
    "flush.messages": "After how many records a log is forced to disk.",
    "flush.ms": "After how long a log is forced to disk.",
    "group.initial.rebalance.delay.ms": "How long a new group waits for members before it rebalances.",
    "group.max.session.timeout.ms": "The longest session timeout that a member may ask for.",
    "group.max.size": "The most members that a group may have.",
    "group.min.session.timeout.ms": "The shortest session timeout that a member may ask for.",
    "index.interval.bytes": "After how many bytes of a log its index gets an entry.",
    "inter.broker.listener.name": "The listener that brokers use among themselves.",
    "kafka.compat.client.metrics.series.max": "How many time series of what clients push are kept.",
    "kafka.compat.control.enable": "Whether tests may control the broker over HTTP (docs/testing.md).",
    "kafka.compat.frame.timeout.ms": "How long a client may take to finish a request that it began.",
    "kafka.compat.http.listener": "Where HTTP is served, as http://127.0.0.1:8080; unset, nowhere.",
    "kafka.compat.http.page.enable": "Whether the page for people is served at the HTTP listener.",
    "kafka.compat.http.page.principal": "Who the page is to the authorizer.",
    "kafka.compat.http.page.write.enable": "Whether the page may change anything.",
    "kafka.compat.http.token": "What whoever asks at the HTTP listener has to send as a bearer token.",
    "kafka.compat.metrics.dialect": "By whose rules for the JMX exporter metrics have their names.",
    "kafka.compat.log.format": "How lines of the log are written: text, or json.",
    "kafka.compat.log.level": "From which level on loggers write: INFO,kafka_compat.cluster=DEBUG.",
    "kafka.compat.log.slow.request.ms": "From which time on the log tells of a slow request; -1: never.",
    "kafka.compat.otlp.endpoint": "Where metrics are pushed to as OTLP, as http://127.0.0.1:4318/v1/metrics.",
    "kafka.compat.otlp.headers": "Headers of what is pushed there, as Authorization=Bearer%20…, with commas.",
    "kafka.compat.otlp.interval.ms": "How often metrics are pushed.",
    "kafka.compat.queued.max.response.bytes": "How much of all answers may wait in memory to be sent.",
    "kafka.compat.record.validation.enable": "Whether each record of a produced batch is checked.",
    "kafka.compat.sasl.jaas.file": "A JAAS file with the section KafkaServer: users and logins of listeners.",
    "kafka.compat.scram.credentials.file": "Users that the cluster begins with; each content counts once.",
    "kafka.compat.schema.registry.basic.auth.user.info": "User and password for the registry, USER:PASSWORD.",
    "kafka.compat.schema.registry.url": "The schema registry that the page asks, as http://127.0.0.1:8081.",
    "kafka.compat.transaction.version": "With 2 clients of Kafka 4 use an epoch for each transaction.",
    "kafka.compat.zookeeper.sasl.enable": "False forbids a login at ZooKeeper.",
    "kafka.compat.zookeeper.sasl.jaas.config": "The login at ZooKeeper, as of sasl.jaas.config.",
    "kafka.compat.zookeeper.sasl.jaas.file": "A JAAS file that has the login at ZooKeeper.",
    "kafka.compat.zookeeper.sasl.jaas.section": "Which section of that file it is.",
    "listener.security.protocol.map": "The security protocol of each listener name.",
    "listeners": "The addresses that the broker binds, as NAME://HOST:PORT.",
    "log.cleanup.policy": "What happens to old segments of topics that do not say: delete, compact, or both.",
    "log.dir": "The data folder, used when log.dirs is not set.",
    "log.dirs": "The data folders, separated by commas; a new partition goes to the one with the fewest.",
    "log.flush.interval.messages": "After how many records a log is forced to disk; 1 for every request.",
    "log.flush.interval.ms": "After how long a log is forced to disk.",
    "log.retention.bytes": "How large a partition may grow before its oldest segments go; -1: no bound.",
    "log.retention.check.interval.ms": "How often logs are looked over for segments to delete.",
    "log.retention.hours": "How long records are kept, in hours, unless the minutes or the ms of it are set.",
    "log.retention.minutes": "How long records are kept, in minutes, unless the ms of it is set.",
    "log.retention.ms": "How long records are kept; -1 is for ever. Unset: the minutes or hours of it.",
    "log.roll.hours": "After how many hours a segment is closed even if it is not full.",
    "log.roll.ms": "After how long a segment is closed even if it is not full.",
    "log.segment.bytes": "The size at which a segment is closed and a new one begun.",
    "max.connection.creation.rate": "How many new connections the broker accepts in a second.",
    "max.connections": "The most connections that the broker accepts.",
    "max.connections.per.ip": "The most connections that the broker accepts from one address.",
    "max.connections.per.ip.overrides": "Other limits for some addresses, as HOST:LIMIT.",
    "max.message.bytes": "The largest batch that a producer may send to the topic.",
    "message.downconversion.enable": "Whether consumers that speak Fetch 0 to 3 get records, converted to the"
    " format they know. false: they get UNSUPPORTED_VERSION.",
    "message.max.bytes": "The largest batch that a producer may send.",
    "message.timestamp.after.max.ms": "How far ahead of the broker's clock a record's timestamp may be.",
    "message.timestamp.before.max.ms": "How far behind the broker's clock a record's timestamp may be.",
    "message.timestamp.type": "Whether records keep the producer's time or get the broker's.",
    "min.compaction.lag.ms": "How long a record stays as it is before compaction may remove it.",
    "max.compaction.lag.ms": "How long a record may wait for compaction at most.",
    "min.insync.replicas": "How many replicas must have a record before acks=all is answered.",
    "num.partitions": "The partitions of a topic that does not say how many it wants.",
    "offset.metadata.max.bytes": "The longest text that a commit may carry beside its offset.",
    "offsets.retention.minutes": "How long the offsets of a group without members are kept.",
    "offsets.topic.num.partitions": "The partitions of the topic that keeps groups and their offsets.",
    "offsets.topic.replication.factor": "The replicas of that topic, at most one for each broker.",
    "offsets.topic.segment.bytes": "The segment size of that topic.",
    "preallocate": "Whether a segment's file is given its full size when it is made.",
    "producer.id.expiration.ms": "How long an idle producer's sequence numbers are remembered.",
    "queued.max.request.bytes": "How much memory all unfinished or waiting requests may take; -1: no bound.",
    "retention.bytes": "How large a partition may grow before its oldest segments go; -1 is without bound.",
    "retention.ms": "How long records are kept; -1 is for ever.",
    "segment.bytes": "The size at which a segment is closed and a new one begun.",
    "segment.index.bytes": "The largest index of a segment; a full index closes its segment.",
    "segment.jitter.ms": "How much earlier than segment.ms a segment may be closed, at random.",
    "segment.ms": "After how long a segment is closed even if it is not full.",
    "socket.request.max.bytes": "The largest request that the broker reads.",
    "unclean.leader.election.enable": "Whether a replica that misses records may lead when no other lives.",
    "zookeeper.connect": "The ZooKeeper servers of the cluster, as HOST:PORT,…/PATH.",
    "zookeeper.set.acl": "Whether nodes in ZooKeeper belong to who made them.",
    "zookeeper.ssl.client.enable": "Whether brokers speak TLS with ZooKeeper.",
}


def about(name: str) -> str | None:
    """A sentence on what the setting does; None where Kafka's documentation says it all."""
    return _ABOUT.get(name)


def document(name: str) -> str | None:
    """What the setting does as far as it is told here, and which values it takes; None for an unknown
    name."""
    key = topic_keys().get(name) or broker_keys().get(name) or dynamic_only_keys().get(name)
    if key is None:
        return None
    sentence = about(name)
    return f"{sentence} {_values(key)}" if sentence else _values(key)


def _values(key: ConfigKey) -> str:
    text = key.expected.partition(", for example")[0].removeprefix("expected ")
    return f"{text[0].upper()}{text[1:]}; default: {key.default if key.default is not None else 'none'}."
