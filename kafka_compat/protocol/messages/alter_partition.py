"""AlterPartition (API key 56): a leader tells the controller its new in-sync replicas (KIP-497)."""

from kafka_compat.protocol.api_keys import ApiKey
from kafka_compat.protocol.schema import (
    ZERO_UUID,
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
class BrokerState:
    """A replica with the epoch of its broker, so that one that was restarted is not counted in sync
    (KIP-903).
    """

    broker_id: Int32 = field("3+", default=0)
    broker_epoch: Int64 = field("3+", default=-1)


@struct
class PartitionData:
    """The in-sync replicas that the leader wants. leader_recovery_state 1: it was elected uncleanly
    (KIP-704).
    `partition_epoch` is the version of the state that the leader knows: the ZooKeeper version of its znode.
    """

    partition_index: Int32 = 0
    leader_epoch: Int32 = 0
    new_isr: list[Int32] = field("0-2", default=[])
    new_isr_with_epochs: list[BrokerState] = field("3+", default=[])
    leader_recovery_state: Int8 = field("1+", default=0)
    partition_epoch: Int32 = 0


@struct
class TopicData:
    """Partitions of one topic, by name until version 1, by id since version 2."""

    topic_name: String = field("0-1", default="")
    topic_id: Uuid = field("2+", default=ZERO_UUID)
    partitions: list[PartitionData] = []


@request(ApiKey.ALTER_PARTITION, versions="0-3", flexible="0+")
class AlterPartitionRequest:
    """Version 1 adds the recovery state, version 2 topic ids, version 3 broker epochs in the ISR."""

    broker_id: Int32 = 0
    broker_epoch: Int64 = -1
    topics: list[TopicData] = []


@struct
class AlterPartitionResponsePartitionData:
    """The state of one partition after the change, or why there was none."""

    partition_index: Int32 = 0
    error_code: Int16 = 0
    leader_id: Int32 = 0
    leader_epoch: Int32 = 0
    isr: list[Int32] = []
    leader_recovery_state: Int8 = field("1+", default=0)
    partition_epoch: Int32 = 0


@struct
class AlterPartitionResponseTopicData:
    """Partitions of one topic."""

    topic_name: String = field("0-1", default="")
    topic_id: Uuid = field("2+", default=ZERO_UUID)
    partitions: list[AlterPartitionResponsePartitionData] = []


@response(ApiKey.ALTER_PARTITION, versions="0-3", flexible="0+")
class AlterPartitionResponse:
    """`error_code` concerns the whole request, such as a stale broker epoch."""

    throttle_time_ms: Int32 = 0
    error_code: Int16 = 0
    topics: list[AlterPartitionResponseTopicData] = []
