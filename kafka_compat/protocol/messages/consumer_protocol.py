"""What consumers put into JoinGroup and SyncGroup: opaque to a broker, except for OffsetDelete and tools."""

from kafka_compat.protocol.schema import Int32, NullableBytes, NullableString, String, data, field, struct


@struct
class TopicPartition:
    """Partitions of one topic."""

    topic: String = field("1+", default="")
    partitions: list[Int32] = field("1+", default=[])


@data(versions="0-3")
class ConsumerProtocolSubscription:
    """The metadata of a member in JoinGroup. Version 1 tells what the member still owns (cooperative
    rebalancing, KIP-429), version 2 in which generation it got that (KIP-792), version 3 its rack (KIP-881).
    """

    topics: list[String] = []
    user_data: NullableBytes = None
    owned_partitions: list[TopicPartition] = field("1+", default=[])
    generation_id: Int32 = field("2+", default=-1)
    rack_id: NullableString = field("3+", default=None)


@struct
class ConsumerProtocolAssignmentTopicPartition:
    """Partitions of one topic."""

    topic: String = ""
    partitions: list[Int32] = []


@data(versions="0-3")
class ConsumerProtocolAssignment:
    """The assignment of a member in SyncGroup. All versions have the same fields."""

    assigned_partitions: list[ConsumerProtocolAssignmentTopicPartition] = []
    user_data: NullableBytes = None
