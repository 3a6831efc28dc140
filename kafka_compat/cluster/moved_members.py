"""The brokers that follow the metadata to another store: who is ready for it, and who has arrived."""

import asyncio
from typing import Final

from kafka_compat.coordination.nodes import znodes
from kafka_compat.coordination.nodes.node_json import INT32_MAX, is_number
from kafka_compat.coordination.nodes.store_marker import read_marker
from kafka_compat.coordination.store.metadata_store import MetadataStore, NoNode

ARRIVAL_S: Final = 5.0
"""How long brokers wait in the new store for the others, in seconds."""
_LOOK_S: Final = 0.02


async def broker_ids(store: MetadataStore, parent: str) -> set[int]:
    """Return the IDs of the brokers that have a node under `parent`."""
    try:
        return {int(name) for name in await store.children(parent) if is_number(name, INT32_MAX)}
    except NoNode:
        return set()


async def until_registered(store: MetadataStore) -> None:
    """Wait until all brokers that were registered before the move are registered again, or ARRIVAL_S."""
    marker, _ = await read_marker(store)
    expected = set(marker.brokers) if marker is not None else set()
    deadline_s = asyncio.get_running_loop().time() + ARRIVAL_S
    while not expected <= await broker_ids(store, znodes.BROKER_IDS):
        if asyncio.get_running_loop().time() > deadline_s:
            return
        await asyncio.sleep(_LOOK_S)
