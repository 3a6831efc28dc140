"""AlterPartition (API key 56): a leader proposes new in-sync replicas to the controller (KIP-497)."""

from kafka_compat.protocol import schema as s
from kafka_compat.protocol.api_keys import ApiKey
from kafka_compat.protocol.zero_uuid import ZERO_UUID


@s.struct
class BrokerState:
    """A replica's broker ID, and its broker epoch, which shows whether the broker was restarted (KIP-903)."""

    broker_id: s.Int32 = s.field("3+", default=0)
    broker_epoch: s.Int64 = s.field("3+", default=-1)


@s.struct
class PartitionData:
    """The in-sync replicas that the leader proposes. leader_recovery_state is 1 if the leader was elected
    uncleanly (KIP-704). `partition_epoch` is the version of the partition's znode that the leader knows.
    """

    partition_index: s.Int32 = 0
    leader_epoch: s.Int32 = 0
    new_isr: list[s.Int32] = s.field("0-2", default=[])
    new_isr_with_epochs: list[BrokerState] = s.field("3+", default=[])
    leader_recovery_state: s.Int8 = s.field("1+", default=0)
    partition_epoch: s.Int32 = 0


@s.struct
class TopicData:
    """Partitions of one topic, identified by name in versions 0 and 1, and by ID in later versions."""

    topic_name: s.String = s.field("0-1", default="")
    topic_id: s.Uuid = s.field("2+", default=ZERO_UUID)
    partitions: list[PartitionData] = []


@s.request(ApiKey.ALTER_PARTITION, versions="0-3", flexible="0+")
class AlterPartitionRequest:
    """Version 1 adds the recovery state, version 2 topic IDs, and version 3 broker epochs in the ISR."""

    broker_id: s.Int32 = 0
    broker_epoch: s.Int64 = -1
    topics: list[TopicData] = []


@s.struct
class AlterPartitionResponsePartitionData:
    """The state of one partition after the change, or the error."""

    partition_index: s.Int32 = 0
    error_code: s.Int16 = 0
    leader_id: s.Int32 = 0
    leader_epoch: s.Int32 = 0
    isr: list[s.Int32] = []
    leader_recovery_state: s.Int8 = s.field("1+", default=0)
    partition_epoch: s.Int32 = 0


@s.struct
class AlterPartitionResponseTopicData:
    topic_name: s.String = s.field("0-1", default="")
    topic_id: s.Uuid = s.field("2+", default=ZERO_UUID)
    partitions: list[AlterPartitionResponsePartitionData] = []


@s.response(ApiKey.ALTER_PARTITION, versions="0-3", flexible="0+")
class AlterPartitionResponse:
    """`error_code` is the request-level error, for example STALE_BROKER_EPOCH."""

    throttle_time_ms: s.Int32 = 0
    error_code: s.Int16 = 0
    topics: list[AlterPartitionResponseTopicData] = []
