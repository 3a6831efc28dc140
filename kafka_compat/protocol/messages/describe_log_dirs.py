"""DescribeLogDirs (API key 35): sizes of one broker's log directories and of the replicas in them."""

from kafka_compat.protocol import schema as s
from kafka_compat.protocol.api_keys import ApiKey


@s.struct
class DescribableLogDirTopic:
    topic: s.String = ""
    partitions: list[s.Int32] = []


@s.request(ApiKey.DESCRIBE_LOG_DIRS, versions="0-5", flexible="2+")
class DescribeLogDirsRequest:
    """Null `topics` requests all replicas. Version 3 adds a top-level error, and version 4 volume sizes."""

    topics: list[DescribableLogDirTopic] | None = []


@s.struct
class DescribeLogDirsPartition:
    """One replica. `offset_lag` is its lag behind the high watermark or, for a future replica, behind the
    current replica.
    """

    partition_index: s.Int32 = 0
    partition_size: s.Int64 = 0
    offset_lag: s.Int64 = 0
    is_future_key: s.Bool = False


@s.struct
class DescribeLogDirsTopic:
    name: s.String = ""
    partitions: list[DescribeLogDirsPartition] = []


@s.struct
class DescribeLogDirsResult:
    """A log directory. `total_bytes` and `usable_bytes` describe its volume; -1 means unknown (KIP-827). A
    cordoned directory gets no new replicas (KIP-1066).
    """

    error_code: s.Int16 = 0
    log_dir: s.String = ""
    topics: list[DescribeLogDirsTopic] = []
    total_bytes: s.Int64 = s.field("4+", default=-1)
    usable_bytes: s.Int64 = s.field("4+", default=-1)
    is_cordoned: s.Bool = s.field("5+", default=False)


@s.response(ApiKey.DESCRIBE_LOG_DIRS, versions="0-5", flexible="2+")
class DescribeLogDirsResponse:
    throttle_time_ms: s.Int32 = 0
    error_code: s.Int16 = s.field("3+", default=0)
    results: list[DescribeLogDirsResult] = []
