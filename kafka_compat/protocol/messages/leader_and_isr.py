"""LeaderAndIsr (API key 4): the ZooKeeper controller assigns partitions to a broker to lead or follow."""

from kafka_compat.protocol import schema as s
from kafka_compat.protocol.api_keys import ApiKey
from kafka_compat.protocol.zero_uuid import ZERO_UUID


@s.struct
class LeaderAndIsrPartitionState:
    """The state of one partition. `leader` is -1 if there is none, or -2 if the topic is being deleted.
    `partition_epoch` is the version of the partition's znode. leader_recovery_state is 1 if the leader was
    elected uncleanly (KIP-704).
    """

    topic_name: s.String = s.field("0-1", default="")
    partition_index: s.Int32 = 0
    controller_epoch: s.Int32 = 0
    leader: s.Int32 = 0
    leader_epoch: s.Int32 = 0
    isr: list[s.Int32] = []
    partition_epoch: s.Int32 = 0
    replicas: list[s.Int32] = []
    adding_replicas: list[s.Int32] = s.field("3+", default=[])
    removing_replicas: list[s.Int32] = s.field("3+", default=[])
    is_new: s.Bool = s.field("1+", default=False)
    leader_recovery_state: s.Int8 = s.field("6+", default=0)


@s.struct
class LeaderAndIsrTopicState:
    topic_name: s.String = s.field("2+", default="")
    topic_id: s.Uuid = s.field("5+", default=ZERO_UUID)
    partition_states: list[LeaderAndIsrPartitionState] = s.field("2+", default=[])


@s.struct
class LeaderAndIsrLiveLeader:
    """The address of a broker that leads at least one partition in the request."""

    broker_id: s.Int32 = 0
    host_name: s.String = ""
    port: s.Int32 = 0


@s.request(ApiKey.LEADER_AND_ISR, versions="0-7", flexible="4+")
class LeaderAndIsrRequest:
    """Version 1 marks new replicas. Version 2 adds broker epochs, and groups partitions by topic. Version 3
    adds the replicas being added and removed. Version 5 adds topic IDs and `type`: 2 if the request contains
    all partitions, or 1 if it contains only changes. Version 6 adds the recovery state, and version 7 adds
    is_kraft_controller.
    """

    controller_id: s.Int32 = 0
    is_kraft_controller: s.Bool = s.field("7+", default=False)
    controller_epoch: s.Int32 = 0
    broker_epoch: s.Int64 = s.field("2+", default=-1)
    type: s.Int8 = s.field("5+", default=0)
    ungrouped_partition_states: list[LeaderAndIsrPartitionState] = s.field("0-1", default=[])
    topic_states: list[LeaderAndIsrTopicState] = s.field("2+", default=[])
    live_leaders: list[LeaderAndIsrLiveLeader] = []


@s.struct
class LeaderAndIsrPartitionError:
    topic_name: s.String = s.field("0-4", default="")
    partition_index: s.Int32 = 0
    error_code: s.Int16 = 0


@s.struct
class LeaderAndIsrTopicError:
    topic_id: s.Uuid = s.field("5+", default=ZERO_UUID)
    partition_errors: list[LeaderAndIsrPartitionError] = s.field("5+", default=[])


@s.response(ApiKey.LEADER_AND_ISR, versions="0-7", flexible="4+")
class LeaderAndIsrResponse:
    """Error codes by topic name in versions 0 to 4, and by topic ID in version 5 and later."""

    error_code: s.Int16 = 0
    partition_errors: list[LeaderAndIsrPartitionError] = s.field("0-4", default=[])
    topics: list[LeaderAndIsrTopicError] = s.field("5+", default=[])
