"""One session of this node: its numbered calls, its watches, and its reads from the node's own tree."""

import asyncio
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from typing import Protocol, TypeVar

from kafka_compat.coordination.replicated_store import records
from kafka_compat.coordination.replicated_store.records import Outcome
from kafka_compat.coordination.replicated_store.tree_machine import SessionEntry
from kafka_compat.coordination.store import metadata_store as stores
from kafka_compat.coordination.store.metadata_store import (
    Event,
    EventKind,
    MetadataStoreError,
    SessionState,
    StoreSession,
    Watch,
)
from kafka_compat.coordination.store.tree import Node, Tree, check_path

Argument = TypeVar("Argument", Event, SessionState)

CLOSE_WAIT_S = 3.0
"""How long `close` waits until its record is applied. Without a leader, it does not wait."""

ALIVE = (SessionState.CONNECTED, SessionState.SUSPENDED)


class SessionHost(Protocol):
    """The store, as its sessions see it."""

    @property
    def tree(self) -> Tree:
        """The current tree."""

    @property
    def is_leader_known(self) -> bool:
        """Whether records can be sent."""

    def check_usable(self) -> None:
        """Raise StoreStopped if the store has stopped."""

    def now_ms(self) -> int:
        """Return the time in ms since 1970."""

    def send(self, record: bytes) -> None:
        """Send a new record of a session."""


class _Call:
    """A call whose outcome is not known. `future` is never canceled, so that the next calls wait for it."""

    __slots__ = ("future", "number", "record")

    def __init__(self, number: int, record: bytes) -> None:
        self.number = number
        self.record = record
        self.future: asyncio.Future[Sequence[records.Result]] = asyncio.get_running_loop().create_future()
        # The caller may have been canceled; its error is then not reported.
        self.future.add_done_callback(lambda future: future.exception())


