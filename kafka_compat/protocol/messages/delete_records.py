"""DeleteRecords (API key 21): move the log start offset of partitions forward (KIP-107)."""

from kafka_compat.protocol.api_keys import ApiKey
from kafka_compat.protocol.schema import Int16, Int32, Int64, String, request, response, struct


@struct
class DeleteRecordsPartition:
    """Records before `offset` go; -1 is the high watermark."""

    partition_index: Int32 = 0
    offset: Int64 = 0


@struct
class DeleteRecordsTopic:
    """Partitions of one topic."""

    name: String = ""
    partitions: list[DeleteRecordsPartition] = []


@request(ApiKey.DELETE_RECORDS, versions="0-2", flexible="2+")
class DeleteRecordsRequest:
    """Sent to the leaders of the partitions; answered when all replicas have followed."""

    topics: list[DeleteRecordsTopic] = []
    timeout_ms: Int32 = 0


@struct
class DeleteRecordsPartitionResult:
    """`low_watermark` is the lowest log start offset of all live replicas, -1 with an error."""

    partition_index: Int32 = 0
    low_watermark: Int64 = 0
    error_code: Int16 = 0


@struct
class DeleteRecordsTopicResult:
    """Partitions of one topic."""

    name: String = ""
    partitions: list[DeleteRecordsPartitionResult] = []


@response(ApiKey.DELETE_RECORDS, versions="0-2", flexible="2+")
class DeleteRecordsResponse:
    """Topics are answered one by one."""

    throttle_time_ms: Int32 = 0
    topics: list[DeleteRecordsTopicResult] = []
