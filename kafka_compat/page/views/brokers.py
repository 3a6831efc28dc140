"""Web console pages for brokers and log directories."""

import asyncio
from collections import Counter
from typing import Any, Final

from kafka_compat.http.routes import NOT_FOUND, BadCall
from kafka_compat.long_work import Steps, batched
from kafka_compat.page.views.topics import described
from kafka_compat.page.visit import Data, Visit
from kafka_compat.protocol.api_keys import ApiKey
from kafka_compat.protocol.codec import MalformedRequest
from kafka_compat.security.authorizer import Operation
from kafka_compat.status.rules import USABLE_MIN
from kafka_compat.status.snapshot import LogDir


class _Counts:
    def __init__(self) -> None:
        self.leads: Counter[int] = Counter()
        self.replicas: Counter[int] = Counter()
        self.out_of_sync: Counter[int] = Counter()


async def see(visit: Visit) -> Data:
    """Return all brokers. This needs no permission, because every client may see them."""
    counts = await visit.finish(_count(visit))
    metadata = visit.cluster.metadata
    return {
        "cluster_id": metadata.cluster_id,
        "controller": metadata.controller_id if metadata.controller_id >= 0 else None,
        "brokers": [
            _row(visit, broker_id, counts) for broker_id in sorted({*metadata.brokers, *counts.replicas})
        ],
    }


async def see_one(visit: Visit) -> Data:
    """Return one broker, with its settings."""
    broker_id = visit.number("id", -1)
    counts = await visit.finish(_count(visit))
    if broker_id not in visit.cluster.metadata.brokers:
        raise BadCall(f"unknown broker {visit.query.get('id', '')}: see the list of brokers", NOT_FOUND)
    # Brokers in other processes would not authorize the console's principal, so do not query them.
    if not visit.is_here(broker_id):
        settings: list[dict[str, Any]] | None = None
    else:
        settings = await described(visit, _BROKER, str(broker_id), broker_id)
    return {**_row(visit, broker_id, counts), "settings": settings}


_BROKER = 4
"""Kafka's ConfigResource type for brokers."""


def _row(visit: Visit, broker_id: int, counts: _Counts) -> dict[str, Any]:
    metadata = visit.cluster.metadata
    broker = metadata.brokers.get(broker_id)
    endpoints = {} if broker is None else broker.endpoints
    return {
        "id": broker_id,
        "is_up": broker is not None,
        "is_here": visit.is_here(broker_id),
        "is_controller": broker_id == metadata.controller_id,
        "rack": None if broker is None else broker.rack,
        "listeners": [
            {"name": name, "address": f"[{host}]:{port}" if ":" in host else f"{host}:{port}"}
            for name, (host, port) in endpoints.items()
        ],
        "leads": counts.leads[broker_id],
        "replicas": counts.replicas[broker_id],
        "replicas_not_in_sync": counts.out_of_sync[broker_id],
    }


def _count(visit: Visit) -> Steps[_Counts]:
    counts = _Counts()
    metadata = visit.cluster.metadata
    known = (each for topic in list(metadata.topics.values()) for each in topic.partitions)
    for some in batched(known):
        for each in some:
            leader = metadata.reachable_leader(each)
            if leader is not None:
                counts.leads[leader] += 1
            counts.replicas.update(each.replicas)
            counts.out_of_sync.update(set(each.replicas) - set(each.isr))
        yield None
    return counts


# --- log directories


_LOG_DIRS_VERSION: Final = 4
_PATIENCE_S: Final = 3.0


async def see_disks(visit: Visit) -> Data:
    """Return the log directories and their free space, as reported by all brokers (KIP-827)."""
    visit.rights.require_cluster(Operation.DESCRIBE)
    found, missing = await log_dirs(visit, with_replicas=True)
    rows = [
        {
            **disk_row(each),
            "replicas": each.replicas,
            "replica_bytes": each.replica_bytes,
            "is_nearly_full": each.usable_share is not None and each.usable_share < USABLE_MIN,
        }
        for each in found
    ]
    return {"disks": rows, "missing": missing}


def disk_row(log_dir: LogDir) -> dict[str, Any]:
    """Return the table row of a log directory, with the space on its volume."""
    return {
        "broker": log_dir.broker_id,
        "path": log_dir.path,
        "error": log_dir.error,
        "total_bytes": log_dir.total_bytes,
        "usable_bytes": log_dir.usable_bytes,
        "usable_share": log_dir.usable_share,
    }


async def log_dirs(visit: Visit, *, with_replicas: bool) -> tuple[list[LogDir], list[str]]:
    """Return all log directories, and notes about brokers that did not respond. The caller must have checked
    DESCRIBE on the cluster.
    """
    missing: list[str] = []
    asked = [
        _log_dirs_of(visit, one, missing, with_replicas) for one in sorted(visit.cluster.metadata.brokers)
    ]
    return [each for found in await asyncio.gather(*asked) for each in found], missing


async def _log_dirs_of(visit: Visit, broker_id: int, missing: list[str], with_replicas: bool) -> list[LogDir]:
    try:
        async with asyncio.timeout(_PATIENCE_S):
            answer = await visit.ask(
                ApiKey.DESCRIBE_LOG_DIRS, _LOG_DIRS_VERSION, broker_id, topics=None if with_replicas else []
            )
    except (BadCall, TimeoutError, MalformedRequest):
        missing.append(f"broker {broker_id} did not report its disks")
        return []
    return [LogDir.of(broker_id, one) for one in answer.results]
