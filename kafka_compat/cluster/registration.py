"""Broker registration: the node under /brokers/ids, whose czxid is the broker epoch (KIP-380)."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from kafka_compat.cluster.controller_election import (
    FIRST_CONTROLLER_EPOCH,
    ControllerEpoch,
    read_controller_epoch,
)
from kafka_compat.coordination.nodes import znodes
from kafka_compat.coordination.store import metadata_store as stores
from kafka_compat.coordination.store.metadata_store import MetadataStore, Stat

if TYPE_CHECKING:
    from kafka_compat.coordination.nodes.cluster_state import BrokerInfo
    from kafka_compat.coordination.nodes.malformed_nodes import MalformedNodes


async def register(store: MetadataStore, broker: BrokerInfo, now_ms: int, wait_s: float) -> int:
    """Register in this session, and return the broker epoch.

    Waits at most `wait_s` until the node of the broker's previous run is deleted with its session. Raises
    NodeExists if the node still exists, and ConnectionLost if the store does not respond in time. As in
    Kafka, one transaction creates the node and sets its data, so that the response contains the node's zxid.
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

                def changed(event: stores.Event | stores.SessionState, gone: asyncio.Event = gone) -> None:
                    gone.set()

                # No watch fires in a session that has ended: the next attempt raises SessionExpired.
                store.on_state(changed)
                found = await store.exists(path, changed)
                if found is None:
                    continue
                if found.ephemeral_owner == store.session_id:
                    return found.czxid
                held = True
                await gone.wait()
                held = False
    except TimeoutError:
        raise (stores.NodeExists(path) if held else stores.ConnectionLost(path)) from None


async def register_alone(
    store: MetadataStore, broker: BrokerInfo, now_ms: int, malformed: MalformedNodes
) -> tuple[int, ControllerEpoch]:
    """Register in the store of a standalone broker and become controller, in one transaction. Return the
    broker epoch and the controller epoch.
    """
    operations: list[stores.Operation] = []
    try:
        before = await read_controller_epoch(store, malformed)
    except stores.NoNode:
        before = ControllerEpoch(FIRST_CONTROLLER_EPOCH, 0)
        operations.append(
            stores.Create(znodes.CONTROLLER_EPOCH, znodes.encode_controller_epoch(FIRST_CONTROLLER_EPOCH))
        )
    path, epoch = znodes.broker_path(broker.broker_id), before.controller_epoch + 1
    operations += [
        stores.Create(path, None, ephemeral=True),
        stores.Create(
            znodes.CONTROLLER,
            znodes.encode_controller(znodes.ControllerInfo(broker.broker_id, now_ms)),
            ephemeral=True,
        ),
        stores.SetData(
            znodes.CONTROLLER_EPOCH, znodes.encode_controller_epoch(epoch), before.epoch_znode_version
        ),
        stores.SetData(path, znodes.encode_broker(broker, now_ms)),
    ]
    *_, controller, registration = await store.multi(operations)
    assert isinstance(controller, Stat)
    assert isinstance(registration, Stat)
    return registration.czxid, ControllerEpoch(epoch, controller.version)


async def _create(store: MetadataStore, path: str, payload: bytes) -> int | None:
    """Create the node. Return the broker epoch, or None if the node exists or the response is lost."""
    try:
        results = await store.multi(
            [stores.Create(path, None, ephemeral=True), stores.SetData(path, payload)]
        )
    except stores.TransactionFailed as failed:
        if not isinstance(failed.cause, stores.NodeExists):
            raise failed.take_cause() from None
        return None
    except stores.ConnectionLost:
        return None
    stat = results[1]
    assert isinstance(stat, Stat)
    return stat.czxid
