"""Metadata and assignments of consumers in JoinGroup and SyncGroup. Brokers read them for OffsetDelete."""

from kafka_compat.protocol import schema as s


@s.struct
class TopicPartition:
    topic: s.String = s.field("1+", default="")
    partitions: list[s.Int32] = s.field("1+", default=[])


@s.data(versions="0-3")
class ConsumerProtocolSubscription:
    """The metadata of a member in JoinGroup. Version 1 adds the partitions that it owns (cooperative
    rebalancing, KIP-429), version 2 the generation of these partitions (KIP-792), version 3 its rack
    (KIP-881).
    """

    topics: list[s.String] = []
    user_data: s.NullableBytes = None
    owned_partitions: list[TopicPartition] = s.field("1+", default=[])
    generation_id: s.Int32 = s.field("2+", default=-1)
    rack_id: s.NullableString = s.field("3+", default=None)


@s.struct
class ConsumerProtocolAssignmentTopicPartition:
    topic: s.String = ""
    partitions: list[s.Int32] = []


@s.data(versions="0-3")
class ConsumerProtocolAssignment:
    """The assignment of a member in SyncGroup. All versions have the same fields."""

    assigned_partitions: list[ConsumerProtocolAssignmentTopicPartition] = []
    user_data: s.NullableBytes = None
