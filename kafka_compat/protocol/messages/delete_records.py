"""DeleteRecords (API key 21): delete records before an offset (KIP-107)."""

from kafka_compat.protocol import schema as s
from kafka_compat.protocol.api_keys import ApiKey


@s.struct
class DeleteRecordsPartition:
    """Records before `offset` are deleted. -1 means the high watermark."""

    partition_index: s.Int32 = 0
    offset: s.Int64 = 0


@s.struct
class DeleteRecordsTopic:
    name: s.String = ""
    partitions: list[DeleteRecordsPartition] = []


@s.request(ApiKey.DELETE_RECORDS, versions="0-2", flexible="2+")
class DeleteRecordsRequest:
    """Clients send this request to leaders, which respond when all live replicas have deleted the records."""

    topics: list[DeleteRecordsTopic] = []
    timeout_ms: s.Int32 = 0


@s.struct
class DeleteRecordsPartitionResult:
    """`low_watermark` is the lowest log start offset of all live replicas, or -1 after an error."""

    partition_index: s.Int32 = 0
    low_watermark: s.Int64 = 0
    error_code: s.Int16 = 0


@s.struct
class DeleteRecordsTopicResult:
    name: s.String = ""
    partitions: list[DeleteRecordsPartitionResult] = []


@s.response(ApiKey.DELETE_RECORDS, versions="0-2", flexible="2+")
class DeleteRecordsResponse:
    throttle_time_ms: s.Int32 = 0
    topics: list[DeleteRecordsTopicResult] = []
