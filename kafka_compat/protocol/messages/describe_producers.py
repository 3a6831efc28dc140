"""DescribeProducers (API key 61): producers that are active in partitions (KIP-664)."""

from kafka_compat.protocol import schema as s
from kafka_compat.protocol.api_keys import ApiKey


@s.struct
class TopicRequest:
    name: s.String = ""
    partition_indexes: list[s.Int32] = []


@s.request(ApiKey.DESCRIBE_PRODUCERS, versions="0", flexible="0+")
class DescribeProducersRequest:
    """Clients send this request to the leaders of the partitions."""

    topics: list[TopicRequest] = []


@s.struct
class ProducerState:
    """A producer that has written to the partition and has not expired. Unknown or missing values are -1."""

    producer_id: s.Int64 = 0
    producer_epoch: s.Int32 = 0
    last_sequence: s.Int32 = -1
    last_timestamp: s.Int64 = -1
    coordinator_epoch: s.Int32 = 0
    current_txn_start_offset: s.Int64 = -1


@s.struct
class PartitionResponse:
    partition_index: s.Int32 = 0
    error_code: s.Int16 = 0
    error_message: s.NullableString = None
    active_producers: list[ProducerState] = []


@s.struct
class TopicResponse:
    name: s.String = ""
    partitions: list[PartitionResponse] = []


@s.response(ApiKey.DESCRIBE_PRODUCERS, versions="0", flexible="0+")
class DescribeProducersResponse:
    throttle_time_ms: s.Int32 = 0
    topics: list[TopicResponse] = []
