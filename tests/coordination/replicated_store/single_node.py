"""A log of one node in memory: it commits and applies each append in the next pass of the event loop."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from uuid import UUID

from kafka_compat.coordination.replicated_store.metadata_log import LogApplication, LogNode, Reach
from kafka_compat.coordination.replicated_store.record_frames import unframe
from kafka_compat.coordination.replicated_store.store import ReplicatedStore


class SingleNode(LogNode):
    """The node, with the store on it. Offset 0 is the record of Raft that begins the epoch."""

    def __init__(self, node_id: int = 1, *, leads: bool = True) -> None:
        self.node_id = node_id
        self.directory_id = UUID(int=7)
        self.log: list[bytes] = [b""]
        self.appends: list[Sequence[bytes]] = []
        """The records of each call of `append`, including those that were not taken."""
        self.failures: list[Callable[[], None]] = []
        self.takes = True
        """Whether appends are taken. Otherwise, the test calls `failures` or `take`."""
        self.store = ReplicatedStore(self)
        self.application: LogApplication = self.store
        if leads:
            self.store.leader_changed(node_id, 1)

    def append(self, records: Sequence[bytes], failed: Callable[[], None], epoch: int = -1) -> None:
        self.appends.append(records)
        self.failures.append(failed)
        if self.takes:
            asyncio.get_running_loop().call_soon(self.take, records)

    def probe(self, node_id: int, done: Callable[[Reach], None]) -> None:
        """Report that the node can be reached."""
        asyncio.get_running_loop().call_soon(done, Reach.CONNECTED)

    def take(self, framed: Sequence[bytes]) -> None:
        """Append and apply records."""
        applied = []
        for record in framed:
            applied.append(unframe(len(self.log), record))
            self.log.append(record)
        for _ in self.application.apply(applied):
            pass

    async def settled(self) -> None:
        """Wait until everything that was sent is applied."""
        for _ in range(6):
            await asyncio.sleep(0)  # sending, appending and applying each take one pass
