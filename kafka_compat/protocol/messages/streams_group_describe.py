"""StreamsGroupDescribe (API key 89): describe groups of Kafka Streams instances (KIP-1071)."""

from kafka_compat.protocol import schema as s
from kafka_compat.protocol.api_keys import ApiKey
from kafka_compat.protocol.messages.streams_group_heartbeat import (
    Endpoint,
    KeyValue,
    TaskIds,
    TaskOffset,
    TopicInfo,
)
from kafka_compat.protocol.messages.streams_group_topology_description_update import TopologyDescription


@s.request(ApiKey.STREAMS_GROUP_DESCRIBE, versions="0-1", flexible="0+")
class StreamsGroupDescribeRequest:
    """Version 1 can request the topology description (KIP-1331)."""

    group_ids: list[s.String] = []
    include_authorized_operations: s.Bool = False
    include_topology_description: s.Bool = s.field("1+", default=False)


@s.struct
class Subtopology:
    """The topics of one subtopology. Regular expressions have been replaced by the matching topics."""

    subtopology_id: s.String = ""
    source_topics: list[s.String] = []
    repartition_sink_topics: list[s.String] = []
    state_changelog_topics: list[TopicInfo] = []
    repartition_source_topics: list[TopicInfo] = []


@s.struct
class Topology:
    """`subtopologies` is null while the topology is not initialized or its topics are not valid."""

    epoch: s.Int32 = 0
    subtopologies: list[Subtopology] | None = None


@s.struct
class Assignment:
    active_tasks: list[TaskIds] = []
    standby_tasks: list[TaskIds] = []
    warmup_tasks: list[TaskIds] = []


@s.struct
class Member:
    """A member and its current and target assignments. `is_classic` is true for members that still use the
    classic protocol.
    """

    member_id: s.String = ""
    member_epoch: s.Int32 = 0
    instance_id: s.NullableString = None
    rack_id: s.NullableString = None
    client_id: s.String = ""
    client_host: s.String = ""
    topology_epoch: s.Int32 = 0
    process_id: s.String = ""
    user_endpoint: Endpoint | None = None
    client_tags: list[KeyValue] = []
    task_offsets: list[TaskOffset] = []
    task_end_offsets: list[TaskOffset] = []
    assignment: Assignment = s.field(default_factory=Assignment)
    target_assignment: Assignment = s.field(default_factory=Assignment)
    is_classic: s.Bool = False


@s.struct
class DescribedGroup:
    """One group. authorized_operations is a bit field of ACL operations, or the lowest int32 if it was not
    requested. topology_description_status is 0 (not requested), 1 (not stored), 2 (error) or 3 (available).
    `assignor_name` is the assignor of the next assignment (KIP-1357).
    """

    error_code: s.Int16 = 0
    error_message: s.NullableString = None
    group_id: s.String = ""
    group_state: s.String = ""
    group_epoch: s.Int32 = 0
    assignment_epoch: s.Int32 = 0
    topology: Topology | None = None
    members: list[Member] = []
    authorized_operations: s.Int32 = -2147483648
    topology_description: TopologyDescription | None = s.field("1+", default=None)
    topology_description_status: s.Int8 = s.field("1+", default=0)
    assignor_name: s.NullableString = s.field("1+", default=None)


@s.response(ApiKey.STREAMS_GROUP_DESCRIBE, versions="0-1", flexible="0+")
class StreamsGroupDescribeResponse:
    throttle_time_ms: s.Int32 = 0
    groups: list[DescribedGroup] = []
