"""Which settings do something in this version. The others are accepted, kept and shown, and said in the
log."""

from .topic_table import SERVER_SYNONYMS

#: Topic settings that logs, appends or fetches obey.
TOPIC_SETTINGS = frozenset(
    {
        "cleanup.policy",
        "compression.type",
        "delete.retention.ms",
        "file.delete.delay.ms",
        "flush.messages",
        "flush.ms",
        "follower.replication.throttled.replicas",
        "index.interval.bytes",
        "leader.replication.throttled.replicas",
        "max.compaction.lag.ms",
        "max.message.bytes",
        "message.timestamp.after.max.ms",
        "message.timestamp.before.max.ms",
        "message.timestamp.difference.max.ms",
        "message.timestamp.type",
        "min.cleanable.dirty.ratio",
        "min.compaction.lag.ms",
        "min.insync.replicas",
        "retention.bytes",
        "retention.ms",
        "segment.bytes",
        "segment.index.bytes",
        "segment.jitter.ms",
        "segment.ms",
        "unclean.leader.election.enable",
    }
)

#: Broker settings that the code asks for by name, beside the defaults of the topic settings above.
BROKER_SETTINGS = frozenset(
    {
        "advertised.listeners",
        "auto.create.topics.enable",
        "auto.leader.rebalance.enable",
        "broker.id",
        "broker.rack",
        "connections.max.idle.ms",
        "controlled.shutdown.enable",
        "controlled.shutdown.max.retries",
        "controlled.shutdown.retry.backoff.ms",
        "controller.socket.timeout.ms",
        "default.replication.factor",
        "delete.topic.enable",
        "fetch.max.bytes",
        "follower.replication.throttled.rate",
        "group.initial.rebalance.delay.ms",
        "group.max.session.timeout.ms",
        "group.max.size",
        "group.min.session.timeout.ms",
        "inter.broker.listener.name",
        "kafka.compat.frame.timeout.ms",
        "kafka.compat.queued.max.response.bytes",
        "kafka.compat.record.validation.enable",
        "kafka.compat.transaction.version",
        "leader.imbalance.check.interval.seconds",
        "leader.imbalance.per.broker.percentage",
        "leader.replication.throttled.rate",
        "listener.security.protocol.map",
        "listeners",
        "log.cleaner.backoff.ms",
        "log.cleaner.dedupe.buffer.size",
        "log.cleaner.enable",
        "log.cleaner.io.buffer.load.factor",
        "log.cleaner.io.max.bytes.per.second",
        "log.cleaner.threads",
        "log.dir",
        "log.dirs",
        "log.flush.offset.checkpoint.interval.ms",
        "log.flush.scheduler.interval.ms",
        "log.flush.start.offset.checkpoint.interval.ms",
        "log.initial.task.delay.ms",
        "log.retention.check.interval.ms",
        "max.connections",
        "max.connections.per.ip",
        "max.connections.per.ip.overrides",
        "max.incremental.fetch.session.cache.slots",
        "max.request.partition.size.limit",
        "node.id",
        "num.partitions",
        "num.replica.fetchers",
        "offset.metadata.max.bytes",
        "offsets.commit.timeout.ms",
        "offsets.retention.check.interval.ms",
        "offsets.retention.minutes",
        "offsets.topic.compression.codec",
        "offsets.topic.num.partitions",
        "offsets.topic.replication.factor",
        "offsets.topic.segment.bytes",
        "producer.id.expiration.check.interval.ms",
        "producer.id.expiration.ms",
        "queued.max.request.bytes",
        "replica.alter.log.dirs.io.max.bytes.per.second",
        "replica.fetch.backoff.ms",
        "replica.fetch.max.bytes",
        "replica.fetch.min.bytes",
        "replica.fetch.response.max.bytes",
        "replica.fetch.wait.max.ms",
        "replica.high.watermark.checkpoint.interval.ms",
        "replica.lag.time.max.ms",
        "replica.selector.class",
        "replica.socket.timeout.ms",
        "replication.quota.window.num",
        "replication.quota.window.size.seconds",
        "reserved.broker.max.id",
        "broker.id.generation.enable",
        "socket.receive.buffer.bytes",
        "socket.request.max.bytes",
        "socket.send.buffer.bytes",
        "transaction.abort.timed.out.transaction.cleanup.interval.ms",
        "transaction.max.timeout.ms",
        "transaction.partition.verification.enable",
        "transaction.remove.expired.transaction.cleanup.interval.ms",
        "transaction.state.log.min.isr",
        "transaction.state.log.num.partitions",
        "transaction.state.log.replication.factor",
        "transaction.state.log.segment.bytes",
        "transactional.id.expiration.ms",
        "zookeeper.connect",
    }
)

#: Settings of threads, buffers and the like, of which this broker has none: nobody misses them.
_NOT_MISSED = frozenset(
    {
        "background.threads",
        "num.io.threads",
        "num.network.threads",
        "num.recovery.threads.per.data.dir",
        "num.replica.alter.log.dirs.threads",
        "group.coordinator.threads",
        "queued.max.requests",
        "fetch.purgatory.purge.interval.requests",
        "producer.purgatory.purge.interval.requests",
        "delete.records.purgatory.purge.interval.requests",
        "log.cleaner.io.buffer.size",
        "log.message.format.version",
        "message.format.version",
        "auto.include.jmx.reporter",
        "transaction.state.log.load.buffer.size",
        "zookeeper.connection.timeout.ms",
        "zookeeper.session.timeout.ms",
    }
)


def topic_setting_has_effect(name: str) -> bool:
    """Whether topics behave otherwise for this setting, or nobody would expect them to."""
    return name in TOPIC_SETTINGS or name in _NOT_MISSED


def broker_setting_has_effect(name: str) -> bool:
    """Whether a broker behaves otherwise for this setting, or nobody would expect it to."""
    if name in BROKER_SETTINGS or name in _NOT_MISSED:
        return True
    return any(
        name in SERVER_SYNONYMS.get(topic, ()) and topic_setting_has_effect(topic) for topic in TOPIC_SETTINGS
    )
