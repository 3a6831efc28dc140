"""DescribeLogDirs (key 35): the data folders with their partitions and sizes, copies under way included
(version 4 adds disk space, KIP-827).
"""

from __future__ import annotations

import os

from kafka_compat.dispatch import RequestContext, handler
from kafka_compat.errors import ErrorCode
from kafka_compat.protocol.api_keys import ApiKey
from kafka_compat.protocol.messages.describe_log_dirs import (
    DescribeLogDirsPartition,
    DescribeLogDirsRequest,
    DescribeLogDirsResponse,
    DescribeLogDirsResult,
    DescribeLogDirsTopic,
)


@handler(ApiKey.DESCRIBE_LOG_DIRS)
def describe_log_dirs(ctx: RequestContext, request: DescribeLogDirsRequest) -> DescribeLogDirsResponse:
    wanted = None
    if request.topics is not None:
        wanted = {(topic.topic, partition) for topic in request.topics for partition in topic.partitions}
    log_dirs = ctx.broker.log_dirs
    topics: dict[str, dict[str, list[DescribeLogDirsPartition]]] = {
        directory: {} for directory in log_dirs.directories
    }
    for (topic, partition), log in log_dirs.logs.items():
        if wanted is None or (topic, partition) in wanted:
            topics[os.path.dirname(log.directory)].setdefault(topic, []).append(
                DescribeLogDirsPartition(
                    partition_index=partition, partition_size=log.size_bytes, offset_lag=0
                )
            )
    for (topic, partition), future in log_dirs.futures.items():
        if wanted is None or (topic, partition) in wanted:
            source = log_dirs.logs.get((topic, partition))
            lag = source.log_end_offset - future.log_end_offset if source is not None else 0
            topics[os.path.dirname(future.directory)].setdefault(topic, []).append(
                DescribeLogDirsPartition(
                    partition_index=partition,
                    partition_size=future.size_bytes,
                    offset_lag=max(lag, 0),
                    is_future_key=True,
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
