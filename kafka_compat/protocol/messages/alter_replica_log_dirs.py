"""AlterReplicaLogDirs (API key 34)."""

from kafka_compat.protocol.api_keys import ApiKey
from kafka_compat.protocol.schema import Int16, Int32, String, request, response, struct


@struct
class AlterReplicaLogDirTopic:
    name: String = ""
    partitions: list[Int32] = []


@struct
class AlterReplicaLogDir:
    path: String = ""
    topics: list[AlterReplicaLogDirTopic] = []


@request(ApiKey.ALTER_REPLICA_LOG_DIRS, versions="0-2", flexible="2+")
class AlterReplicaLogDirsRequest:
    dirs: list[AlterReplicaLogDir] = []


@struct
class AlterReplicaLogDirPartitionResult:
    partition_index: Int32 = 0
    error_code: Int16 = 0


@struct
class AlterReplicaLogDirTopicResult:
    topic_name: String = ""
    partitions: list[AlterReplicaLogDirPartitionResult] = []


@response(ApiKey.ALTER_REPLICA_LOG_DIRS, versions="0-2", flexible="2+")
class AlterReplicaLogDirsResponse:
    throttle_time_ms: Int32 = 0
    results: list[AlterReplicaLogDirTopicResult] = []
