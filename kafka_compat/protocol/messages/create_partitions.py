"""CreatePartitions (API key 37): give topics more partitions."""

from kafka_compat.protocol.api_keys import ApiKey
from kafka_compat.protocol.schema import Bool, Int16, Int32, NullableString, String, request, response, struct


@struct
class CreatePartitionsAssignment:
    """The replicas of one new partition, its preferred leader first."""

    broker_ids: list[Int32] = []


@struct
class CreatePartitionsTopic:
    """`count` is the wanted total; `assignments` concern the new partitions only, null leaves them to the
    broker.
    """

    name: String = ""
    count: Int32 = 0
    assignments: list[CreatePartitionsAssignment] | None = []


@request(ApiKey.CREATE_PARTITIONS, versions="0-3", flexible="2+")
class CreatePartitionsRequest:
    """Version 3 lets a client understand THROTTLING_QUOTA_EXCEEDED (KIP-599)."""

    topics: list[CreatePartitionsTopic] = []
    timeout_ms: Int32 = 0
    validate_only: Bool = False


@struct
class CreatePartitionsTopicResult:
    """What became of one topic."""

    name: String = ""
    error_code: Int16 = 0
    error_message: NullableString = None


@response(ApiKey.CREATE_PARTITIONS, versions="0-3", flexible="2+")
class CreatePartitionsResponse:
    """One result per topic."""

    throttle_time_ms: Int32 = 0
    results: list[CreatePartitionsTopicResult] = []
