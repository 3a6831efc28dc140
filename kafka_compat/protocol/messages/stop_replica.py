"""StopReplica (API key 5): the ZooKeeper controller stops replicas of a broker, and may delete them."""

from kafka_compat.protocol import schema as s
from kafka_compat.protocol.api_keys import ApiKey


@s.struct
class StopReplicaPartitionV0:
    """One partition (version 0)."""

    topic_name: s.String = s.field("0", default="")
    partition_index: s.Int32 = s.field("0", default=0)


@s.struct
class StopReplicaTopicV1:
    """Partitions of one topic (versions 1 and 2)."""

    name: s.String = s.field("1-2", default="")
    partition_indexes: list[s.Int32] = s.field("1-2", default=[])


@s.struct
class StopReplicaPartitionState:
    """One partition. `leader_epoch` is -1 if it is unknown, or -2 if the topic is being deleted."""

    partition_index: s.Int32 = s.field("3+", default=0)
    leader_epoch: s.Int32 = s.field("3+", default=-1)
    delete_partition: s.Bool = s.field("3+", default=False)


@s.struct
class StopReplicaTopicState:
    """Partitions of one topic (version 3 and later)."""

    topic_name: s.String = s.field("3+", default="")
    partition_states: list[StopReplicaPartitionState] = s.field("3+", default=[])


@s.request(ApiKey.STOP_REPLICA, versions="0-4", flexible="2+")
class StopReplicaRequest:
    """In versions 0 to 2, one flag deletes all replicas. In later versions, each partition has a flag."""

    controller_id: s.Int32 = 0
    is_kraft_controller: s.Bool = s.field("4+", default=False)
    controller_epoch: s.Int32 = 0
    broker_epoch: s.Int64 = s.field("1+", default=-1)
    delete_partitions: s.Bool = s.field("0-2", default=False)
    ungrouped_partitions: list[StopReplicaPartitionV0] = s.field("0", default=[])
    topics: list[StopReplicaTopicV1] = s.field("1-2", default=[])
    topic_states: list[StopReplicaTopicState] = s.field("3+", default=[])


@s.struct
class StopReplicaPartitionError:
    topic_name: s.String = ""
    partition_index: s.Int32 = 0
    error_code: s.Int16 = 0


@s.response(ApiKey.STOP_REPLICA, versions="0-4", flexible="2+")
class StopReplicaResponse:
    """`error_code` applies to the whole request."""

    error_code: s.Int16 = 0
    partition_errors: list[StopReplicaPartitionError] = []
