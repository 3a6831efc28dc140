"""Metadata (API key 3): brokers, topics, partitions and their leaders."""

from kafka_compat.protocol.api_keys import ApiKey
from kafka_compat.protocol.schema import (
    ZERO_UUID,
    Bool,
    Int16,
    Int32,
    NullableString,
    String,
    Uuid,
    field,
    request,
    response,
    struct,
)


@struct
class MetadataRequestTopic:
    """A topic by its name or, since version 12, by its id with a null name."""

    topic_id: Uuid = field("10+", default=ZERO_UUID)
    name: NullableString = field(default="", nullable="10+")


@request(ApiKey.METADATA, versions="0-13", flexible="9+")
class MetadataRequest:
    """No topics asks for all in version 0, for none in later ones, where null asks for all. Version 4 lets
    the client forbid auto-creation; versions 10 and 12 bring topic ids (KIP-516).
    """

    topics: list[MetadataRequestTopic] | None = field(default=[], nullable="1+")
    allow_auto_topic_creation: Bool = field("4+", default=True)
    include_cluster_authorized_operations: Bool = field("8-10", default=False)
    include_topic_authorized_operations: Bool = field("8+", default=False)


@struct
class MetadataResponseBroker:
    """Address of a broker on the listener that was asked."""

    node_id: Int32 = 0
    host: String = ""
    port: Int32 = 0
    rack: NullableString = field("1+", default=None)


@struct
class MetadataResponsePartition:
    """`leader_id` -1 while there is none, with LEADER_NOT_AVAILABLE."""

    error_code: Int16 = 0
    partition_index: Int32 = 0
    leader_id: Int32 = 0
    leader_epoch: Int32 = field("7+", default=-1)
    replica_nodes: list[Int32] = []
    isr_nodes: list[Int32] = []
    offline_replicas: list[Int32] = field("5+", default=[])


@struct
class MetadataResponseTopic:
    """One topic; its name is null when an unknown id was asked for. Operations are a bit field, the lowest
    int32 when not asked for.
    """

    error_code: Int16 = 0
    name: NullableString = field(default="", nullable="12+")
    topic_id: Uuid = field("10+", default=ZERO_UUID)
    is_internal: Bool = field("1+", default=False)
    partitions: list[MetadataResponsePartition] = []
    topic_authorized_operations: Int32 = field("8+", default=-2147483648)


@response(ApiKey.METADATA, versions="0-13", flexible="9+")
class MetadataResponse:
    """`error_code` (version 13) is REBOOTSTRAP_REQUIRED or none (KIP-1102)."""

    throttle_time_ms: Int32 = field("3+", default=0)
    brokers: list[MetadataResponseBroker] = []
    cluster_id: NullableString = field("2+", default=None)
    controller_id: Int32 = field("1+", default=-1)
    topics: list[MetadataResponseTopic] = []
    cluster_authorized_operations: Int32 = field("8-10", default=-2147483648)
    error_code: Int16 = field("13+", default=0)
