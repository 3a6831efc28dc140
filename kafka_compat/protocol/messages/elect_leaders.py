"""ElectLeaders (API key 43)."""

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
    topic: String = ""
    partitions: list[Int32] = []


@request(ApiKey.ELECT_LEADERS, versions="0-2", flexible="2+")
class ElectLeadersRequest:
    election_type: Int8 = field("1+", default=0)
    topic_partitions: list[TopicPartitions] | None = []
    timeout_ms: Int32 = 60000


@struct
class PartitionResult:
    partition_id: Int32 = 0
    error_code: Int16 = 0
    error_message: NullableString = ""


@struct
class ReplicaElectionResult:
    topic: String = ""
    partition_result: list[PartitionResult] = []


@response(ApiKey.ELECT_LEADERS, versions="0-2", flexible="2+")
class ElectLeadersResponse:
    throttle_time_ms: Int32 = 0
    error_code: Int16 = field("1+", default=0)
    replica_election_results: list[ReplicaElectionResult] = []
