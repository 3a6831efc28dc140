"""The replicated metadata store of one node of a quorum: it applies committed records to the node's tree.

Rules, in addition to the rules of metadata_store.py and of docs/design/quorum.md:
- A record is applied, and its watches fire, in one pass of the event loop without an interruption. Only then
  the caller of its transaction continues.
- Calls that have not been applied are sent again, in order, after a failure and to each new leader.
- At the first leader that it knows, a process announces itself with a session that it closes at once. This
  ends the sessions of its earlier process even if the broker opens its own session after a long recovery.
- At a record of an unknown type or version, the store stops: all calls raise StoreStopped.
"""

import asyncio
import logging
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from uuid import UUID, uuid4

from kafka_compat.coordination.replicated_store import records
from kafka_compat.coordination.replicated_store.metadata_log import AppliedRecord, LogNode, Steps
from kafka_compat.coordination.replicated_store.outbox import Outbox
from kafka_compat.coordination.replicated_store.records import BadRecord
from kafka_compat.coordination.replicated_store.session import ReplicatedSession
from kafka_compat.coordination.replicated_store.session_timeouts import LOOK_EVERY_S, SessionTimeouts
from kafka_compat.coordination.replicated_store.tree_machine import Applied, SessionEntry, TreeMachine
from kafka_compat.coordination.store.metadata_store import ConnectionLost, MetadataStoreError, SessionState
from kafka_compat.coordination.store.tree import Tree

log = logging.getLogger(__name__)

SUSPEND_AFTER_S = 2.0
"""How long sessions stay connected without a leader. A failover of the quorum is usually shorter."""
_RECORDS_PER_STEP = 100
_BYTES_PER_STEP = 64 * 1024
_ANNOUNCEMENT_TIMEOUT_MS = 10_000


class StoreStopped(MetadataStoreError):
    """A store that has stopped at a record that it does not know. A newer version may know it."""


class SessionRefused(MetadataStoreError):
    """A session that was not opened, because a later process uses the same node ID."""


def _now_ms() -> int:
    return time.time_ns() // 1_000_000


