"""LeaderAndIsr (API key 4): the ZooKeeper controller tells a broker which partitions it leads and follows."""

from kafka_compat.protocol.api_keys import ApiKey
from kafka_compat.protocol.schema import (
    ZERO_UUID,
    Bool,
    Int8,
    Int16,
    Int32,
    Int64,
    String,
    Uuid,
    field,
    request,
    response,
    struct,
)


@struct
class LeaderAndIsrPartitionState:
    """The state of one partition. `leader` -1 is none, -2 deletes the topic; `partition_epoch` is the version
    of its znode. leader_recovery_state 1: elected uncleanly (KIP-704).
    """

    topic_name: String = field("0-1", default="")
    partition_index: Int32 = 0
    controller_epoch: Int32 = 0
    leader: Int32 = 0
    leader_epoch: Int32 = 0
    isr: list[Int32] = []
    partition_epoch: Int32 = 0
    replicas: list[Int32] = []
    adding_replicas: list[Int32] = field("3+", default=[])
    removing_replicas: list[Int32] = field("3+", default=[])
    is_new: Bool = field("1+", default=False)
    leader_recovery_state: Int8 = field("6+", default=0)


@struct
class LeaderAndIsrTopicState:
    """Partitions of one topic."""

    topic_name: String = field("2+", default="")
    topic_id: Uuid = field("5+", default=ZERO_UUID)
    partition_states: list[LeaderAndIsrPartitionState] = field("2+", default=[])


@struct
class LeaderAndIsrLiveLeader:
    """Address of a broker that leads one of the partitions."""

    broker_id: Int32 = 0
    host_name: String = ""
    port: Int32 = 0


@request(ApiKey.LEADER_AND_ISR, versions="0-7", flexible="4+")
class LeaderAndIsrRequest:
    """Version 1 tells new replicas, 2 has broker epochs and groups partitions by topic, 3 tells replicas that
    are added and removed, 5 topic ids and whether all partitions are in the request (type 2) or changes only
    (1), 6 the recovery state, 7 a KRaft controller.
    """

    controller_id: Int32 = 0
    is_kraft_controller: Bool = field("7+", default=False)
    controller_epoch: Int32 = 0
    broker_epoch: Int64 = field("2+", default=-1)
    type: Int8 = field("5+", default=0)
    ungrouped_partition_states: list[LeaderAndIsrPartitionState] = field("0-1", default=[])
    topic_states: list[LeaderAndIsrTopicState] = field("2+", default=[])
    live_leaders: list[LeaderAndIsrLiveLeader] = []


@struct
class LeaderAndIsrPartitionError:
    """What became of one partition."""

    topic_name: String = field("0-4", default="")
    partition_index: Int32 = 0
    error_code: Int16 = 0


@struct
class LeaderAndIsrTopicError:
    """Partitions of one topic."""

    topic_id: Uuid = field("5+", default=ZERO_UUID)
    partition_errors: list[LeaderAndIsrPartitionError] = field("5+", default=[])


@response(ApiKey.LEADER_AND_ISR, versions="0-7", flexible="4+")
class LeaderAndIsrResponse:
    """Partitions by name until version 4, by topic id since version 5."""

    error_code: Int16 = 0
    partition_errors: list[LeaderAndIsrPartitionError] = field("0-4", default=[])
    topics: list[LeaderAndIsrTopicError] = field("5+", default=[])
