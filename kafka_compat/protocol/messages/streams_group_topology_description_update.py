"""StreamsGroupTopologyDescriptionUpdate (API key 93): describe a topology to the broker (KIP-1331)."""

from kafka_compat.protocol import schema as s
from kafka_compat.protocol.api_keys import ApiKey


@s.struct
class TopologyDescriptionNode:
    """A node of the processing graph. node_type is 1 (source), 2 (processor) or 3 (sink). Only sources have
    source topics, only processors have stores, and only sinks have a sink topic, which is null if each record
    determines it.
    """

    name: s.String = ""
    node_type: s.Int8 = 0
    source_topics: list[s.String] = []
    sink_topic: s.NullableString = None
    stores: list[s.String] = []
    successors: list[s.String] = []


@s.struct
class TopologyDescriptionSubtopology:
    subtopology_id: s.String = ""
    nodes: list[TopologyDescriptionNode] = []


@s.struct
class TopologyDescriptionGlobalStore:
    source: TopologyDescriptionNode = s.field(default_factory=TopologyDescriptionNode)
    processor: TopologyDescriptionNode = s.field(default_factory=TopologyDescriptionNode)


@s.struct
class TopologyDescription:
    subtopologies: list[TopologyDescriptionSubtopology] = []
    global_stores: list[TopologyDescriptionGlobalStore] = []


@s.request(ApiKey.STREAMS_GROUP_TOPOLOGY_DESCRIPTION_UPDATE, versions="0", flexible="0+")
class StreamsGroupTopologyDescriptionUpdateRequest:
    """Sent by a member after the coordinator requested a description in a heartbeat response."""

    group_id: s.String = ""
    member_id: s.String = ""
    topology_epoch: s.Int32 = 0
    topology_description: TopologyDescription = s.field(default_factory=TopologyDescription)


@s.response(ApiKey.STREAMS_GROUP_TOPOLOGY_DESCRIPTION_UPDATE, versions="0", flexible="0+")
class StreamsGroupTopologyDescriptionUpdateResponse:
    throttle_time_ms: s.Int32 = 0
    error_code: s.Int16 = 0
    error_message: s.NullableString = None
