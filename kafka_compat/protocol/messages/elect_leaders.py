"""ElectLeaders (API key 43): elect the preferred replica, or any replica, as leader (KIP-460)."""

from kafka_compat.protocol import schema as s
from kafka_compat.protocol.api_keys import ApiKey


@s.struct
class TopicPartitions:
    topic: s.String = ""
    partitions: list[s.Int32] = []


@s.request(ApiKey.ELECT_LEADERS, versions="0-2", flexible="2+")
class ElectLeadersRequest:
    """Null `topic_partitions` requests all partitions. election_type is 0 (preferred) or 1 (unclean)."""

    election_type: s.Int8 = s.field("1+", default=0)
    topic_partitions: list[TopicPartitions] | None = []
    timeout_ms: s.Int32 = 60000


@s.struct
class PartitionResult:
    """The result for one partition. With ELECTION_NOT_NEEDED, the partition keeps its current leader."""

    partition_id: s.Int32 = 0
    error_code: s.Int16 = 0
    error_message: s.NullableString = ""


@s.struct
class ReplicaElectionResult:
    topic: s.String = ""
    partition_result: list[PartitionResult] = []


@s.response(ApiKey.ELECT_LEADERS, versions="0-2", flexible="2+")
class ElectLeadersResponse:
    """In version 1 and later, `error_code` applies to the whole request."""

    throttle_time_ms: s.Int32 = 0
    error_code: s.Int16 = s.field("1+", default=0)
    replica_election_results: list[ReplicaElectionResult] = []
