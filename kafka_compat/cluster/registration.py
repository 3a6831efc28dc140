"""A broker's registration: its node under /brokers/ids, whose czxid is the broker's epoch (KIP-380)."""

from __future__ import annotations

import asyncio

from coordination import znodes
from coordination.metadata_store import (
    Create,
    Event,
    MetadataStore,
    NodeExists,
    SetData,
    Stat,
    TransactionFailed,
)
from coordination.model import BrokerInfo


async def register(store: MetadataStore, broker: BrokerInfo, now_ms: int, wait_s: float) -> int:
    """Register in this session; the broker's epoch.

    A node that the broker's life before left behind goes with its session: it is waited for, `wait_s` at
    most. NodeExists when another broker keeps the id. As Kafka, one transaction creates the node and sets its
    data, so that its zxid is known from the answer.
    """
    path = znodes.broker_path(broker.broker_id)
    payload = znodes.encode_broker(broker, now_ms)
    async with asyncio.timeout(wait_s) as deadline:
        while True:
            try:
                results = await store.multi([Create(path, None, ephemeral=True), SetData(path, payload)])
            except TransactionFailed as failed:
                if not isinstance(failed.cause, NodeExists):
                    raise failed.cause from None
            else:
                stat = results[1]
                assert isinstance(stat, Stat)
                return stat.czxid
            gone = asyncio.Event()

            def changed(event: Event, gone: asyncio.Event = gone) -> None:
                gone.set()

            found = await store.exists(path, changed)
            if found is None:
                continue
            if found.ephemeral_owner == store.session_id:
                return found.czxid
            try:
                await gone.wait()
            except asyncio.CancelledError:
                if deadline.expired():
                    raise NodeExists(path) from None
                raise
