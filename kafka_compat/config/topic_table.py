"""All topic settings of Kafka 3.9.1, that of Kafka 4.4 for dead letters (errors.deadletterqueue.*), and their
defaults, in the columns of broker_table.py except for the update mode.
"""

TOPIC_TABLE = """
segment.bytes int 1073741824 medium works [14,...] # Size in bytes at which a segment is closed and a new segment is created.
segment.ms long 604800000 medium works [1,...] # Time in milliseconds after which a segment is closed even if it is not full.
segment.jitter.ms long 0 medium works [0,...] # Maximum random jitter in milliseconds that is subtracted from segment.ms. The default is no jitter.
segment.index.bytes int 10485760 medium works [4,...] # Maximum size of the index of a segment, in bytes. When the index is full, the segment is closed.
flush.messages long 9223372036854775807 medium works [1,...] # Number of records after which a log is flushed to disk (fsync). 1: the log is flushed after each request. By default, the operating system decides when to flush.
flush.ms long 9223372036854775807 medium works [0,...] # Time in milliseconds after which a record is flushed to disk (fsync). By default, the operating system decides when to flush.
retention.bytes long -1 medium works # Maximum size of a partition, in bytes. Above this limit, its oldest segments are deleted. -1: no limit.
retention.ms long 604800000 medium works [-1,...] # Time in milliseconds that records are kept. -1: no limit.
max.message.bytes int 1048588 medium works [0,...] # Maximum size of a compressed record batch, in bytes. Larger batches are rejected.
index.interval.bytes int 4096 medium works [0,...] # Number of bytes in the log between two entries of its offset index. A smaller value makes lookups more precise and the index larger.
delete.retention.ms long 86400000 medium works [0,...] # Time in milliseconds that the tombstone of a deleted key is kept in a compacted topic.
min.compaction.lag.ms long 0 medium works [0,...] # Minimum time in milliseconds before a record may be compacted.
max.compaction.lag.ms long 9223372036854775807 medium works [1,...] # Maximum time in milliseconds that a record may wait for compaction. The default is no limit.
file.delete.delay.ms long 60000 medium works [0,...] # Time in milliseconds that the files of a deleted segment stay on disk, so that reads in progress can finish.
min.cleanable.dirty.ratio double 0.5 medium works [0,...,1] # Minimum fraction of a log that must be uncompacted before the log is compacted again.
cleanup.policy list delete medium works one-of:compact,delete # Policy for removing old records. delete: by age and size. compact: by key. Both may be set.
unclean.leader.election.enable boolean false medium works # Whether an out-of-sync replica may become leader if no in-sync replica is alive. true: acknowledged records may be lost.
min.insync.replicas int 1 medium works [1,...] # Minimum number of in-sync replicas for writes with acks=all. With fewer in-sync replicas, these writes fail with NOT_ENOUGH_REPLICAS.
compression.type string producer medium works one-of:uncompressed,zstd,lz4,snappy,gzip,producer # Compression codec of stored batches. producer: batches are stored as the producer sent them.
compression.gzip.level int -1 medium works -1|[1,...,9] # Compression level if compression.type is gzip. 1: fastest. 9: smallest. -1: zlib's default level.
compression.lz4.level int 9 medium works [1,...,17] # Compression level if compression.type is lz4. 9: fastest. Any other level: slower, and smaller the higher the level.
compression.zstd.level int 3 medium works [-131072,...,22] # Compression level if compression.type is zstd. A higher level makes batches smaller and compression slower.
preallocate boolean false medium stored
message.format.version string 3.0-IV1 medium unneeded version
message.timestamp.type string CreateTime medium works one-of:CreateTime,LogAppendTime # Timestamp of records. CreateTime: set by the producer. LogAppendTime: set by the broker.
message.timestamp.difference.max.ms long 9223372036854775807 medium works [0,...] # Deprecated. Limit in milliseconds that replaces message.timestamp.before.max.ms and message.timestamp.after.max.ms where these settings have no limit.
message.timestamp.before.max.ms long 9223372036854775807 medium works [0,...] # Maximum time in milliseconds that a record's timestamp may be behind the broker's clock; records with earlier timestamps are rejected. The default is no limit.
message.timestamp.after.max.ms long 9223372036854775807 medium works [0,...] # Maximum time in milliseconds that a record's timestamp may be ahead of the broker's clock; records with later timestamps are rejected. The default is no limit.
leader.replication.throttled.replicas list "" medium works throttled-replicas # Leader replicas that are throttled to leader.replication.throttled.rate. Format: PARTITION:BROKER,PARTITION:BROKER, or * for all replicas. Empty: none.
follower.replication.throttled.replicas list "" medium works throttled-replicas # Follower replicas that are throttled to follower.replication.throttled.rate. Format: PARTITION:BROKER,PARTITION:BROKER, or * for all replicas. Empty: none.
message.downconversion.enable boolean true low works # Whether batches are converted to an older format if a consumer uses Fetch version 0 to 3. false: the consumer receives UNSUPPORTED_VERSION.
remote.storage.enable boolean false medium stored
local.retention.ms long -2 medium stored [-2,...]
local.retention.bytes long -2 medium stored [-2,...]
remote.log.copy.disable boolean false medium stored
remote.log.delete.on.disable boolean false medium stored
errors.deadletterqueue.group.enable boolean false medium works # Whether share groups may write dead letters to this topic (KIP-1191). DescribeConfigs returns this setting only for topics that set it, or if it is requested by name.
"""  # noqa: E501

