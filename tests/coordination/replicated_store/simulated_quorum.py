"""A quorum of nodes in memory, with simulated time: one committed log, and faults on the way to it.

Raft itself is not simulated. Appends are delayed, lost, taken twice, or taken without a response; leaders
change and lose uncommitted records; nodes apply late, learn of leaders late, restart from the log or from a
snapshot, and fall so far behind that they continue from a snapshot of another node.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from uuid import UUID

from kafka_compat.coordination.replicated_store.metadata_log import (
    AppliedRecord,
    LogApplication,
    LogNode,
    Reach,
)
from kafka_compat.coordination.replicated_store.record_frames import unframe
from kafka_compat.coordination.replicated_store.store import ReplicatedStore
from kafka_compat.coordination.store.tree import ImageClosed


class SimulatedNode(LogNode):
    """One process of a node. A restart creates a new one."""

    def __init__(self, quorum: SimulatedQuorum, node_id: int) -> None:
        self.node_id = node_id
        self.directory_id = UUID(int=node_id)
        self.quorum = quorum
        self.chance = quorum.chance
        self.alive = True
        self.known_leader = -1
        self.known_epoch = 0
        self.applied = 0
        self.progress = asyncio.Event()
        self.snapshotting = asyncio.Lock()
        self._last_arrival_s = 0.0
        loop = asyncio.get_running_loop()
        self.store = ReplicatedStore(self, lambda: int(loop.time() * 1000), UUID(int=quorum.next_number()))
        self.application: LogApplication = self.store
        self._applying = loop.create_task(self._apply())

    def append(self, records: Sequence[bytes], failed: Callable[[], None], epoch: int = -1) -> None:
        if not self.alive:
            return
        loop = asyncio.get_running_loop()
        # Requests to the leader arrive in order.
        self._last_arrival_s = max(self._last_arrival_s, loop.time() + self.quorum.delay_s())
        arguments = (self, self.known_leader, self.known_epoch, list(records), failed, epoch)
        loop.call_at(self._last_arrival_s, self.quorum.arrived, *arguments)

    def probe(self, node_id: int, done: Callable[[Reach], None]) -> None:
        """Report that the node can be reached."""
        asyncio.get_running_loop().call_soon(done, Reach.CONNECTED)

    def learn(self, leader_id: int, epoch: int) -> None:
        """Learn of a leader, unless a later one is known."""
        if self.alive and epoch >= self.known_epoch:
            self.known_leader, self.known_epoch = leader_id, epoch
            self.application.leader_changed(leader_id, epoch)

    def kill(self) -> None:
        """End the process without any message."""
        self.alive = False
        self._applying.cancel()
        self.store.close()

    async def _apply(self) -> None:
        while True:
            await self.quorum.committing(self.applied)
            await asyncio.sleep(self.quorum.delay_s())  # simulated time
            if self.chance.random() < self.quorum.faults.get("behind", 0):
                await asyncio.sleep(0.3)  # simulated time
                await self._catch_up()
                continue
            log, committed = self.quorum.log, self.quorum.committed
            end = min(committed, self.applied + self.chance.randint(1, 20))
            found = [
                unframe(offset, value)
                for offset in range(self.applied, end)
                if (value := log[offset]) is not None
            ]
            for _ in self.application.apply(found):
                await asyncio.sleep(0)  # other work runs between the steps
            self.applied = end
            self.quorum.has_applied(self)

    async def _catch_up(self) -> None:
        """Continue from a snapshot of a node that has applied more."""
        others = [
            node
            for node in self.quorum.nodes.values()
            if node.alive and node.store.machine.end_offset > self.applied
        ]
        if others:
            await self.restore(await self.quorum.snapshot_of(self.chance.choice(others)))

    async def restore(self, snapshot: tuple[int, list[bytes]]) -> None:
        """Continue from a snapshot."""
        offset, saved = snapshot
        for _ in self.application.restore(offset, self._saved(offset, saved)):
            await asyncio.sleep(0)  # other work runs between the steps
        self.applied = offset
        self.quorum.has_applied(self)

    def _saved(self, offset: int, saved: Sequence[bytes]) -> Iterator[AppliedRecord]:
        for value in saved:
            yield unframe(offset, value)


class SimulatedQuorum:
    """The quorum. `faults` maps the names of faults to their probabilities."""

    def __init__(self, seed: int, faults: dict[str, float], count: int = 3) -> None:
        self.chance = random.Random(seed)
        self.faults = faults
        self.log: list[bytes | None] = [None]
        self.committed = 1
        self.leader_id = 0
        self.epoch = 1
        self.seen: Callable[[SimulatedNode], None] = lambda _: None
        """Called after a node has applied records."""
        self._numbers = 0
        self._advanced = asyncio.Event()
        self.nodes = {node_id: SimulatedNode(self, node_id) for node_id in range(count)}
        self._tasks = [asyncio.ensure_future(self._fetch())]
        self._tell_of_leader()

    def next_number(self) -> int:
        self._numbers += 1
        return self._numbers

    def delay_s(self) -> float:
        return self.chance.choice((0.0, 0.0005, 0.001, 0.005))

    def has_applied(self, node: SimulatedNode) -> None:
        """Tell those who wait for this node."""
        node.progress.set()
        self.seen(node)

    async def committing(self, applied: int) -> None:
        """Wait until more than `applied` records are committed."""
        while self.committed <= applied:
            self._advanced.clear()
            await self._advanced.wait()

    def arrived(
        self,
        sender: SimulatedNode,
        leader_id: int,
        sent_epoch: int,
        framed: list[bytes],
        failed: Callable[[], None],
        epoch: int,
    ) -> None:
        """Perform an append that has arrived at the node that its sender considers the leader."""
        loop = asyncio.get_running_loop()
        fail = self.delay_s(), lambda: failed() if sender.alive else None
        if (leader_id, sent_epoch) != (self.leader_id, self.epoch):
            # The earlier leader took it, and lost it: the sender learns of the new leader.
            if sender.known_epoch == self.epoch and sender.known_leader == self.leader_id:
                loop.call_later(*fail)
            return
        if epoch not in (-1, self.epoch) or self._happens("lost"):
            loop.call_later(*fail)
            return
        self.log += framed
        if self._happens("twice"):
            self.log += framed
        if self._happens("unknown"):
            loop.call_later(*fail)
        loop.call_later(self.delay_s(), self._commit, len(self.log), self.epoch)

    def _happens(self, fault: str) -> bool:
        return self.chance.random() < self.faults.get(fault, 0)

    def _commit(self, end: int, epoch: int) -> None:
        if epoch == self.epoch and end > self.committed:
            self.committed = end
            self._advanced.set()

    def change_leader(self) -> None:
        """Elect a leader, which loses a part of the uncommitted records."""
        del self.log[self.chance.randint(self.committed, len(self.log)) :]
        self.epoch += 1
        self.leader_id = self.chance.choice([node.node_id for node in self.nodes.values() if node.alive])
        self.log.append(None)
        asyncio.get_running_loop().call_later(self.delay_s(), self._commit, len(self.log), self.epoch)
        self._tell_of_leader()

    def _tell_of_leader(self) -> None:
        loop = asyncio.get_running_loop()
        for node in self.nodes.values():
            if self.chance.random() < 0.5:
                node.learn(-1, self.epoch)
            loop.call_later(self.delay_s() * 10, node.learn, self.leader_id, self.epoch)

    async def restart(self, node_id: int, *, from_snapshot: bool) -> SimulatedNode:
        """Kill a node's process and start another one. A leader must not be restarted."""
        self.nodes[node_id].kill()
        await asyncio.sleep(self.delay_s() * 20)  # simulated time
        node = self.nodes[node_id] = SimulatedNode(self, node_id)
        if from_snapshot:
            other = self.chance.choice([item for item in self.nodes.values() if item is not node])
            node._applying.cancel()
            await node.restore(await self.snapshot_of(other))
            node._applying = asyncio.ensure_future(node._apply())
        node.learn(self.leader_id, self.epoch)
        return node

    async def snapshot_of(self, node: SimulatedNode) -> tuple[int, list[bytes]]:
        """Take a snapshot while the node applies records."""
        while True:
            with suppress(ImageClosed):
                return await self._taken(node)

    async def _taken(self, node: SimulatedNode) -> tuple[int, list[bytes]]:
        async with node.snapshotting:
            taken = node.application.snapshot()
            offset = node.store.machine.end_offset
            saved = []
            for record in taken:
                saved.append(record)
                await asyncio.sleep(self.delay_s())  # simulated time
        return offset, saved

    async def equal(self) -> None:
        """Wait until all nodes have applied everything that is committed, and compare them."""
        for node in self.nodes.values():
            while node.applied < self.committed:
                node.progress.clear()
                await node.progress.wait()
        digests = {node.store.machine.digest() for node in self.nodes.values()}
        assert len(digests) == 1

    async def _fetch(self) -> None:
        while True:
            await asyncio.sleep(0.05)  # simulated time
            for node in self.nodes.values():
                if node.alive and node.node_id != self.leader_id:
                    self.nodes[self.leader_id].application.replica_fetched(node.node_id)

    def close(self) -> None:
        for task in self._tasks:
            task.cancel()
        for node in self.nodes.values():
            node.kill()
