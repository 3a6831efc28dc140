"""AlterPartitionReassignments (API key 45): move replicas of partitions, or cancel moves (KIP-455)."""

from kafka_compat.protocol.api_keys import ApiKey
from kafka_compat.protocol.schema import (
    Bool,
    Int16,
    Int32,
    NullableString,
    String,
    field,
    request,
    response,
    struct,
)


@struct
class ReassignablePartition:
    """Where the replicas of one partition should be; null cancels a move that is under way."""

    partition_index: Int32 = 0
    replicas: list[Int32] | None = None


@struct
class ReassignableTopic:
    """Partitions of one topic."""

    name: String = ""
    partitions: list[ReassignablePartition] = []


@request(ApiKey.ALTER_PARTITION_REASSIGNMENTS, versions="0-1", flexible="0+")
class AlterPartitionReassignmentsRequest:
    """Version 1 lets a caller insist that the replication factor stays (KIP-860)."""

    timeout_ms: Int32 = 60000
    allow_replication_factor_change: Bool = field("1+", default=True)
    topics: list[ReassignableTopic] = []


@struct
class ReassignablePartitionResponse:
    """Whether the move of one partition has been started or cancelled."""

    partition_index: Int32 = 0
    error_code: Int16 = 0
    error_message: NullableString = ""


@struct
class ReassignableTopicResponse:
    """Partitions of one topic."""

    name: String = ""
    partitions: list[ReassignablePartitionResponse] = []


@response(ApiKey.ALTER_PARTITION_REASSIGNMENTS, versions="0-1", flexible="0+")
class AlterPartitionReassignmentsResponse:
    """Success means that moves have been started, not finished."""

    throttle_time_ms: Int32 = 0
    allow_replication_factor_change: Bool = field("1+", default=True)
    error_code: Int16 = 0
    error_message: NullableString = ""
    responses: list[ReassignableTopicResponse] = []
