"""ConsumerGroupHeartbeat (API key 68): stay in a group with the consumer rebalance protocol (KIP-848)."""

from kafka_compat.protocol import schema as s
from kafka_compat.protocol.api_keys import ApiKey
from kafka_compat.protocol.zero_uuid import ZERO_UUID


@s.struct
class TopicPartitions:
    topic_id: s.Uuid = ZERO_UUID
    partitions: list[s.Int32] = []


@s.request(ApiKey.CONSUMER_GROUP_HEARTBEAT, versions="0-1", flexible="0+")
class ConsumerGroupHeartbeatRequest:
    """member_epoch is 0 to join, -1 to leave, or -2 to leave temporarily as a static member. Fields that have
    not changed since the last heartbeat are null (rebalance_timeout_ms: -1). In version 1 and later, the
    member generates its own ID, and may subscribe by a regular expression that the broker evaluates.
    """

    group_id: s.String = ""
    member_id: s.String = ""
    member_epoch: s.Int32 = 0
    instance_id: s.NullableString = None
    rack_id: s.NullableString = None
    rebalance_timeout_ms: s.Int32 = -1
    subscribed_topic_names: list[s.String] | None = None
    subscribed_topic_regex: s.NullableString = s.field("1+", default=None)
    server_assignor: s.NullableString = None
    topic_partitions: list[TopicPartitions] | None = None


@s.struct
class Assignment:
    """The complete target assignment of the member."""

    topic_partitions: list[TopicPartitions] = []


@s.response(ApiKey.CONSUMER_GROUP_HEARTBEAT, versions="0-1", flexible="0+")
class ConsumerGroupHeartbeatResponse:
    """`assignment` is null if the member's assignment has not changed."""

    throttle_time_ms: s.Int32 = 0
    error_code: s.Int16 = 0
    error_message: s.NullableString = None
    member_id: s.NullableString = None
    member_epoch: s.Int32 = 0
    heartbeat_interval_ms: s.Int32 = 0
    assignment: Assignment | None = None
