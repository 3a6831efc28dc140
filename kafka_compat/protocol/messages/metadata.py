"""Metadata (API key 3): brokers, topics, partitions and their leaders."""

from kafka_compat.protocol import schema as s
from kafka_compat.protocol.api_keys import ApiKey
from kafka_compat.protocol.schema import request, response
from kafka_compat.protocol.zero_uuid import ZERO_UUID


@s.struct
class MetadataRequestTopic:
    """A topic's name or, in version 12 and later, its ID with a null name."""

    topic_id: s.Uuid = s.field("10+", default=ZERO_UUID)
    name: s.NullableString = s.field(default="", nullable="10+")


@request(ApiKey.METADATA, versions="0-13", flexible="9+")
class MetadataRequest:
    """In version 0, an empty list requests all topics. In later versions, it requests no topics, and null
    requests all. Version 4 lets the client forbid auto-creation, version 10 returns topic IDs, and version 12
    accepts them (KIP-516).
    """

    topics: list[MetadataRequestTopic] | None = s.field(default=[], nullable="1+")
    allow_auto_topic_creation: s.Bool = s.field("4+", default=True)
    include_cluster_authorized_operations: s.Bool = s.field("8-10", default=False)
    include_topic_authorized_operations: s.Bool = s.field("8+", default=False)


@s.struct
class MetadataResponseBroker:
    """The address of a broker on the listener that received the request."""

    node_id: s.Int32 = 0
    host: s.String = ""
    port: s.Int32 = 0
    rack: s.NullableString = s.field("1+", default=None)


@s.struct
class MetadataResponsePartition:
    """If a partition has no leader, `leader_id` is -1, and the error code is LEADER_NOT_AVAILABLE."""

    error_code: s.Int16 = 0
    partition_index: s.Int32 = 0
    leader_id: s.Int32 = 0
    leader_epoch: s.Int32 = s.field("7+", default=-1)
    replica_nodes: list[s.Int32] = []
    isr_nodes: list[s.Int32] = []
    offline_replicas: list[s.Int32] = s.field("5+", default=[])


@s.struct
class MetadataResponseTopic:
    """One topic. The name is null if the request contained an unknown ID. The authorized operations are a bit
    field, or the lowest int32 if they were not requested.
    """

    error_code: s.Int16 = 0
    name: s.NullableString = s.field(default="", nullable="12+")
    topic_id: s.Uuid = s.field("10+", default=ZERO_UUID)
    is_internal: s.Bool = s.field("1+", default=False)
    partitions: list[MetadataResponsePartition] = []
    topic_authorized_operations: s.Int32 = s.field("8+", default=-2147483648)


@response(ApiKey.METADATA, versions="0-13", flexible="9+")
class MetadataResponse:
    """In version 13, `error_code` is REBOOTSTRAP_REQUIRED or NONE (KIP-1102)."""

    throttle_time_ms: s.Int32 = s.field("3+", default=0)
    brokers: list[MetadataResponseBroker] = []
    cluster_id: s.NullableString = s.field("2+", default=None)
    controller_id: s.Int32 = s.field("1+", default=-1)
    topics: list[MetadataResponseTopic] = []
    cluster_authorized_operations: s.Int32 = s.field("8-10", default=-2147483648)
    error_code: s.Int16 = s.field("13+", default=0)
