"""ConsumerGroupDescribe (API key 69): describe groups that use the consumer rebalance protocol (KIP-848)."""

from kafka_compat.protocol import schema as s
from kafka_compat.protocol.api_keys import ApiKey
from kafka_compat.protocol.zero_uuid import ZERO_UUID


@s.request(ApiKey.CONSUMER_GROUP_DESCRIBE, versions="0-1", flexible="0+")
class ConsumerGroupDescribeRequest:
    """Version 1 adds the member type to the response (KIP-1099)."""

    group_ids: list[s.String] = []
    include_authorized_operations: s.Bool = False


@s.struct
class TopicPartitions:
    topic_id: s.Uuid = ZERO_UUID
    topic_name: s.String = ""
    partitions: list[s.Int32] = []


@s.struct
class Assignment:
    topic_partitions: list[TopicPartitions] = []


@s.struct
class Member:
    """A member and its current and target assignments. Type -1 is unknown, 0 is classic, 1 is consumer."""

    member_id: s.String = ""
    instance_id: s.NullableString = None
    rack_id: s.NullableString = None
    member_epoch: s.Int32 = 0
    client_id: s.String = ""
    client_host: s.String = ""
    subscribed_topic_names: list[s.String] = []
    subscribed_topic_regex: s.NullableString = None
    assignment: Assignment = s.field(default_factory=Assignment)
    target_assignment: Assignment = s.field(default_factory=Assignment)
    member_type: s.Int8 = s.field("1+", default=-1)


@s.struct
class DescribedGroup:
    """One group. authorized_operations is a bit field of ACL operations, or the lowest int32 if it was not
    requested.
    """

    error_code: s.Int16 = 0
    error_message: s.NullableString = None
    group_id: s.String = ""
    group_state: s.String = ""
    group_epoch: s.Int32 = 0
    assignment_epoch: s.Int32 = 0
    assignor_name: s.String = ""
    members: list[Member] = []
    authorized_operations: s.Int32 = -2147483648


@s.response(ApiKey.CONSUMER_GROUP_DESCRIBE, versions="0-1", flexible="0+")
class ConsumerGroupDescribeResponse:
    throttle_time_ms: s.Int32 = 0
    groups: list[DescribedGroup] = []
