"""DescribeTopicPartitions (API key 75): return topics and partitions, one page at a time (KIP-966)."""

from kafka_compat.protocol import schema as s
from kafka_compat.protocol.api_keys import ApiKey
from kafka_compat.protocol.zero_uuid import ZERO_UUID


@s.struct
class TopicRequest:
    name: s.String = ""


@s.struct
class Cursor:
    """The partition with which a page starts."""

    topic_name: s.String = ""
    partition_index: s.Int32 = 0


@s.request(ApiKey.DESCRIBE_TOPIC_PARTITIONS, versions="0", flexible="0+")
class DescribeTopicPartitionsRequest:
    """An empty `topics` list requests all topics. Topics are sorted by name. A page has at most
    `response_partition_limit` partitions.
    """

    topics: list[TopicRequest] = []
    response_partition_limit: s.Int32 = 2000
    cursor: Cursor | None = None


@s.struct
class DescribeTopicPartitionsResponsePartition:
    """One partition. `eligible_leader_replicas` is null if there are none (KIP-966)."""

    error_code: s.Int16 = 0
    partition_index: s.Int32 = 0
    leader_id: s.Int32 = 0
    leader_epoch: s.Int32 = -1
    replica_nodes: list[s.Int32] = []
    isr_nodes: list[s.Int32] = []
    eligible_leader_replicas: list[s.Int32] | None = None
    last_known_elr: list[s.Int32] | None = None
    offline_replicas: list[s.Int32] = []


@s.struct
class DescribeTopicPartitionsResponseTopic:
    error_code: s.Int16 = 0
    name: s.NullableString = ""
    topic_id: s.Uuid = ZERO_UUID
    is_internal: s.Bool = False
    partitions: list[DescribeTopicPartitionsResponsePartition] = []
    topic_authorized_operations: s.Int32 = -2147483648


@s.response(ApiKey.DESCRIBE_TOPIC_PARTITIONS, versions="0", flexible="0+")
class DescribeTopicPartitionsResponse:
    """`next_cursor` is null on the last page."""

    throttle_time_ms: s.Int32 = 0
    topics: list[DescribeTopicPartitionsResponseTopic] = []
    next_cursor: Cursor | None = None
