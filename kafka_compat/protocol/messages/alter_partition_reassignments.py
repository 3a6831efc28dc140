"""AlterPartitionReassignments (API key 45): start or cancel partition reassignments (KIP-455)."""

from kafka_compat.protocol import schema as s
from kafka_compat.protocol.api_keys import ApiKey


@s.struct
class ReassignablePartition:
    """The target replicas of one partition, or null to cancel its reassignment."""

    partition_index: s.Int32 = 0
    replicas: list[s.Int32] | None = None


@s.struct
class ReassignableTopic:
    name: s.String = ""
    partitions: list[ReassignablePartition] = []


@s.request(ApiKey.ALTER_PARTITION_REASSIGNMENTS, versions="0-1", flexible="0+")
class AlterPartitionReassignmentsRequest:
    """Version 1 can forbid changes of the replication factor (KIP-860)."""

    timeout_ms: s.Int32 = 60000
    allow_replication_factor_change: s.Bool = s.field("1+", default=True)
    topics: list[ReassignableTopic] = []


@s.struct
class ReassignablePartitionResponse:
    """Whether the reassignment of one partition was started or canceled."""

    partition_index: s.Int32 = 0
    error_code: s.Int16 = 0
    error_message: s.NullableString = ""


@s.struct
class ReassignableTopicResponse:
    name: s.String = ""
    partitions: list[ReassignablePartitionResponse] = []


@s.response(ApiKey.ALTER_PARTITION_REASSIGNMENTS, versions="0-1", flexible="0+")
class AlterPartitionReassignmentsResponse:
    """The result for each partition. Error code 0 does not mean that its reassignment is complete."""

    throttle_time_ms: s.Int32 = 0
    allow_replication_factor_change: s.Bool = s.field("1+", default=True)
    error_code: s.Int16 = 0
    error_message: s.NullableString = ""
    responses: list[ReassignableTopicResponse] = []
