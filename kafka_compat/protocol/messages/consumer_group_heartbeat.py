"""ConsumerGroupHeartbeat (API key 68): join, stay in and leave a group of the new consumer protocol
(KIP-848).
"""

from kafka_compat.protocol.api_keys import ApiKey
from kafka_compat.protocol.schema import (
    ZERO_UUID,
    Int16,
    Int32,
    NullableString,
    String,
    Uuid,
    field,
    request,
    response,
    struct,
)


@struct
class TopicPartitions:
    """Partitions of one topic."""

    topic_id: Uuid = ZERO_UUID
    partitions: list[Int32] = []


@request(ApiKey.CONSUMER_GROUP_HEARTBEAT, versions="0-1", flexible="0+")
class ConsumerGroupHeartbeatRequest:
    """member_epoch: 0 joins, -1 leaves, -2 leaves for a while as a static member. Fields that have not
    changed since the last heartbeat are null, rebalance_timeout_ms is -1.
    Since version 1 the member makes its own id, and may subscribe by a regular expression of the broker.
    """

    group_id: String = ""
    member_id: String = ""
    member_epoch: Int32 = 0
    instance_id: NullableString = None
    rack_id: NullableString = None
    rebalance_timeout_ms: Int32 = -1
    subscribed_topic_names: list[String] | None = None
    subscribed_topic_regex: NullableString = field("1+", default=None)
    server_assignor: NullableString = None
    topic_partitions: list[TopicPartitions] | None = None


@struct
class Assignment:
    """All partitions that the member shall have."""

    topic_partitions: list[TopicPartitions] = []


@response(ApiKey.CONSUMER_GROUP_HEARTBEAT, versions="0-1", flexible="0+")
class ConsumerGroupHeartbeatResponse:
    """`assignment` is null while the member has already been told."""

    throttle_time_ms: Int32 = 0
    error_code: Int16 = 0
    error_message: NullableString = None
    member_id: NullableString = None
    member_epoch: Int32 = 0
    heartbeat_interval_ms: Int32 = 0
    assignment: Assignment | None = None
