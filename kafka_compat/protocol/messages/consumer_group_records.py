"""Keys and values of the records of consumer groups (KIP-848) in `__consumer_offsets`. As in
`consumer_offsets.py`, the version of a key is the record type. Values have version 0.
"""

from kafka_compat.protocol import schema as s
from kafka_compat.protocol.zero_uuid import ZERO_UUID


@s.data(versions="3")
class ConsumerGroupMetadataKey:
    """The key of a consumer group (key version 3)."""

    group_id: s.String = s.field("3+", default="")


@s.data(versions="0", flexible="0+")
class ConsumerGroupMetadataValue:
    """The epoch of a group, and the hash of the topics to which its members subscribe (0: none)."""

    epoch: s.Int32 = 0
    metadata_hash: s.Int64 = s.field("0+", default=0, tag=0)


@s.data(versions="4")
class ConsumerGroupPartitionMetadataKey:
    """The key of a group's topics (key version 4), which Kafka 4.1 and later versions only delete."""

    group_id: s.String = s.field("4+", default="")


@s.struct
class PartitionMetadata:
    partition: s.Int32 = 0
    racks: list[s.String] = []


@s.struct
class TopicMetadata:
    topic_id: s.Uuid = ZERO_UUID
    topic_name: s.String = ""
    num_partitions: s.Int32 = 0
    partition_metadata: list[PartitionMetadata] = []


@s.data(versions="0", flexible="0+")
class ConsumerGroupPartitionMetadataValue:
    """The topics to which a group subscribed, as Kafka 4.0 wrote them. The metadata hash replaces them."""

    topics: list[TopicMetadata] = []


@s.data(versions="5")
class ConsumerGroupMemberMetadataKey:
    """The key of a member's subscription (key version 5)."""

    group_id: s.String = s.field("5+", default="")
    member_id: s.String = s.field("5+", default="")


@s.struct
class ClassicProtocol:
    name: s.String = ""
    metadata: s.Bytes = b""


@s.struct
class ClassicMemberMetadata:
    """The session timeout in ms and the protocols of a member that uses the classic protocol."""

    session_timeout_ms: s.Int32 = 0
    supported_protocols: list[ClassicProtocol] = []


@s.data(versions="0", flexible="0+")
class ConsumerGroupMemberMetadataValue:
    """A member and its subscription. `classic_member_metadata` is null for members that use the consumer
    protocol.
    """

    instance_id: s.NullableString = ""
    rack_id: s.NullableString = ""
    client_id: s.String = ""
    client_host: s.String = ""
    subscribed_topic_names: list[s.String] = []
    subscribed_topic_regex: s.NullableString = ""
    rebalance_timeout_ms: s.Int32 = -1
    server_assignor: s.NullableString = ""
    classic_member_metadata: ClassicMemberMetadata | None = s.field(
        "0+", default_factory=ClassicMemberMetadata, tag=0
    )


@s.data(versions="6")
class ConsumerGroupTargetAssignmentMetadataKey:
    """The key of a target assignment's epoch (key version 6)."""

    group_id: s.String = s.field("6+", default="")


@s.data(versions="0", flexible="0+")
class ConsumerGroupTargetAssignmentMetadataValue:
    """The group epoch for which the target assignment was computed, and when, in ms since the epoch."""

    assignment_epoch: s.Int32 = 0
    assignment_timestamp: s.Int64 = s.field("0+", default=0, tag=0)


@s.data(versions="7")
class ConsumerGroupTargetAssignmentMemberKey:
    """The key of a member's target assignment (key version 7)."""

    group_id: s.String = s.field("7+", default="")
    member_id: s.String = s.field("7+", default="")


@s.struct
class TopicPartition:
    topic_id: s.Uuid = ZERO_UUID
    partitions: list[s.Int32] = []


@s.data(versions="0", flexible="0+")
class ConsumerGroupTargetAssignmentMemberValue:
    """The partitions that a member should have."""

    topic_partitions: list[TopicPartition] = []


@s.data(versions="8")
class ConsumerGroupCurrentMemberAssignmentKey:
    """The key of a member's current assignment (key version 8)."""

    group_id: s.String = s.field("8+", default="")
    member_id: s.String = s.field("8+", default="")


@s.struct
class TopicPartitions:
    """`assignment_epochs` contains, for each partition, the epoch at which it was assigned to the member
    (KIP-1251), or is null in records of Kafka 4.2 and earlier versions.
    """

    topic_id: s.Uuid = ZERO_UUID
    partitions: list[s.Int32] = []
    assignment_epochs: list[s.Int32] | None = s.field("0+", default=[], tag=0)


@s.data(versions="0", flexible="0+")
class ConsumerGroupCurrentMemberAssignmentValue:
    """The epochs and partitions of a member. State 0 is stable, 1: the member must revoke partitions, 2: it
    waits for partitions that other members have not released.
    """

    member_epoch: s.Int32 = 0
    previous_member_epoch: s.Int32 = 0
    state: s.Int8 = 0
    assigned_partitions: list[TopicPartitions] = []
    partitions_pending_revocation: list[TopicPartitions] = []


@s.data(versions="16")
class ConsumerGroupRegularExpressionKey:
    """The key of a resolved regular expression (key version 16)."""

    group_id: s.String = s.field("16+", default="")
    regular_expression: s.String = s.field("16+", default="")


@s.data(versions="0", flexible="0+")
class ConsumerGroupRegularExpressionValue:
    """The topics that match a regular expression, the version of the metadata with which it was resolved, and
    the time in ms since the epoch.
    """

    topics: list[s.String] = []
    version: s.Int64 = 0
    timestamp: s.Int64 = 0