class ReplicatedStore:
    """The store of this process. Implements LogApplication; all other methods are for its users."""

    def __init__(
        self, node: LogNode, now_ms: Callable[[], int] = _now_ms, incarnation: UUID | None = None
    ) -> None:
        self._node = node
        self._now_ms = now_ms
        self._incarnation = str(incarnation or uuid4())
        self._loop = asyncio.get_running_loop()
        self._machine = TreeMachine()
        self._sessions: dict[int, ReplicatedSession] = {}
        self._opening: dict[str, tuple[bytes, asyncio.Future[ReplicatedSession]]] = {}
        """Maps tokens to the records of sessions that are being opened, and to the futures of the callers."""
        self._abandoned: dict[int, bytes] = {}
        """Maps sessions of this process without an owner to the records that close them."""
        self._outbox = Outbox(node, self._outstanding)
        self._leader = (-1, -1)
        self._timeouts: SessionTimeouts | None = None
        self._next_look: asyncio.TimerHandle | None = None
        self._suspending: asyncio.TimerHandle | None = None
        self._is_suspended = True
        self._is_announced = False
        self._failure: str | None = None
        self._is_closed = False

    async def connect(self, timeout_ms: int) -> ReplicatedSession:
        """Open a session, as soon as there is a leader. Its node must fetch at least every `timeout_ms`.

        Raises StoreStopped, SessionRefused, or ConnectionLost if the store is closed.
        """
        self.check_usable()
        future = self._open(timeout_ms)
        try:
            return await future
        except asyncio.CancelledError:
            if future.done() and not future.cancelled() and future.exception() is None:
                self._abandon(future.result().session_id)
            raise

    def close(self) -> None:
        """End all sessions of this process, without deleting their ephemeral nodes."""
        self._is_closed = True
        self._outbox.close()
        self._stop_leading()
        self._stop_suspending()
        for session in list(self._sessions.values()):
            session.end_with_store()
        self._sessions.clear()
        self._fail_opening(ConnectionLost("the metadata store was closed"))

    @property
    def machine(self) -> TreeMachine:
        """The tree and the sessions. To be read only."""
        return self._machine

    # --- LogApplication

    @property
    def failure(self) -> str | None:
        """Why the store has stopped, or None."""
        return self._failure

    def apply(self, applied: Sequence[AppliedRecord]) -> Steps:
        """See LogApplication."""
        count = size_bytes = 0
        for record in applied:
            if count == _RECORDS_PER_STEP or size_bytes > _BYTES_PER_STEP:
                yield
                count = size_bytes = 0
            if self._failure is not None:
                return
            self._apply(record)
            count += 1
            size_bytes += len(record.value)

    def leader_changed(self, leader_id: int, epoch: int) -> None:
        """See LogApplication."""
        if (leader_id, epoch) == self._leader or self._is_closed:
            return
        self._leader = leader_id, epoch
        self._stop_leading()
        self._stop_suspending()
        if leader_id < 0:
            self._suspending = self._loop.call_later(SUSPEND_AFTER_S, self._suspend, True)
        else:
            self._suspend(False)
            if not self._is_announced and self.is_leader_known:
                self._is_announced = True
                self._open(_ANNOUNCEMENT_TIMEOUT_MS).cancel()
            if leader_id == self._node.node_id:
                self._lead()
        self._outbox.leader_changed(self.is_leader_known)

    def replica_fetched(self, node_id: int) -> None:
        """See LogApplication."""
        if self._timeouts is not None:
            self._timeouts.heard(node_id, self._loop.time())

    def replica_left(self, node_id: int) -> None:
        """See LogApplication."""
        if self._timeouts is not None:
            self._timeouts.left(node_id, self._loop.time())

    def snapshot(self) -> Iterator[bytes]:
        """See LogApplication. Raises StoreStopped."""
        self.check_usable()
        return self._machine.snapshot()

    def restore(self, offset: int, saved: Iterable[AppliedRecord]) -> Steps:
        """See LogApplication."""
        if self._failure is not None:
            return
        machine = TreeMachine()
        try:
            yield from machine.restore(offset, saved)
        except BadRecord as error:
            self._fail(str(error))
            return
        before, self._machine = self._machine, machine
        self._take_over(before)
        yield from before.dismantle()

    # --- for the sessions

    @property
    def tree(self) -> Tree:
        """The current tree."""
        return self._machine.tree

    @property
    def is_leader_known(self) -> bool:
        """Whether records can be sent."""
        return self._leader[0] >= 0 and self._failure is None and not self._is_closed

    def check_usable(self) -> None:
        """Raise StoreStopped if the store has stopped."""
        if self._failure is not None:
            raise StoreStopped(self._failure)
        if self._is_closed:
            raise ConnectionLost("the metadata store was closed")

    def now_ms(self) -> int:
        """Return the time in ms since 1970."""
        return self._now_ms()

    def send(self, record: bytes) -> None:
        """Send a new record of a session."""
        self._outbox.send(record)

    # --- application of records

    def _apply(self, record: AppliedRecord) -> None:
        try:
            applied = self._machine.apply(record)
        except BadRecord as error:
            self._fail(str(error))
            return
        for session_id, closed in applied.ended:
            self._ended(session_id, closed=closed)
        for event in applied.events:
            for session in list(self._sessions.values()):
                session.fire(event)
        if applied.opened is not None:
            self._opened(applied.opened)
        self._answer(applied)

    def _answer(self, applied: Applied) -> None:
        if applied.outcome is not None and (session := self._sessions.get(applied.session_id)):
            session.settle(applied.outcome)
            self._outbox.applied()
        refused = self._opening.pop(applied.refused_token, None) if applied.refused_token else None
        if refused is not None and not refused[1].done():
            refused[1].set_exception(
                SessionRefused(
                    f"a process that started later uses node ID {self._node.node_id}: each node needs its own"
                )
            )

    def _opened(self, entry: SessionEntry) -> None:
        if self._timeouts is not None:
            self._timeouts.opened(entry, self._loop.time())
        if entry.opened.incarnation == self._incarnation:
            self._outbox.applied()
            self._adopt(entry)

    def _adopt(self, entry: SessionEntry) -> None:
        """Give a session of this process to its caller, or close it if nobody waits for it."""
        _, future = self._opening.pop(entry.opened.token, (b"", None))
        if future is None or future.done():
            self._abandon(entry.session_id)
            return
        state = SessionState.SUSPENDED if self._is_suspended else SessionState.CONNECTED
        session = self._sessions[entry.session_id] = ReplicatedSession(self, entry.session_id, state)
        future.set_result(session)

    def _ended(self, session_id: int, *, closed: bool) -> None:
        self._abandoned.pop(session_id, None)
        if self._timeouts is not None:
            self._timeouts.ended(session_id)
        session = self._sessions.pop(session_id, None)
        if session is not None:
            session.end(closed=closed)

    def _take_over(self, before: TreeMachine) -> None:
        """Bring the sessions of this process to the state of a snapshot."""
        machine = self._machine
        for session_id, session in list(self._sessions.items()):
            entry = machine.sessions.get(session_id)
            if entry is not None:
                session.moved(before.tree, machine.tree, entry)
                continue
            session.fail_calls(
                ConnectionLost(f"the outcome of the last calls of session {session_id} is unknown")
            )
            self._ended(session_id, closed=False)
        for session_id in [known for known in self._abandoned if known not in machine.sessions]:
            del self._abandoned[session_id]
        for entry in list(machine.sessions.values()):
            if entry.opened.incarnation == self._incarnation and entry.session_id not in self._sessions:
                self._adopt(entry)
        if self._timeouts is not None:
            self._lead()
        self._outbox.send_again()

    def _fail(self, reason: str) -> None:
        self._failure = (
            f"the metadata store stopped at a record that this version does not know ({reason}). "
            "Another program or a newer version has written to the quorum's log"
        )
        log.error("Stopped the metadata store of node %d: %s", self._node.node_id, self._failure)
        self._outbox.close()
        self._stop_leading()
        for session in self._sessions.values():
            session.fail_calls(StoreStopped(self._failure))
        self._fail_opening(StoreStopped(self._failure))

    # --- records of this process

    def _outstanding(self) -> Iterator[bytes]:
        for record, _ in self._opening.values():
            yield record
        yield from self._abandoned.values()
        for session in self._sessions.values():
            yield from session.outstanding

    def _open(self, timeout_ms: int) -> asyncio.Future[ReplicatedSession]:
        token = str(uuid4())
        directory = str(self._node.directory_id)
        record = records.OpenSession(
            token, self._node.node_id, directory, self._incarnation, timeout_ms
        ).framed()
        future: asyncio.Future[ReplicatedSession] = self._loop.create_future()
        self._opening[token] = record, future
        self.send(record)
        return future

    def _abandon(self, session_id: int) -> None:
        """Close a session of this process that nobody uses."""
        self._sessions.pop(session_id, None)
        record = self._abandoned[session_id] = records.CloseSession(session_id, "closed", 1).framed()
        self.send(record)

    def _fail_opening(self, error: MetadataStoreError) -> None:
        opening, self._opening = self._opening, {}
        for _, future in opening.values():
            if not future.done():
                future.set_exception(type(error)(*error.args))

    # --- leader and timeouts

    def _suspend(self, is_suspended: bool) -> None:
        self._suspending = None
        self._is_suspended = is_suspended
        for session in list(self._sessions.values()):
            session.suspend(is_suspended)

    def _stop_suspending(self) -> None:
        if self._suspending is not None:
            self._suspending.cancel()
            self._suspending = None

    def _lead(self) -> None:
        if self._failure is not None:
            return
        self._stop_leading()
        sessions = self._machine.sessions.values()
        self._timeouts = SessionTimeouts(self._incarnation, sessions, self._loop.time())
        self._next_look = self._loop.call_later(LOOK_EVERY_S, self._look)

    def _stop_leading(self) -> None:
        self._timeouts = None
        if self._next_look is not None:
            self._next_look.cancel()
            self._next_look = None

    def _look(self) -> None:
        """Append the ends of sessions that have expired, and probe the nodes that may have ended."""
        timeouts, machine, now_s = self._timeouts, self._machine, self._loop.time()
        assert timeouts is not None
        self._next_look = self._loop.call_later(LOOK_EVERY_S, self._look)
        for node_id in timeouts.silent(now_s, machine.incarnations):
            self._node.probe(node_id, partial(timeouts.probed, node_id))
        expired = timeouts.expired(now_s, machine.incarnations)
        if not expired:
            return
        for session_id in expired:
            opened = machine.sessions[session_id].opened
            if timeouts.is_gone(opened.node_id):
                log.warning(
                    "Metadata session %d of node %d ended: the node's process is gone",
                    session_id,
                    opened.node_id,
                )
                continue
            log.warning(
                "Metadata session %d of node %d expired: the node did not fetch from this leader for %d ms",
                session_id,
                opened.node_id,
                opened.timeout_ms,
            )
        ends = [records.CloseSession(session_id, "expired").framed() for session_id in expired]
        self._node.append(ends, partial(timeouts.withdraw, expired), self._leader[1])