#: Maps topic settings to the broker settings that provide their defaults, in order of precedence (later
#: settings have larger units). Topic settings that are missing here have no broker-wide default.
SERVER_SYNONYMS: dict[str, tuple[str, ...]] = {
    "segment.bytes": ("log.segment.bytes",),
    "segment.ms": ("log.roll.ms", "log.roll.hours"),
    "segment.jitter.ms": ("log.roll.jitter.ms", "log.roll.jitter.hours"),
    "segment.index.bytes": ("log.index.size.max.bytes",),
    "flush.messages": ("log.flush.interval.messages",),
    "flush.ms": ("log.flush.interval.ms", "log.flush.scheduler.interval.ms"),
    "retention.bytes": ("log.retention.bytes",),
    "retention.ms": ("log.retention.ms", "log.retention.minutes", "log.retention.hours"),
    "max.message.bytes": ("message.max.bytes",),
    "index.interval.bytes": ("log.index.interval.bytes",),
    "delete.retention.ms": ("log.cleaner.delete.retention.ms",),
    "min.compaction.lag.ms": ("log.cleaner.min.compaction.lag.ms",),
    "max.compaction.lag.ms": ("log.cleaner.max.compaction.lag.ms",),
    "file.delete.delay.ms": ("log.segment.delete.delay.ms",),
    "min.cleanable.dirty.ratio": ("log.cleaner.min.cleanable.ratio",),
    "cleanup.policy": ("log.cleanup.policy",),
    "unclean.leader.election.enable": ("unclean.leader.election.enable",),
    "min.insync.replicas": ("min.insync.replicas",),
    "compression.type": ("compression.type",),
    "compression.gzip.level": ("compression.gzip.level",),
    "compression.lz4.level": ("compression.lz4.level",),
    "compression.zstd.level": ("compression.zstd.level",),
    "preallocate": ("log.preallocate",),
    "message.format.version": ("log.message.format.version",),
    "message.timestamp.type": ("log.message.timestamp.type",),
    "message.timestamp.difference.max.ms": ("log.message.timestamp.difference.max.ms",),
    "message.timestamp.before.max.ms": ("log.message.timestamp.before.max.ms",),
    "message.timestamp.after.max.ms": ("log.message.timestamp.after.max.ms",),
    "message.downconversion.enable": ("log.message.downconversion.enable",),
    "local.retention.ms": ("log.local.retention.ms",),
    "local.retention.bytes": ("log.local.retention.bytes",),
}
