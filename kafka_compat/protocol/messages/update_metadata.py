"""UpdateMetadata (API key 6): the ZooKeeper controller tells a broker what to answer Metadata with."""

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
    """The state of one partition; `zk_version` is the version of its znode."""

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
    """Partitions of one topic."""

    topic_name: String = field("5+", default="")
    topic_id: Uuid = field("7+", default=ZERO_UUID)
    partition_states: list[UpdateMetadataPartitionState] = field("5+", default=[])


@struct
class UpdateMetadataEndpoint:
    """One listener of a broker."""

    port: Int32 = field("1+", default=0)
    host: String = field("1+", default="")
    listener: String = field("3+", default="")
    security_protocol: Int16 = field("1+", default=0)


@struct
class UpdateMetadataBroker:
    """A live broker; version 0 knows a single address of it."""

    id: Int32 = 0
    v0_host: String = field("0", default="")
    v0_port: Int32 = field("0", default=0)
    endpoints: list[UpdateMetadataEndpoint] = field("1+", default=[])
    rack: NullableString = field("2+", default="")


@request(ApiKey.UPDATE_METADATA, versions="0-8", flexible="6+")
class UpdateMetadataRequest:
    """Version 5 groups partitions by topic and has broker epochs, version 7 has topic ids, version 8 tells a
    KRaft controller and whether all of the metadata is in the request (type 2) or changes only (1).
    """

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
    """STALE_BROKER_EPOCH or STALE_CONTROLLER_EPOCH when the request came too late."""

    error_code: Int16 = 0
