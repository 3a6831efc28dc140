"""A broker's registration: its node under /brokers/ids, whose czxid is the broker's epoch (KIP-380)."""

from __future__ import annotations

import asyncio

from kafka_compat.coordination.nodes import znodes
from kafka_compat.coordination.nodes.cluster_state import BrokerInfo
from kafka_compat.coordination.store.metadata_store import (
    ConnectionLost,
    Create,
    Event,
    MetadataStore,
    NodeExists,
    SetData,
    Stat,
    TransactionFailed,
)


async def register(store: MetadataStore, broker: BrokerInfo, now_ms: int, wait_s: float) -> int:
    """Register in this session; the broker's epoch.

    A node that the broker's life before left behind goes with its session: it is waited for, `wait_s` at
    most. NodeExists when another broker keeps the id; ConnectionLost when the store gave no answer in that
    time. As Kafka, one transaction creates the node and sets its data, so that its zxid is known from the
    answer.
    """
    path = znodes.broker_path(broker.broker_id)
    payload = znodes.encode_broker(broker, now_ms)
    held = False
    try:
        async with asyncio.timeout(wait_s):
            while True:
                epoch = await _create(store, path, payload)
                if epoch is not None:
                    return epoch
                gone = asyncio.Event()

                def changed(event: Event, gone: asyncio.Event = gone) -> None:
                    gone.set()

                found = await store.exists(path, changed)
                if found is None:
                    continue
                if found.ephemeral_owner == store.session_id:
                    return found.czxid
                held = True
                await gone.wait()
                held = False
    except TimeoutError:
        raise (NodeExists(path) if held else ConnectionLost(path)) from None


async def _create(store: MetadataStore, path: str, payload: bytes) -> int | None:
    """The epoch of the new node; None when there is one, maybe by an earlier try whose answer was lost."""
    try:
        results = await store.multi([Create(path, None, ephemeral=True), SetData(path, payload)])
    except TransactionFailed as failed:
        if not isinstance(failed.cause, NodeExists):
            raise failed.take_cause() from None
        return None
    except ConnectionLost:
        return None
    stat = results[1]
    assert isinstance(stat, Stat)
    return stat.czxid
