"""DescribeLogDirs (API key 35): sizes of the log directories of one broker and of the replicas in them."""

from kafka_compat.protocol.api_keys import ApiKey
from kafka_compat.protocol.schema import Bool, Int16, Int32, Int64, String, field, request, response, struct


@struct
class DescribableLogDirTopic:
    """Partitions of one topic."""

    topic: String = ""
    partitions: list[Int32] = []


@request(ApiKey.DESCRIBE_LOG_DIRS, versions="0-4", flexible="2+")
class DescribeLogDirsRequest:
    """Null `topics` asks for all. Version 3 adds the error of the whole request, version 4 the sizes of the
    volume.
    """

    topics: list[DescribableLogDirTopic] | None = []


@struct
class DescribeLogDirsPartition:
    """One replica. `offset_lag` is how far it is behind the high watermark, or, for a future replica, behind
    the current one.
    """

    partition_index: Int32 = 0
    partition_size: Int64 = 0
    offset_lag: Int64 = 0
    is_future_key: Bool = False


@struct
class DescribeLogDirsTopic:
    """Partitions of one topic."""

    name: String = ""
    partitions: list[DescribeLogDirsPartition] = []


@struct
class DescribeLogDirsResult:
    """One directory. `total_bytes` and `usable_bytes` are of its volume, -1 when unknown (KIP-827)."""

    error_code: Int16 = 0
    log_dir: String = ""
    topics: list[DescribeLogDirsTopic] = []
    total_bytes: Int64 = field("4+", default=-1)
    usable_bytes: Int64 = field("4+", default=-1)


@response(ApiKey.DESCRIBE_LOG_DIRS, versions="0-4", flexible="2+")
class DescribeLogDirsResponse:
    """One result per log directory."""

    throttle_time_ms: Int32 = 0
    error_code: Int16 = field("3+", default=0)
    results: list[DescribeLogDirsResult] = []
