"""Every topic setting of Kafka 3.9.1, in the columns of broker_table.py less the fifth, and its broker-wide
defaults."""

TOPIC_TABLE = """
segment.bytes int 1073741824 medium works [14,...]
segment.ms long 604800000 medium works [1,...]
segment.jitter.ms long 0 medium works [0,...]
segment.index.bytes int 10485760 medium works [4,...]
flush.messages long 9223372036854775807 medium works [1,...]
flush.ms long 9223372036854775807 medium works [0,...]
retention.bytes long -1 medium works
retention.ms long 604800000 medium works [-1,...]
max.message.bytes int 1048588 medium works [0,...]
index.interval.bytes int 4096 medium works [0,...]
delete.retention.ms long 86400000 medium works [0,...]
min.compaction.lag.ms long 0 medium works [0,...]
max.compaction.lag.ms long 9223372036854775807 medium works [1,...]
file.delete.delay.ms long 60000 medium works [0,...]
min.cleanable.dirty.ratio double 0.5 medium works [0,...,1]
cleanup.policy list delete medium works one-of:compact,delete
unclean.leader.election.enable boolean false medium works
min.insync.replicas int 1 medium works [1,...]
compression.type string producer medium works one-of:uncompressed,zstd,lz4,snappy,gzip,producer
compression.gzip.level int -1 medium stored -1|[1,...,9]
compression.lz4.level int 9 medium stored [1,...,17]
compression.zstd.level int 3 medium stored [-131072,...,22]
preallocate boolean false medium stored
message.format.version string 3.0-IV1 medium unneeded version
message.timestamp.type string CreateTime medium works one-of:CreateTime,LogAppendTime
message.timestamp.difference.max.ms long 9223372036854775807 medium works [0,...]
message.timestamp.before.max.ms long 9223372036854775807 medium works [0,...]
message.timestamp.after.max.ms long 9223372036854775807 medium works [0,...]
leader.replication.throttled.replicas list "" medium works throttled-replicas
follower.replication.throttled.replicas list "" medium works throttled-replicas
message.downconversion.enable boolean true low works
remote.storage.enable boolean false medium stored
local.retention.ms long -2 medium stored [-2,...]
local.retention.bytes long -2 medium stored [-2,...]
remote.log.copy.disable boolean false medium stored
remote.log.delete.on.disable boolean false medium stored
"""

#: topic setting -> the broker settings that give its default, the strongest first (the later ones in a
#: coarser unit: hours, minutes). Settings that are missing here have no broker-wide default.
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
