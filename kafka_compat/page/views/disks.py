"""Log directories of all brokers, as DescribeLogDirs reports them (KIP-827), and how much room there is."""

from __future__ import annotations

import asyncio
from typing import Any, Final

from kafka_compat.errors import known_code
from kafka_compat.http.routes import BadCall
from kafka_compat.page.visit import Data, Visit
from kafka_compat.protocol.api_keys import ApiKey
from kafka_compat.protocol.codec import MalformedRequest
from kafka_compat.security.authorizer import Operation
from kafka_compat.status.rules import USABLE_MIN
from kafka_compat.status.snapshot import LogDir

_VERSION: Final = 4
_PATIENCE_S: Final = 3.0


async def see(visit: Visit) -> Data:
    """Of all brokers."""
    visit.rights.require_cluster(Operation.DESCRIBE)
    found, missing = await log_dirs(visit, with_replicas=True)
    rows = [
        {
            **row_of(each),
            "replicas": each.replicas,
            "replica_bytes": each.replica_bytes,
            "is_nearly_full": each.usable_share is not None and each.usable_share < USABLE_MIN,
        }
        for each in found
    ]
    return {"disks": rows, "missing": missing}


def row_of(log_dir: LogDir) -> dict[str, Any]:
    """The log directory, and how much room there is on its volume."""
    return {
        "broker": log_dir.broker_id,
        "path": log_dir.path,
        "error": log_dir.error,
        "total_bytes": log_dir.total_bytes,
        "usable_bytes": log_dir.usable_bytes,
        "usable_share": log_dir.usable_share,
    }


async def log_dirs(visit: Visit, *, with_replicas: bool) -> tuple[list[LogDir], list[str]]:
    """Of brokers that tell, and what is to be said of the others. Whoever asks may describe the cluster."""
    missing: list[str] = []
    asked = [_of(visit, one, missing, with_replicas) for one in sorted(visit.cluster.metadata.brokers)]
    return [each for found in await asyncio.gather(*asked) for each in found], missing


async def _of(visit: Visit, broker_id: int, missing: list[str], with_replicas: bool) -> list[LogDir]:
    try:
        async with asyncio.timeout(_PATIENCE_S):
            answer = await visit.ask(
                ApiKey.DESCRIBE_LOG_DIRS, _VERSION, broker_id, topics=None if with_replicas else []
            )
    except (BadCall, TimeoutError, MalformedRequest):
        missing.append(f"broker {broker_id} did not report its disks")
        return []
    return [
        LogDir(
            broker_id,
            one.log_dir,
            sum(len(topic.partitions) for topic in one.topics),
            sum(each.partition_size for topic in one.topics for each in topic.partitions),
            one.total_bytes if one.total_bytes >= 0 else None,
            one.usable_bytes if one.usable_bytes >= 0 else None,
            known_code(one.error_code).name if one.error_code else None,
        )
        for one in answer.results
    ]
