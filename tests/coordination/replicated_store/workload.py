"""Clients that write to and read from the stores of a simulated quorum, and record what they see."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Sequence
from contextlib import suppress

from kafka_compat.coordination.replicated_store.session import ReplicatedSession
from kafka_compat.coordination.store import metadata_store as stores
from kafka_compat.coordination.store.metadata_store import ConnectionLost, SessionExpired, TransactionFailed
from tests.coordination.replicated_store import model
from tests.coordination.replicated_store.simulated_quorum import SimulatedNode, SimulatedQuorum
from tests.coordination.replicated_store.tree_history import Operation

PATHS = ("/a", "/b", "/a/c", "/b/d", "/e")
SESSION_TIMEOUT_MS = 400


class Workload:
    """The history of all clients. A client ends with the process of its node."""

    def __init__(self, quorum: SimulatedQuorum, chance: random.Random, count: int) -> None:
        self.quorum = quorum
        self.chance = chance
        self.left = count
        self.history: list[Operation] = []
        self.problems: list[str] = []
        self._ended: set[int] = set()
        self._ends: dict[int, Operation] = {}
        self._open: dict[int, list[Operation]] = {}
        self._clients: dict[SimulatedNode, list[asyncio.Task[None]]] = {}
        self._values = 0
        quorum.seen = self._look_for_ends

    def start(self, node: SimulatedNode, clients: int) -> None:
        """Start clients of a process."""
        self._clients[node] = [asyncio.ensure_future(self._client(node)) for _ in range(clients)]

    async def run_to_its_end(self) -> None:
        """Wait until all operations are done."""
        while tasks := [task for tasks in self._clients.values() for task in tasks if not task.done()]:
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        for tasks in self._clients.values():
            for task in tasks:
                if not task.cancelled():
                    task.result()

    async def restart(self, node_id: int, *, from_snapshot: bool, clients: int) -> None:
        """Kill the process of a node, with its clients, and start another one."""
        node = self.quorum.nodes[node_id]
        for task in self._clients.pop(node):
            task.cancel()
        for session_id in list(node.store._sessions):
            self._ending(session_id)
        self.start(await self.quorum.restart(node_id, from_snapshot=from_snapshot), clients)

    # --- one client

    async def _client(self, node: SimulatedNode) -> None:
        while self.left > 0:
            session = await node.store.connect(SESSION_TIMEOUT_MS)
            self._open[session.session_id] = []
            watched: dict[str, tuple[int, list[stores.Event]]] = {}
            with suppress(SessionExpired):
                for _ in range(self.chance.randint(5, 60)):
                    if self.left <= 0:
                        break
                    self.left -= 1
                    await self._step(session, watched)
                self._ending(session.session_id)
                await session.close()
                continue
            self.problems.append(f"session {session.session_id} expired although its node fetches")

    async def _step(
        self, session: ReplicatedSession, watched: dict[str, tuple[int, list[stores.Event]]]
    ) -> None:
        dice = self.chance.random()
        path = self.chance.choice(PATHS)
        if dice < 0.55:
            writes = [self._multi(session) for _ in range(self.chance.choice((1, 1, 1, 2, 3)))]
            await asyncio.gather(*writes)
        elif dice < 0.75:
            operation = self._begin(Operation("read", session.session_id, path=path))
            await session.sync()
            operation.end(await self._read(session, path, watched))
        elif dice < 0.9:
            await self._read(session, path, watched)
        else:
            events: list[stores.Event] = []
            with suppress(stores.NoNode):
                _, stat = await session.get(path, events.append)
                watched.setdefault(path, (stat.mzxid, events))

    async def _read(
        self,
        session: ReplicatedSession,
        path: str,
        watched: dict[str, tuple[int, list[stores.Event]]],
    ) -> model.Results:
        result: model.Results = ()
        mzxid = -1
        with suppress(stores.NoNode):
            data, stat = await session.get(path)
            mzxid = stat.mzxid
            result = data, stat.version, stat.ephemeral_owner, stat.children_count
        if path in watched:
            seen, events = watched[path]
            if mzxid != seen and not events:
                self.problems.append(f"{path} was read at {mzxid} before its watch at {seen} fired")
            if 0 <= mzxid < seen:
                self.problems.append(f"{path} was read at {mzxid} after {seen}")
            if events:
                del watched[path]
        return result

    async def _multi(self, session: ReplicatedSession) -> None:
        operations = self._operations()
        operation = self._begin(Operation("multi", session.session_id, operations))
        try:
            results = await session.multi(operations)
        except TransactionFailed as failed:
            operation.end((failed.index, type(failed.cause)))
        except ConnectionLost:
            return
        else:
            operation.end(tuple(item.version if isinstance(item, stores.Stat) else item for item in results))

    def _operations(self) -> Sequence[stores.Operation]:
        found: list[stores.Operation] = []
        for _ in range(self.chance.choice((1, 1, 1, 2, 3))):
            path = self.chance.choice(PATHS)
            version = self.chance.choice((-1, -1, -1, 0, 1))
            self._values += 1
            data = str(self._values).encode()
            dice = self.chance.random()
            if dice < 0.4:
                found.append(stores.Create(path, data, ephemeral=self.chance.random() < 0.5))
            elif dice < 0.7:
                found.append(stores.SetData(path, data, version))
            elif dice < 0.9:
                found.append(stores.Delete(path, version))
            else:
                found.append(stores.Check(path, version))
        return found

    def _begin(self, operation: Operation) -> Operation:
        self.history.append(operation)
        self._open[operation.session].append(operation)
        return operation

    def _ending(self, session_id: int) -> None:
        """Begin the end of a session, once."""
        if session_id in self._ended:
            return
        self._ended.add(session_id)
        operation = self._ends[session_id] = Operation("end", session_id)
        self.history.append(operation)

    def _look_for_ends(self, node: SimulatedNode) -> None:
        """Record the ends of sessions that this node has applied."""
        machine = node.store.machine
        for session_id in [known for known in self._ends if known < machine.end_offset]:
            if session_id not in machine.sessions:
                self._ends.pop(session_id).end(())
                for operation in self._open.pop(session_id, ()):
                    operation.give_up()
