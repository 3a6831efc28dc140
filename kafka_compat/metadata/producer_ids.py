"""Producer ID allocation from cluster-wide blocks (KIP-730), so that no two brokers, and no two runs of one
broker, allocate the same ID.
"""

import asyncio
from collections.abc import Awaitable, Callable

from kafka_compat.coordination.nodes import znodes
from kafka_compat.coordination.store.metadata_store import BadVersion, MetadataStore

BLOCK_SIZE = 1000


class ProducerIds:
    """Allocator of producer IDs from this broker's block. It claims a new block when all IDs are used."""

    def __init__(self, claim: Callable[[], Awaitable[znodes.ProducerIdBlock]]) -> None:
        """`claim` assigns a new block to this broker, and returns the block."""
        self._claim = claim
        self._next = 0
        self._end = 0
        self._lock = asyncio.Lock()

    async def next(self) -> int:
        """Return a producer ID that no broker has returned before."""
        async with self._lock:
            if self._next >= self._end:
                block = await self._claim()
                self._next, self._end = block.first, block.last + 1
            self._next += 1
            return self._next - 1


async def claim_block(store: MetadataStore, broker_id: int) -> znodes.ProducerIdBlock:
    """Assign the next block to a broker by compare-and-set on /latest_producer_id_block, and return it."""
    path = znodes.PRODUCER_ID_BLOCK
    while True:
        await store.ensure(path)
        data, stat = await store.get(path)
        last = znodes.decode_producer_id_block(data)
        first = last.last + 1 if last is not None else 0
        block = znodes.ProducerIdBlock(broker_id, first, first + BLOCK_SIZE - 1)
        try:
            await store.set(path, znodes.encode_producer_id_block(block), stat.version)
        except BadVersion:
            continue
        return block


async def skip_used_ids(store: MetadataStore, broker_id: int, highest_used: int) -> None:
    """Skip all producer IDs up to and including the block of `highest_used`, the highest ID found in a log.
    Log directories written by a different broker contain producers of that broker, and if their IDs were
    reused, new records would look like retries.
    """
    path = znodes.PRODUCER_ID_BLOCK
    await store.ensure(path)
    data, stat = await store.get(path)
    last = znodes.decode_producer_id_block(data)
    if highest_used > (last.last if last is not None else -1):
        first = highest_used - highest_used % BLOCK_SIZE
        block = znodes.ProducerIdBlock(broker_id, first, first + BLOCK_SIZE - 1)
        await store.set(path, znodes.encode_producer_id_block(block), stat.version)
