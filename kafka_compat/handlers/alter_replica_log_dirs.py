"""AlterReplicaLogDirs (API key 34): move this broker's replicas to different log directories (KIP-113).

Error code 0 means that a move has started. DescribeLogDirs reports its progress.
"""

from kafka_compat.api.handler import RequestContext, handler
from kafka_compat.error_mapping import code_of
from kafka_compat.errors import ErrorCode, KafkaError
from kafka_compat.handlers.authorization import require_cluster
from kafka_compat.long_work import Steps
from kafka_compat.protocol.messages.alter_replica_log_dirs import (
    AlterReplicaLogDirPartitionResult,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirsResponse,
    AlterReplicaLogDirTopicResult,
)
from kafka_compat.security.authorizer import Operation
from kafka_compat.storage.errors import StorageError


@handler(0, 2)
def alter_replica_log_dirs(
    ctx: RequestContext, request: AlterReplicaLogDirsRequest
) -> Steps[AlterReplicaLogDirsResponse]:
    require_cluster(ctx, Operation.ALTER)
    paths: dict[tuple[str, int], str] = {}
    for wanted in request.dirs:
        for topic in wanted.topics:
            for partition in topic.partitions:
                # A partition named several times is moved once, to the last directory.
                paths[topic.name, partition] = wanted.path
                yield None
    topics: dict[str, list[AlterReplicaLogDirPartitionResult]] = {}
    for (name, partition), path in paths.items():
        code = _move(ctx, name, partition, path)
        topics.setdefault(name, []).append(
            AlterReplicaLogDirPartitionResult(partition_index=partition, error_code=code)
        )
        yield None
    return AlterReplicaLogDirsResponse(
        results=[
            AlterReplicaLogDirTopicResult(topic_name=name, partitions=results)
            for name, results in topics.items()
        ]
    )


def _move(ctx: RequestContext, topic: str, partition: int, path: str) -> ErrorCode:
    try:
        ctx.services.log_mover.move(topic, partition, path)
    except (KafkaError, StorageError) as error:
        return code_of(error)
    return ErrorCode.NONE
