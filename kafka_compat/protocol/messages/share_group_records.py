"""Keys and values of the records of share groups (KIP-932) in `__consumer_offsets`. As in
`consumer_offsets.py`, the version of a key is the record type. Values have version 0.
"""

from kafka_compat.protocol import schema as s
from kafka_compat.protocol.zero_uuid import ZERO_UUID


@s.struct
class TopicPartitions:
    """Partitions of a topic, as in assignments."""

    topic_id: s.Uuid = ZERO_UUID
    partitions: list[s.Int32] = []


@s.data(versions="10")
class ShareGroupMemberMetadataKey:
    """The key of a member's subscription (key version 10)."""

    group_id: s.String = s.field("10+", default="")
    member_id: s.String = s.field("10+", default="")


@s.data(versions="0", flexible="0+")
class ShareGroupMemberMetadataValue:
    """A member and its subscription."""

    rack_id: s.NullableString = ""
    client_id: s.String = ""
    client_host: s.String = ""
    subscribed_topic_names: list[s.String] = []


@s.data(versions="11")
class ShareGroupMetadataKey:
    """The key of a share group (key version 11)."""

    group_id: s.String = s.field("11+", default="")


@s.data(versions="0", flexible="0+")
class ShareGroupMetadataValue:
    """The epoch of a group, and the hash of the topics to which its members subscribe (0: none)."""

    epoch: s.Int32 = 0
    metadata_hash: s.Int64 = 0


@s.data(versions="12")
class ShareGroupTargetAssignmentMetadataKey:
    """The key of a target assignment's epoch (key version 12)."""

    group_id: s.String = s.field("12+", default="")


@s.data(versions="0", flexible="0+")
class ShareGroupTargetAssignmentMetadataValue:
    """The group epoch for which the target assignment was computed, and when, in ms since the epoch."""

    assignment_epoch: s.Int32 = 0
    assignment_timestamp: s.Int64 = s.field("0+", default=0, tag=0)


@s.data(versions="13")
class ShareGroupTargetAssignmentMemberKey:
    """The key of a member's target assignment (key version 13)."""

    group_id: s.String = s.field("13+", default="")
    member_id: s.String = s.field("13+", default="")


@s.data(versions="0", flexible="0+")
class ShareGroupTargetAssignmentMemberValue:
    """The partitions that a member should have."""

    topic_partitions: list[TopicPartitions] = []


@s.data(versions="14")
class ShareGroupCurrentMemberAssignmentKey:
    """The key of a member's current assignment (key version 14)."""

    group_id: s.String = s.field("14+", default="")
    member_id: s.String = s.field("14+", default="")


@s.data(versions="0", flexible="0+")
class ShareGroupCurrentMemberAssignmentValue:
    """The epochs and partitions of a member. The state is always 0 (stable)."""

    member_epoch: s.Int32 = 0
    previous_member_epoch: s.Int32 = 0
    state: s.Int8 = 0
    assigned_partitions: list[TopicPartitions] = []


@s.data(versions="15")
class ShareGroupStatePartitionMetadataKey:
    """The key of the states of a group's share-partitions (key version 15)."""

    group_id: s.String = s.field("15+", default="")


@s.struct
class TopicPartitionsInfo:
    topic_id: s.Uuid = ZERO_UUID
    topic_name: s.String = ""
    partitions: list[s.Int32] = []


@s.struct
class TopicInfo:
    topic_id: s.Uuid = ZERO_UUID
    topic_name: s.String = ""


@s.data(versions="0", flexible="0+")
class ShareGroupStatePartitionMetadataValue:
    """The share-partitions whose state is being initialized, or is initialized, and the topics whose states
    are being deleted.
    """

    initializing_topics: list[TopicPartitionsInfo] = []
    initialized_topics: list[TopicPartitionsInfo] = []
    deleting_topics: list[TopicInfo] = []
