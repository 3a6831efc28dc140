"""ListPartitionReassignments (API key 46): reassignments in progress (KIP-455)."""

from kafka_compat.protocol import schema as s
from kafka_compat.protocol.api_keys import ApiKey


@s.struct
class ListPartitionReassignmentsTopics:
    name: s.String = ""
    partition_indexes: list[s.Int32] = []


@s.request(ApiKey.LIST_PARTITION_REASSIGNMENTS, versions="0", flexible="0+")
class ListPartitionReassignmentsRequest:
    """Null `topics` requests all reassignments."""

    timeout_ms: s.Int32 = 60000
    topics: list[ListPartitionReassignmentsTopics] | None = None


@s.struct
class OngoingPartitionReassignment:
    """All replicas of one partition, and the replicas being added and removed."""

    partition_index: s.Int32 = 0
    replicas: list[s.Int32] = []
    adding_replicas: list[s.Int32] = []
    removing_replicas: list[s.Int32] = []


@s.struct
class OngoingTopicReassignment:
    name: s.String = ""
    partitions: list[OngoingPartitionReassignment] = []


@s.response(ApiKey.LIST_PARTITION_REASSIGNMENTS, versions="0", flexible="0+")
class ListPartitionReassignmentsResponse:
    """The partitions that are being reassigned."""

    throttle_time_ms: s.Int32 = 0
    error_code: s.Int16 = 0
    error_message: s.NullableString = ""
    topics: list[OngoingTopicReassignment] = []
