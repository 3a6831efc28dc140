"""The brokers of the cluster."""

from __future__ import annotations

from collections import Counter
from typing import Any

from kafka_compat.http.routes import NOT_FOUND, BadCall
from kafka_compat.long_work import Steps, batched
from kafka_compat.page.views.topics import described
from kafka_compat.page.visit import Data, Visit


class _Counts:
    def __init__(self) -> None:
        self.leads: Counter[int] = Counter()
        self.replicas: Counter[int] = Counter()
        self.out_of_sync: Counter[int] = Counter()


async def see(visit: Visit) -> Data:
    """As every client may know them."""
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
    """One of them, with its settings."""
    broker_id = visit.number("id", -1)
    counts = await visit.finish(_count(visit))
    if broker_id not in visit.cluster.metadata.brokers:
        raise BadCall(
            f"there is no broker {visit.query.get('id', '')} now: see the list of brokers", NOT_FOUND
        )
    # Asked of this process, which says who may: what others answer is told to a broker, and not to the page.
    if not visit.is_here(broker_id):
        settings: list[dict[str, Any]] | None = None
    else:
        settings = await described(visit, _BROKER, str(broker_id), broker_id)
    return {**_row(visit, broker_id, counts), "settings": settings}


_BROKER = 4
"""As Kafka's ConfigResource has it."""


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
