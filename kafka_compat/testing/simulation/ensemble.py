"""Simulated ZooKeeper ensemble of a cluster: a metadata store that does not fail, and the brokers' sessions.

Rules
1. The store belongs to no process. Events for a broker run in the broker's process, if it is running.
2. The session of a broker that is killed or paused expires after zookeeper.session.timeout.ms.
"""

from collections.abc import Callable
from contextvars import Context, copy_context
from typing import TypeVar

from kafka_compat.coordination.store.embedded import EmbeddedMetadataStore, EmbeddedSession
from kafka_compat.coordination.store.journal import Journal, decode, encode_snapshot
from kafka_compat.coordination.store.metadata_store import MetadataStore, SessionState, StateListener, Watch
from kafka_compat.coordination.store.tree import Tree
from kafka_compat.testing.simulation.loop import SimulatedLoop
from kafka_compat.testing.simulation.nodes import CURRENT, Node


class MemoryJournal(Journal):
    """In-memory journal. It can be reopened with its contents, as on a disk."""

    def __init__(self, kept: bytearray) -> None:
        super().__init__("the journal of the simulation")
        self._kept = kept

    def open(self) -> Tree:
        if not self._kept:
            tree = Tree()
            self.compact(encode_snapshot(tree))
            return tree
        tree, self._snapshot_bytes, self._bytes = decode(bytes(self._kept), self.path)
        return tree

    def append(self, lines: bytes) -> None:
        self._kept += lines
        self._bytes += len(lines)

    def compact(self, snapshot: bytes) -> None:
        self._kept[:] = snapshot
        self._snapshot_bytes = self._bytes = len(snapshot)

    def close(self) -> None:
        """Do nothing, because the journal holds no resources."""


def tree_of(kept: bytearray) -> Callable[[str, Callable[[], int]], EmbeddedMetadataStore]:
    """Return a function that opens the metadata store with the journal `kept`."""
    return lambda path, now_ms: EmbeddedMetadataStore(path, now_ms, MemoryJournal(kept))


T = TypeVar("T")

_LOOKS = 3
"""Number of times that a session is checked per session timeout."""


class Ensemble:
    """The metadata store and the brokers' sessions, according to the rules of this module."""

    def __init__(self, loop: SimulatedLoop, session_timeout_s: float) -> None:
        self._loop = loop
        self._timeout_s = session_timeout_s
        self._tree = _Tree(loop)

    async def connect(self) -> MetadataStore:
        """Open a session for the calling process."""
        session = self._tree.connect()
        self._look(CURRENT.get(), session, self._loop.time())
        return session

    def _look(self, node: Node, session: EmbeddedSession, alive_s: float) -> None:
        if session.state is not SessionState.CONNECTED:
            return
        now_s = self._loop.time()
        if node.running:
            alive_s = now_s
        elif now_s - alive_s >= self._timeout_s:
            self._loop.journal.note(f"the session of {node.name} ends")
            self._loop.create_task(session.expire(), context=Context())
            return
        self._loop.network.later(now_s + self._timeout_s / _LOOKS, self._look, node, session, alive_s)


class _Tree(EmbeddedMetadataStore):
    def __init__(self, loop: SimulatedLoop) -> None:
        self._loop = loop
        super().__init__(
            "the store of the simulation",
            lambda: int(loop.time_of_day_s() * 1000),
            MemoryJournal(bytearray()),
        )

    def connect(self) -> EmbeddedSession:
        self._last_session_id += 1
        session = _Session(self, self._last_session_id, self._loop)
        self._sessions[session.session_id] = session
        return session

    def _batch(self):  # type: ignore[no-untyped-def]
        return Context().run(super()._batch)


class _Session(EmbeddedSession):
    def __init__(self, store: EmbeddedMetadataStore, session_id: int, loop: SimulatedLoop) -> None:
        super().__init__(store, session_id)
        self._loop = loop

    def on_state(self, listener: StateListener) -> None:
        super().on_state(self._there(listener))

    def _guard(self, watch: Watch | None) -> Watch | None:
        guarded = super()._guard(watch)
        return None if guarded is None else self._there(guarded)

    def _there(self, function: Callable[[T], None]) -> Callable[[T], None]:
        """Wrap a callback so that it runs in the current process, if that process is running (rule 1)."""
        context = copy_context()

        def called(argument: T) -> None:
            if context[CURRENT].running:
                context.run(function, argument)
            else:
                self._loop.call_soon(function, argument, context=context)

        return called
