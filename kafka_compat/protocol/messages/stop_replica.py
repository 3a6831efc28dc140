"""StopReplica (API key 5): the ZooKeeper controller stops replicas of a broker, and may have them deleted."""

from kafka_compat.protocol.api_keys import ApiKey
from kafka_compat.protocol.schema import Bool, Int16, Int32, Int64, String, field, request, response, struct


@struct
class StopReplicaPartitionV0:
    """One partition (version 0)."""

    topic_name: String = field("0", default="")
    partition_index: Int32 = field("0", default=0)


@struct
class StopReplicaTopicV1:
    """Partitions of one topic (versions 1 and 2)."""

    name: String = field("1-2", default="")
    partition_indexes: list[Int32] = field("1-2", default=[])


@struct
class StopReplicaPartitionState:
    """One partition. `leader_epoch` -1 is unknown, -2 means that the topic is deleted."""

    partition_index: Int32 = field("3+", default=0)
    leader_epoch: Int32 = field("3+", default=-1)
    delete_partition: Bool = field("3+", default=False)


@struct
class StopReplicaTopicState:
    """Partitions of one topic (since version 3)."""

    topic_name: String = field("3+", default="")
    partition_states: list[StopReplicaPartitionState] = field("3+", default=[])


@request(ApiKey.STOP_REPLICA, versions="0-4", flexible="2+")
class StopReplicaRequest:
    """Until version 2 one flag says whether to delete all partitions, since version 3 each has its own
    (KIP-570).
    """

    controller_id: Int32 = 0
    is_kraft_controller: Bool = field("4+", default=False)
    controller_epoch: Int32 = 0
    broker_epoch: Int64 = field("1+", default=-1)
    delete_partitions: Bool = field("0-2", default=False)
    ungrouped_partitions: list[StopReplicaPartitionV0] = field("0", default=[])
    topics: list[StopReplicaTopicV1] = field("1-2", default=[])
    topic_states: list[StopReplicaTopicState] = field("3+", default=[])


@struct
class StopReplicaPartitionError:
    """What became of one partition."""

    topic_name: String = ""
    partition_index: Int32 = 0
    error_code: Int16 = 0


@response(ApiKey.STOP_REPLICA, versions="0-4", flexible="2+")
class StopReplicaResponse:
    """`error_code` concerns the whole request."""

    error_code: Int16 = 0
    partition_errors: list[StopReplicaPartitionError] = []
