"""DescribeLogDirs (API key 35): return the log directories with their partitions and sizes, including copies
in progress. Version 4 adds disk space (KIP-827). Version 5 adds whether a directory is cordoned, which this
broker does not support (KIP-1066).
"""

import os

from kafka_compat.api.handler import RequestContext, handler
from kafka_compat.errors import ErrorCode
from kafka_compat.handlers.authorization import require_cluster
from kafka_compat.long_work import Steps
from kafka_compat.protocol.messages.describe_log_dirs import (
    DescribeLogDirsPartition,
    DescribeLogDirsRequest,
    DescribeLogDirsResponse,
    DescribeLogDirsResult,
    DescribeLogDirsTopic,
)
from kafka_compat.security.authorizer import Operation


@handler(0, 5)
def describe_log_dirs(ctx: RequestContext, request: DescribeLogDirsRequest) -> Steps[DescribeLogDirsResponse]:
    require_cluster(ctx, Operation.DESCRIBE)
    wanted: set[tuple[str, int]] | None = None
    if request.topics is not None:
        wanted = set()
        for topic_wanted in request.topics:
            for partition in topic_wanted.partitions:
                wanted.add((topic_wanted.topic, partition))
                yield None
    log_dirs = ctx.services.log_dirs
    topics: dict[str, dict[str, list[DescribeLogDirsPartition]]] = {
        directory: {} for directory in log_dirs.directories
    }
    for is_future, logs in ((False, log_dirs.logs), (True, log_dirs.futures)):
        # Iterate over a copy: while this generator is suspended, logs may be created and deleted.
        for (topic, partition), log in list(logs.items()):
            yield None
            if wanted is None or (topic, partition) in wanted:
                source = log_dirs.logs.get((topic, partition), log) if is_future else log
                topics[os.path.dirname(log.directory)].setdefault(topic, []).append(
                    DescribeLogDirsPartition(
                        partition_index=partition,
                        partition_size=log.size_bytes,
                        offset_lag=max(source.log_end_offset - log.log_end_offset, 0),
                        is_future_key=is_future,
                    )
                )
    results = []
    for directory, found in topics.items():
        result = DescribeLogDirsResult(log_dir=directory)
        results.append(result)
        if directory in log_dirs.offline:
            result.error_code = ErrorCode.KAFKA_STORAGE_ERROR
            continue
        result.topics = [DescribeLogDirsTopic(name=name, partitions=items) for name, items in found.items()]
        space = os.statvfs(directory)
        result.total_bytes = space.f_blocks * space.f_frsize
        result.usable_bytes = space.f_bavail * space.f_frsize
    return DescribeLogDirsResponse(results=results)
