"""DescribeTopicPartitions (API key 75): topics and partitions, a page at a time (KIP-966)."""

from kafka_compat.protocol.api_keys import ApiKey
from kafka_compat.protocol.schema import (
    ZERO_UUID,
    Bool,
    Int16,
    Int32,
    NullableString,
    String,
    Uuid,
    request,
    response,
    struct,
)


@struct
class TopicRequest:
    """A topic by its name."""

    name: String = ""


@struct
class Cursor:
    """The partition that a page starts with."""

    topic_name: String = ""
    partition_index: Int32 = 0


@request(ApiKey.DESCRIBE_TOPIC_PARTITIONS, versions="0", flexible="0+")
class DescribeTopicPartitionsRequest:
    """No topics asks for all. Topics are sorted by name; a page has at most `response_partition_limit`
    partitions.
    """

    topics: list[TopicRequest] = []
    response_partition_limit: Int32 = 2000
    cursor: Cursor | None = None


@struct
class DescribeTopicPartitionsResponsePartition:
    """One partition, with the eligible leader replicas of KIP-966 (null where there are none)."""

    error_code: Int16 = 0
    partition_index: Int32 = 0
    leader_id: Int32 = 0
    leader_epoch: Int32 = -1
    replica_nodes: list[Int32] = []
    isr_nodes: list[Int32] = []
    eligible_leader_replicas: list[Int32] | None = None
    last_known_elr: list[Int32] | None = None
    offline_replicas: list[Int32] = []


@struct
class DescribeTopicPartitionsResponseTopic:
    """One topic."""

    error_code: Int16 = 0
    name: NullableString = ""
    topic_id: Uuid = ZERO_UUID
    is_internal: Bool = False
    partitions: list[DescribeTopicPartitionsResponsePartition] = []
    topic_authorized_operations: Int32 = -2147483648


@response(ApiKey.DESCRIBE_TOPIC_PARTITIONS, versions="0", flexible="0+")
class DescribeTopicPartitionsResponse:
    """`next_cursor` is null on the last page."""

    throttle_time_ms: Int32 = 0
    topics: list[DescribeTopicPartitionsResponseTopic] = []
    next_cursor: Cursor | None = None