class ReplicatedSession(StoreSession):
    """A session opened by `ReplicatedStore.connect`.

    Calls of `multi` wait while no leader is known. Reads do not, but they wait for the session's own earlier
    calls. Raises StoreStopped if the store has stopped.
    """

    def __init__(self, host: SessionHost, session_id: int, state: SessionState) -> None:
        super().__init__(session_id, state)
        self._host = host
        self._calls: deque[_Call] = deque()
        self._last_call = 0
        self._data_watches: dict[str, list[Watch]] = {}
        self._child_watches: dict[str, list[Watch]] = {}

    async def get(self, path: str, watch: Watch | None = None) -> tuple[bytes | None, stores.Stat]:
        await self._until_readable(path)
        node = self._host.tree.node(path)
        if watch:
            self._data_watches.setdefault(path, []).append(watch)
        return node.data, node.stat()

    async def exists(self, path: str, watch: Watch | None = None) -> stores.Stat | None:
        await self._until_readable(path)
        node = self._host.tree.nodes.get(path)
        if watch:
            self._data_watches.setdefault(path, []).append(watch)
        return node.stat() if node else None

    async def children(self, path: str, watch: Watch | None = None) -> list[str]:
        await self._until_readable(path)
        names = sorted(self._host.tree.node(path).children)
        if watch:
            self._child_watches.setdefault(path, []).append(watch)
        return names

    async def multi(self, operations: Sequence[stores.Operation]) -> list[str | stores.Stat | None]:
        """As in MetadataStore. Raises TransactionTooLarge above records.RECORD_BYTES_MAX. Raises
        ConnectionLost only if this node fell so far behind that the outcome is unknown.
        """
        self._check_alive()
        for operation in operations:
            check_path(operation.path)
        number = self._last_call + 1
        first_unknown = self._calls[0].number if self._calls else number
        transaction = records.Transaction(
            self._session_id, number, first_unknown, self._host.now_ms(), operations
        )
        return list(await asyncio.shield(self._begin(number, transaction.framed()).future))

    async def sync(self) -> None:
        """Wait until everything that was committed before this call is applied: later reads return it."""
        await self.multi([])

    async def close(self) -> None:
        if self._state not in ALIVE:
            return
        self._state = SessionState.CLOSED
        number = self._last_call + 1
        call = self._begin(number, records.CloseSession(self._session_id, "closed", number).framed())
        if self._host.is_leader_known:
            await asyncio.wait([call.future], timeout=CLOSE_WAIT_S)
        self._tell(SessionState.CLOSED)

    def _begin(self, number: int, record: bytes) -> _Call:
        call = _Call(number, record)
        self._last_call = number
        self._calls.append(call)
        self._host.send(record)
        return call

    async def _until_readable(self, path: str) -> None:
        check_path(path)
        self._check_alive()
        while self._calls:
            await asyncio.wait([self._calls[-1].future])
            self._check_alive()

    def _check_alive(self) -> None:
        self._host.check_usable()
        if self._state not in ALIVE:
            raise stores.SessionExpired(f"session {self._session_id} is {self._state.value}")

    # --- called by the store

    @property
    def outstanding(self) -> Iterable[bytes]:
        """The records of all calls without an outcome, in order."""
        return (call.record for call in self._calls)

    def settle(self, outcome: Outcome) -> None:
        """Finish the call with this outcome, which is the first one."""
        if self._calls and self._calls[0].number == outcome.call:
            _finish(self._calls.popleft(), outcome)

    def end(self, *, closed: bool) -> None:
        """End the session, because its last record was applied."""
        if closed and self._calls:
            self._calls.popleft().future.set_result(())
        self.fail_calls(stores.SessionExpired(f"session {self._session_id} has ended"))
        self._data_watches.clear()
        self._child_watches.clear()
        if self._state in ALIVE:
            self._tell(SessionState.CLOSED if closed else SessionState.EXPIRED)

    def end_with_store(self) -> None:
        """Close the session because its store closes. Its ephemeral nodes are not deleted."""
        self.fail_calls(stores.ConnectionLost("the metadata store was closed"))
        if self._state in ALIVE:
            self._tell(SessionState.CLOSED)

    def fail_calls(self, error: MetadataStoreError) -> None:
        """Fail all calls without an outcome."""
        while self._calls:
            self._calls.popleft().future.set_exception(type(error)(*error.args))

    def suspend(self, is_suspended: bool) -> None:
        """Change the state if the session lives."""
        state = SessionState.SUSPENDED if is_suspended else SessionState.CONNECTED
        if self._state in ALIVE and self._state is not state:
            self._tell(state)

    def fire(self, event: Event) -> None:
        """Call the watches of a change."""
        watches: list[Watch] = []
        if event.kind is not EventKind.CHILDREN:
            watches += self._data_watches.pop(event.path, ())
        if event.kind in (EventKind.CHILDREN, EventKind.DELETED):
            watches += self._child_watches.pop(event.path, ())
        for watch in watches:
            if self._state in ALIVE:
                _guarded(watch, event)

    def moved(self, before: Tree, after: Tree, entry: SessionEntry) -> None:
        """Finish calls and call watches after a snapshot has replaced the tree."""
        known = {outcome.call: outcome for outcome in entry.outcomes}
        while self._calls and self._calls[0].number <= entry.last_call:
            call = self._calls.popleft()
            if call.number in known:
                _finish(call, known[call.number])
            else:
                call.future.set_exception(
                    stores.ConnectionLost(f"the outcome of call {call.number} is unknown")
                )
        for path in list(dict.fromkeys([*self._data_watches, *self._child_watches])):
            event = _difference(path, before.nodes.get(path), after.nodes.get(path))
            if event is not None:
                self.fire(event)
        for path in list(self._child_watches):
            if before.nodes[path].children_version != after.nodes[path].children_version:
                self.fire(Event(EventKind.CHILDREN, path))

    def _tell(self, state: SessionState) -> None:
        self._state = state
        for listener in self._listeners:
            _guarded(listener, state)


def _difference(path: str, before: Node | None, after: Node | None) -> Event | None:
    """Return the first change of a node that a watch must report."""
    if before is None:
        return None if after is None else Event(EventKind.CREATED, path)
    if after is None or after.czxid != before.czxid:
        return Event(EventKind.DELETED, path)
    return Event(EventKind.CHANGED, path) if after.mzxid != before.mzxid else None


def _finish(call: _Call, outcome: Outcome) -> None:
    error = outcome.error()
    if error is None:
        call.future.set_result(outcome.results)
    else:
        call.future.set_exception(error)


def _guarded(callback: Callable[[Argument], object], argument: Argument) -> None:
    """Call a callback of the session's owner. Its errors must not stop the application of records."""
    try:
        callback(argument)
    except Exception as error:
        asyncio.get_running_loop().call_exception_handler(
            {"message": f"a callback of a metadata session failed at {argument}", "exception": error}
        )
