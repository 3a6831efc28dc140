"""ConsumerGroupDescribe (API key 69): describe groups of the new consumer protocol (KIP-848)."""

from kafka_compat.protocol.api_keys import ApiKey
from kafka_compat.protocol.schema import (
    ZERO_UUID,
    Bool,
    Int8,
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


@request(ApiKey.CONSUMER_GROUP_DESCRIBE, versions="0-1", flexible="0+")
class ConsumerGroupDescribeRequest:
    """Version 1 adds the member type to the answer (KIP-1099)."""

    group_ids: list[String] = []
    include_authorized_operations: Bool = False


@struct
class TopicPartitions:
    """Partitions of one topic."""

    topic_id: Uuid = ZERO_UUID
    topic_name: String = ""
    partitions: list[Int32] = []


@struct
class Assignment:
    """The partitions of a member."""

    topic_partitions: list[TopicPartitions] = []


@struct
class Member:
    """A member with what it has and what it shall have. member_type: -1 unknown, 0 classic, 1 consumer."""

    member_id: String = ""
    instance_id: NullableString = None
    rack_id: NullableString = None
    member_epoch: Int32 = 0
    client_id: String = ""
    client_host: String = ""
    subscribed_topic_names: list[String] = []
    subscribed_topic_regex: NullableString = None
    assignment: Assignment = field(default_factory=Assignment)
    target_assignment: Assignment = field(default_factory=Assignment)
    member_type: Int8 = field("1+", default=-1)


@struct
class DescribedGroup:
    """One group. authorized_operations is a bit field of ACL operations; the lowest int32 when not
    asked for.
    """

    error_code: Int16 = 0
    error_message: NullableString = None
    group_id: String = ""
    group_state: String = ""
    group_epoch: Int32 = 0
    assignment_epoch: Int32 = 0
    assignor_name: String = ""
    members: list[Member] = []
    authorized_operations: Int32 = -2147483648


@response(ApiKey.CONSUMER_GROUP_DESCRIBE, versions="0-1", flexible="0+")
class ConsumerGroupDescribeResponse:
    """Groups are answered one by one."""

    throttle_time_ms: Int32 = 0
    groups: list[DescribedGroup] = []
