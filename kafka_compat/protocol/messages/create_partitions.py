"""CreatePartitions (API key 37): add partitions to topics."""

from kafka_compat.protocol import schema as s
from kafka_compat.protocol.api_keys import ApiKey


@s.struct
class CreatePartitionsAssignment:
    """The replicas of one new partition, its preferred leader first."""

    broker_ids: list[s.Int32] = []


@s.struct
class CreatePartitionsTopic:
    """`count` is the new total. `assignments` are for new partitions only; null lets the broker choose."""

    name: s.String = ""
    count: s.Int32 = 0
    assignments: list[CreatePartitionsAssignment] | None = []


@s.request(ApiKey.CREATE_PARTITIONS, versions="0-3", flexible="2+")
class CreatePartitionsRequest:
    """Clients that send version 3 support THROTTLING_QUOTA_EXCEEDED (KIP-599)."""

    topics: list[CreatePartitionsTopic] = []
    timeout_ms: s.Int32 = 0
    validate_only: s.Bool = False


@s.struct
class CreatePartitionsTopicResult:
    name: s.String = ""
    error_code: s.Int16 = 0
    error_message: s.NullableString = None


@s.response(ApiKey.CREATE_PARTITIONS, versions="0-3", flexible="2+")
class CreatePartitionsResponse:
    throttle_time_ms: s.Int32 = 0
    results: list[CreatePartitionsTopicResult] = []
