"""Probes of other nodes: whether anything listens at a node's address. No request is sent."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final

from kafka_compat.coordination.replicated_store.metadata_log import Reach

PROBE_S: Final = 1.0
"""Maximum time in seconds of an attempt to connect."""


class Probes:
    """The probes of one node, at most one of each other node at a time."""

    def __init__(self, address_of: Callable[[int], tuple[str, int] | None]) -> None:
        """`address_of` returns the address of a node, or None if it is unknown."""
        self._address_of = address_of
        self._running: dict[int, asyncio.Task[None]] = {}

    def probe(self, node_id: int, done: Callable[[Reach], None]) -> None:
        """Try to connect to a node, and pass the result to `done`."""
        if node_id not in self._running:
            task = self._running[node_id] = asyncio.create_task(self._probe(node_id, done))
            task.add_done_callback(lambda _: self._running.pop(node_id, None))

    async def _probe(self, node_id: int, done: Callable[[Reach], None]) -> None:
        address = self._address_of(node_id)
        done(Reach.NO_ADDRESS if address is None else await _reach(*address))

    async def close(self) -> None:
        """Cancel all probes."""
        running = list(self._running.values())
        for task in running:
            task.cancel()
        if running:
            await asyncio.wait(running)


async def _reach(host: str, port: int) -> Reach:
    try:
        async with asyncio.timeout(PROBE_S):
            _, writer = await asyncio.open_connection(host, port)
    except ConnectionRefusedError:
        return Reach.REFUSED
    except OSError:  # a TimeoutError, too
        return Reach.FAILED
    writer.transport.abort()
    return Reach.CONNECTED
