"""AlterPartition (API key 56)."""

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
    broker_id: Int32 = field("3+", default=0)
    broker_epoch: Int64 = field("3+", default=-1)


@struct
class PartitionData:
    partition_index: Int32 = 0
    leader_epoch: Int32 = 0
    new_isr: list[Int32] = field("0-2", default=[])
    new_isr_with_epochs: list[BrokerState] = field("3+", default=[])
    leader_recovery_state: Int8 = field("1+", default=0)
    partition_epoch: Int32 = 0


@struct
class TopicData:
    topic_name: String = field("0-1", default="")
    topic_id: Uuid = field("2+", default=ZERO_UUID)
    partitions: list[PartitionData] = []


@request(ApiKey.ALTER_PARTITION, versions="0-3", flexible="0+")
class AlterPartitionRequest:
    broker_id: Int32 = 0
    broker_epoch: Int64 = -1
    topics: list[TopicData] = []


@struct
class AlterPartitionResponsePartitionData:
    partition_index: Int32 = 0
    error_code: Int16 = 0
    leader_id: Int32 = 0
    leader_epoch: Int32 = 0
    isr: list[Int32] = []
    leader_recovery_state: Int8 = field("1+", default=0)
    partition_epoch: Int32 = 0


@struct
class AlterPartitionResponseTopicData:
    topic_name: String = field("0-1", default="")
    topic_id: Uuid = field("2+", default=ZERO_UUID)
    partitions: list[AlterPartitionResponsePartitionData] = []


@response(ApiKey.ALTER_PARTITION, versions="0-3", flexible="0+")
class AlterPartitionResponse:
    throttle_time_ms: Int32 = 0
    error_code: Int16 = 0
    topics: list[AlterPartitionResponseTopicData] = []
