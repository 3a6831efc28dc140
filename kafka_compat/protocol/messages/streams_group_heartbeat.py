"""StreamsGroupHeartbeat (API key 88): stay in a group of Kafka Streams instances (KIP-1071)."""

from kafka_compat.protocol import schema as s
from kafka_compat.protocol.api_keys import ApiKey


@s.struct
class KeyValue:
    key: s.String = ""
    value: s.String = ""


@s.struct
class TopicInfo:
    """An internal topic to create. If `replication_factor` is 0, the default applies. If `partitions` is 0,
    the coordinator determines their number.
    """

    name: s.String = ""
    partitions: s.Int32 = 0
    replication_factor: s.Int16 = 0
    topic_configs: list[KeyValue] = []


@s.struct
class CopartitionGroup:
    """Topics that must have the same number of partitions, as indexes into the lists of their subtopology."""

    source_topics: list[s.Int16] = []
    source_topic_regex: list[s.Int16] = []
    repartition_source_topics: list[s.Int16] = []


@s.struct
class Subtopology:
    """The topics of one subtopology. The coordinator creates its changelog and repartition topics."""

    subtopology_id: s.String = ""
    source_topics: list[s.String] = []
    source_topic_regex: list[s.String] = []
    state_changelog_topics: list[TopicInfo] = []
    repartition_sink_topics: list[s.String] = []
    repartition_source_topics: list[TopicInfo] = []
    copartition_groups: list[CopartitionGroup] = []


@s.struct
class Topology:
    epoch: s.Int32 = 0
    subtopologies: list[Subtopology] = []


@s.struct
class TaskIds:
    """The tasks of one subtopology, identified by their input partitions."""

    subtopology_id: s.String = ""
    partitions: list[s.Int32] = []


@s.struct
class Endpoint:
    """The address of an instance for interactive queries."""

    host: s.String = ""
    port: s.UInt16 = 0


@s.struct
class TaskOffset:
    """The sum of the offsets of a task in its changelog topics."""

    subtopology_id: s.String = ""
    partition: s.Int32 = 0
    offset: s.Int64 = 0


@s.request(ApiKey.STREAMS_GROUP_HEARTBEAT, versions="0-1", flexible="0+")
class StreamsGroupHeartbeatRequest:
    """member_epoch is 0 to join, -1 to leave, or -2 to leave temporarily as a static member. Fields that have
    not changed since the last heartbeat are null (rebalance_timeout_ms: -1). `topology` is sent only to join.
    Members with the same process_id share an instance, and endpoint_information_epoch is the last one that
    the member received.
    """

    group_id: s.String = ""
    member_id: s.String = ""
    member_epoch: s.Int32 = 0
    endpoint_information_epoch: s.Int32 = 0
    instance_id: s.NullableString = None
    rack_id: s.NullableString = None
    rebalance_timeout_ms: s.Int32 = -1
    topology: Topology | None = None
    active_tasks: list[TaskIds] | None = None
    standby_tasks: list[TaskIds] | None = None
    warmup_tasks: list[TaskIds] | None = None
    process_id: s.NullableString = None
    user_endpoint: Endpoint | None = None
    client_tags: list[KeyValue] | None = None
    task_offsets: list[TaskOffset] | None = None
    task_end_offsets: list[TaskOffset] | None = None
    shutdown_application: s.Bool = False


@s.struct
class Status:
    """A condition of the group: stale topology (0), missing source topics (1), incorrectly partitioned topics
    (2), missing internal topics (3), shutdown requested (4), assignment delayed (5), or missing client tags
    (6, version 1).
    """

    status_code: s.Int8 = 0
    status_detail: s.String = ""


@s.struct
class TopicPartition:
    topic: s.String = ""
    partitions: list[s.Int32] = []


@s.struct
class EndpointToPartitions:
    """The partitions that one member serves to interactive queries."""

    user_endpoint: Endpoint = s.field(default_factory=Endpoint)
    active_partitions: list[TopicPartition] = []
    standby_partitions: list[TopicPartition] = []


@s.response(ApiKey.STREAMS_GROUP_HEARTBEAT, versions="0-1", flexible="0+")
class StreamsGroupHeartbeatResponse:
    """Tasks and endpoints that have not changed are null. acceptable_recovery_lag is -1 if the broker does
    not support the setting. Version 1 can request a topology description (KIP-1331).
    """

    throttle_time_ms: s.Int32 = 0
    error_code: s.Int16 = 0
    error_message: s.NullableString = None
    member_id: s.String = ""
    member_epoch: s.Int32 = 0
    heartbeat_interval_ms: s.Int32 = 0
    acceptable_recovery_lag_legacy: s.Int32 = s.field("0", default=0)
    task_offset_interval_ms: s.Int32 = 0
    acceptable_recovery_lag: s.Int64 = s.field("1+", default=-1)
    status: list[Status] | None = []
    active_tasks: list[TaskIds] | None = None
    standby_tasks: list[TaskIds] | None = None
    warmup_tasks: list[TaskIds] | None = None
    topology_description_required: s.Bool = s.field("1+", default=False)
    endpoint_information_epoch: s.Int32 = 0
    partitions_by_user_endpoint: list[EndpointToPartitions] | None = None
