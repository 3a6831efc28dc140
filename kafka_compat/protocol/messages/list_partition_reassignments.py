"""ListPartitionReassignments (API key 46): moves of replicas that are under way (KIP-455)."""

from kafka_compat.protocol.api_keys import ApiKey
from kafka_compat.protocol.schema import Int16, Int32, NullableString, String, request, response, struct


@struct
class ListPartitionReassignmentsTopics:
    """Partitions of one topic."""

    name: String = ""
    partition_indexes: list[Int32] = []


@request(ApiKey.LIST_PARTITION_REASSIGNMENTS, versions="0", flexible="0+")
class ListPartitionReassignmentsRequest:
    """Null `topics` asks for all moves."""

    timeout_ms: Int32 = 60000
    topics: list[ListPartitionReassignmentsTopics] | None = None


@struct
class OngoingPartitionReassignment:
    """All replicas of one partition, and which of them come and go."""

    partition_index: Int32 = 0
    replicas: list[Int32] = []
    adding_replicas: list[Int32] = []
    removing_replicas: list[Int32] = []


@struct
class OngoingTopicReassignment:
    """Partitions of one topic."""

    name: String = ""
    partitions: list[OngoingPartitionReassignment] = []


@response(ApiKey.LIST_PARTITION_REASSIGNMENTS, versions="0", flexible="0+")
class ListPartitionReassignmentsResponse:
    """Only partitions that are being moved."""

    throttle_time_ms: Int32 = 0
    error_code: Int16 = 0
    error_message: NullableString = ""
    topics: list[OngoingTopicReassignment] = []
