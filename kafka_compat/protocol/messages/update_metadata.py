"""UpdateMetadata (API key 6)."""

from kafka_compat.protocol.api_keys import ApiKey
from kafka_compat.protocol.schema import (
    ZERO_UUID,
    Bool,
    Int8,
    Int16,
    Int32,
    Int64,
    NullableString,
    String,
    Uuid,
    field,
    request,
    response,
    struct,
)


@struct
class UpdateMetadataPartitionState:
    topic_name: String = field("0-4", default="")
    partition_index: Int32 = 0
    controller_epoch: Int32 = 0
    leader: Int32 = 0
    leader_epoch: Int32 = 0
    isr: list[Int32] = []
    zk_version: Int32 = 0
    replicas: list[Int32] = []
    offline_replicas: list[Int32] = field("4+", default=[])


@struct
class UpdateMetadataTopicState:
    topic_name: String = field("5+", default="")
    topic_id: Uuid = field("7+", default=ZERO_UUID)
    partition_states: list[UpdateMetadataPartitionState] = field("5+", default=[])


@struct
class UpdateMetadataEndpoint:
    port: Int32 = field("1+", default=0)
    host: String = field("1+", default="")
    listener: String = field("3+", default="")
    security_protocol: Int16 = field("1+", default=0)


@struct
class UpdateMetadataBroker:
    id: Int32 = 0
    v0_host: String = field("0", default="")
    v0_port: Int32 = field("0", default=0)
    endpoints: list[UpdateMetadataEndpoint] = field("1+", default=[])
    rack: NullableString = field("2+", default="")


@request(ApiKey.UPDATE_METADATA, versions="0-8", flexible="6+")
class UpdateMetadataRequest:
    controller_id: Int32 = 0
    is_kraft_controller: Bool = field("8+", default=False)
    type: Int8 = field("8+", default=0, tag=0)
    controller_epoch: Int32 = 0
    broker_epoch: Int64 = field("5+", default=-1)
    ungrouped_partition_states: list[UpdateMetadataPartitionState] = field("0-4", default=[])
    topic_states: list[UpdateMetadataTopicState] = field("5+", default=[])
    live_brokers: list[UpdateMetadataBroker] = []


@response(ApiKey.UPDATE_METADATA, versions="0-8", flexible="6+")
class UpdateMetadataResponse:
    error_code: Int16 = 0
