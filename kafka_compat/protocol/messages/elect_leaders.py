"""ElectLeaders (API key 43): elect the preferred, or any, replica as leader (KIP-460)."""

from kafka_compat.protocol.api_keys import ApiKey
from kafka_compat.protocol.schema import (
    Int8,
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
class TopicPartitions:
    """Partitions of one topic."""

    topic: String = ""
    partitions: list[Int32] = []


@request(ApiKey.ELECT_LEADERS, versions="0-2", flexible="2+")
class ElectLeadersRequest:
    """Null `topic_partitions` asks for all. election_type (version 1): 0 preferred, 1 unclean."""

    election_type: Int8 = field("1+", default=0)
    topic_partitions: list[TopicPartitions] | None = []
    timeout_ms: Int32 = 60000


@struct
class PartitionResult:
    """What became of one partition; ELECTION_NOT_NEEDED when it has that leader already."""

    partition_id: Int32 = 0
    error_code: Int16 = 0
    error_message: NullableString = ""


@struct
class ReplicaElectionResult:
    """Partitions of one topic."""

    topic: String = ""
    partition_result: list[PartitionResult] = []


@response(ApiKey.ELECT_LEADERS, versions="0-2", flexible="2+")
class ElectLeadersResponse:
    """`error_code` (version 1) concerns the whole request."""

    throttle_time_ms: Int32 = 0
    error_code: Int16 = field("1+", default=0)
    replica_election_results: list[ReplicaElectionResult] = []
