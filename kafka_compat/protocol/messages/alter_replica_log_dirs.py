"""AlterReplicaLogDirs (API key 34): move replicas between the log directories of one broker (KIP-113)."""

from kafka_compat.protocol import schema as s
from kafka_compat.protocol.api_keys import ApiKey


@s.struct
class AlterReplicaLogDirTopic:
    name: s.String = ""
    partitions: list[s.Int32] = []


@s.struct
class AlterReplicaLogDir:
    """The replicas to move to the directory at `path`, an absolute path on the broker."""

    path: s.String = ""
    topics: list[AlterReplicaLogDirTopic] = []


@s.request(ApiKey.ALTER_REPLICA_LOG_DIRS, versions="0-2", flexible="2+")
class AlterReplicaLogDirsRequest:
    """If the broker does not have a replica yet, it will create the replica in the requested directory."""

    dirs: list[AlterReplicaLogDir] = []


@s.struct
class AlterReplicaLogDirPartitionResult:
    """Whether the move of one replica was started."""

    partition_index: s.Int32 = 0
    error_code: s.Int16 = 0


@s.struct
class AlterReplicaLogDirTopicResult:
    topic_name: s.String = ""
    partitions: list[AlterReplicaLogDirPartitionResult] = []


@s.response(ApiKey.ALTER_REPLICA_LOG_DIRS, versions="0-2", flexible="2+")
class AlterReplicaLogDirsResponse:
    """The result for each replica. Error code 0 does not mean that its move is complete."""

    throttle_time_ms: s.Int32 = 0
    results: list[AlterReplicaLogDirTopicResult] = []
