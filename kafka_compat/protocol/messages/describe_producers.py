"""DescribeProducers (API key 61): producers that are active in partitions (KIP-664)."""

from kafka_compat.protocol.api_keys import ApiKey
from kafka_compat.protocol.schema import (
    Int16,
    Int32,
    Int64,
    NullableString,
    String,
    request,
    response,
    struct,
)


@struct
class TopicRequest:
    """Partitions of one topic."""

    name: String = ""
    partition_indexes: list[Int32] = []


@request(ApiKey.DESCRIBE_PRODUCERS, versions="0", flexible="0+")
class DescribeProducersRequest:
    """Sent to the leaders of the partitions."""

    topics: list[TopicRequest] = []


@struct
class ProducerState:
    """A producer that has written to the partition and has not expired. -1 stands for unknown or none."""

    producer_id: Int64 = 0
    producer_epoch: Int32 = 0
    last_sequence: Int32 = -1
    last_timestamp: Int64 = -1
    coordinator_epoch: Int32 = 0
    current_txn_start_offset: Int64 = -1


@struct
class PartitionResponse:
    """The producers of one partition."""

    partition_index: Int32 = 0
    error_code: Int16 = 0
    error_message: NullableString = None
    active_producers: list[ProducerState] = []


@struct
class TopicResponse:
    """Partitions of one topic."""

    name: String = ""
    partitions: list[PartitionResponse] = []


@response(ApiKey.DESCRIBE_PRODUCERS, versions="0", flexible="0+")
class DescribeProducersResponse:
    """Topics are answered one by one."""

    throttle_time_ms: Int32 = 0
    topics: list[TopicResponse] = []
