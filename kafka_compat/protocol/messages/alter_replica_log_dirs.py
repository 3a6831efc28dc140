"""AlterReplicaLogDirs (API key 34): move replicas between the log directories of one broker (KIP-113)."""

from kafka_compat.protocol.api_keys import ApiKey
from kafka_compat.protocol.schema import Int16, Int32, String, request, response, struct


@struct
class AlterReplicaLogDirTopic:
    """Partitions of one topic."""

    name: String = ""
    partitions: list[Int32] = []


@struct
class AlterReplicaLogDir:
    """What shall be in the directory at `path`, an absolute path on the broker."""

    path: String = ""
    topics: list[AlterReplicaLogDirTopic] = []


@request(ApiKey.ALTER_REPLICA_LOG_DIRS, versions="0-2", flexible="2+")
class AlterReplicaLogDirsRequest:
    """For replicas that the broker does not have yet, the directory is remembered for their creation."""

    dirs: list[AlterReplicaLogDir] = []


@struct
class AlterReplicaLogDirPartitionResult:
    """Whether the move of one replica has been started."""

    partition_index: Int32 = 0
    error_code: Int16 = 0


@struct
class AlterReplicaLogDirTopicResult:
    """Partitions of one topic."""

    topic_name: String = ""
    partitions: list[AlterReplicaLogDirPartitionResult] = []


@response(ApiKey.ALTER_REPLICA_LOG_DIRS, versions="0-2", flexible="2+")
class AlterReplicaLogDirsResponse:
    """Success means that moves have been started, not finished."""

    throttle_time_ms: Int32 = 0
    results: list[AlterReplicaLogDirTopicResult] = []
