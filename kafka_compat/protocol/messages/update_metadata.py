"""UpdateMetadata (API key 6): the ZooKeeper controller sends a broker the metadata to return to clients."""

from kafka_compat.protocol import schema as s
from kafka_compat.protocol.api_keys import ApiKey
from kafka_compat.protocol.zero_uuid import ZERO_UUID


@s.struct
class UpdateMetadataPartitionState:
    """The state of one partition. `zk_version` is the version of the partition's znode."""

    topic_name: s.String = s.field("0-4", default="")
    partition_index: s.Int32 = 0
    controller_epoch: s.Int32 = 0
    leader: s.Int32 = 0
    leader_epoch: s.Int32 = 0
    isr: list[s.Int32] = []
    zk_version: s.Int32 = 0
    replicas: list[s.Int32] = []
    offline_replicas: list[s.Int32] = s.field("4+", default=[])


@s.struct
class UpdateMetadataTopicState:
    topic_name: s.String = s.field("5+", default="")
    topic_id: s.Uuid = s.field("7+", default=ZERO_UUID)
    partition_states: list[UpdateMetadataPartitionState] = s.field("5+", default=[])


@s.struct
class UpdateMetadataEndpoint:
    """One listener of a broker."""

    port: s.Int32 = s.field("1+", default=0)
    host: s.String = s.field("1+", default="")
    listener: s.String = s.field("3+", default="")
    security_protocol: s.Int16 = s.field("1+", default=0)


@s.struct
class UpdateMetadataBroker:
    """A live broker. In version 0, it has a single address."""

    id: s.Int32 = 0
    v0_host: s.String = s.field("0", default="")
    v0_port: s.Int32 = s.field("0", default=0)
    endpoints: list[UpdateMetadataEndpoint] = s.field("1+", default=[])
    rack: s.NullableString = s.field("2+", default="")


@s.request(ApiKey.UPDATE_METADATA, versions="0-8", flexible="6+")
class UpdateMetadataRequest:
    """Version 5 groups partitions by topic and adds broker epochs. Version 7 adds topic IDs. Version 8 adds
    is_kraft_controller and `type`: 2 if the request contains all metadata, or 1 if it contains only changes.
    """

    controller_id: s.Int32 = 0
    is_kraft_controller: s.Bool = s.field("8+", default=False)
    type: s.Int8 = s.field("8+", default=0, tag=0)
    controller_epoch: s.Int32 = 0
    broker_epoch: s.Int64 = s.field("5+", default=-1)
    ungrouped_partition_states: list[UpdateMetadataPartitionState] = s.field("0-4", default=[])
    topic_states: list[UpdateMetadataTopicState] = s.field("5+", default=[])
    live_brokers: list[UpdateMetadataBroker] = []


@s.response(ApiKey.UPDATE_METADATA, versions="0-8", flexible="6+")
class UpdateMetadataResponse:
    """`error_code` is STALE_BROKER_EPOCH or STALE_CONTROLLER_EPOCH if the request is outdated."""

    error_code: s.Int16 = 0
