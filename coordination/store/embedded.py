"""The default metadata store: a tree in this process, journaled to disk.

A change is applied to the tree at once, so that later changes are based on it. The change becomes visible to
its caller, readers and watches once its journal line is on disk. Changes made during an fsync share the next
fsync.
"""

import asyncio
import logging
import time
from collections.abc import Callable, Sequence

from kafka_compat.coordination.store import metadata_store as stores
from kafka_compat.coordination.store.journal import Journal, JournalFull, encode_snapshot, encode_transaction
from kafka_compat.coordination.store.metadata_store import MetadataStoreError, Stat, StoreSession, Watch
from kafka_compat.coordination.store.tree import check_path

log = logging.getLogger(__name__)

FULL_DISK_RETRY_S = 1.0


class StoreFailed(MetadataStoreError):
    """A failed journal write. Later changes are rejected, and a restart returns to the state on disk."""


class _Batch:
    def __init__(self) -> None:
        self.lines: list[bytes] = []
        self.calls: list[tuple[Watch, stores.Event]] = []
        self.done: asyncio.Future[None] = asyncio.get_running_loop().create_future()


def _now_ms() -> int:
    return time.time_ns() // 1_000_000


class EmbeddedMetadataStore:
    """A metadata store with one journal file. Brokers in the same process share the store, with one session
    for each broker. No other process may use the file.

    Creating the object opens the file, and raises OSError or CorruptJournal if the file cannot be read.
    """

    def __init__(
        self, journal_path: str, now_ms: Callable[[], int] = _now_ms, journal: Journal | None = None
    ) -> None:
        """`journal` is used instead of a journal file at `journal_path`."""
        self._journal = journal or Journal(journal_path)
        self._tree = self._journal.open()
        self._now_ms = now_ms
        self._synced = self._tree.zxid
        self._next: _Batch | None = None
        self._current: _Batch | None = None
        self._flusher: asyncio.Task[None] | None = None
        self._failure: str | None = None
        self._closing = False
        self._data_watches: dict[str, list[Watch]] = {}
        self._child_watches: dict[str, list[Watch]] = {}
        self._sessions: dict[int, EmbeddedSession] = {}
        self._last_session_id = 0
        # With the first change, write the deletion of the ephemeral nodes that the previous process left.
        self._unwritten = self._remove_ephemerals(None)

    @property
    def tail_was_cut(self) -> bool:
        """Whether an unreadable last change was removed from the journal when it was opened."""
        return self._journal.tail_was_cut

    def connect(self) -> "EmbeddedSession":
        """Open a session."""
        self._last_session_id += 1
        session = EmbeddedSession(self, self._last_session_id)
        self._sessions[session.session_id] = session
        return session

    def snapshot(self) -> bytes:
        """Return the current tree, encoded as a journal file."""
        return encode_snapshot(self._tree)

    async def close(self) -> None:
        """End all sessions and close the journal file. Changes that are not on disk yet are written first.

        The sessions' ephemeral nodes stay in the journal, so that stopping does not wait for the disk.
        The next process that opens the journal removes them, as after a crash.
        """
        self._closing = True
        for session in self._sessions.values():
            session.end_with_store()
        self._sessions.clear()
        if self._flusher:
            await asyncio.wait([self._flusher])
        self._journal.close()

    def get(self, path: str, watch: Watch | None) -> tuple[bytes | None, Stat]:
        """Return the data and stat of a node, including changes that are not on disk yet."""
        node = self._tree.node(path)
        if watch:
            self._data_watches.setdefault(path, []).append(watch)
        return node.data, node.stat()

    def exists(self, path: str, watch: Watch | None) -> Stat | None:
        """Return a node's stat, including changes that are not on disk yet, or None if it is missing."""
        check_path(path)
        node = self._tree.nodes.get(path)
        if watch:
            self._data_watches.setdefault(path, []).append(watch)
        return node.stat() if node else None

    def children(self, path: str, watch: Watch | None) -> list[str]:
        """Return the names of a node's children, including changes that are not on disk yet."""
        names = sorted(self._tree.node(path).children)
        if watch:
            self._child_watches.setdefault(path, []).append(watch)
        return names

    async def durable(self) -> None:
        """Wait until all changes so far are on disk. Raises StoreFailed if the journal cannot be written."""
        if self._failure:
            raise StoreFailed(self._failure)
        batch = self._next or self._current
        if batch:
            await asyncio.shield(batch.done)

    async def multi(self, operations: Sequence[stores.Operation], session_id: int) -> list[str | Stat | None]:
        """Apply a transaction, wait until it is on disk, and return the results."""
        if self._failure:
            raise StoreFailed(self._failure)
        now_ms = self._now_ms()
        try:
            results, changes, events = self._tree.apply(operations, session_id, now_ms)
        except stores.TransactionFailed:
            await self.durable()
            raise
        if changes:
            batch = self._batch()
            batch.lines.append(encode_transaction(self._tree.zxid, now_ms, changes, self._synced))
            batch.calls.extend(self._take_watches(events))
        await self.durable()
        return results

    def ephemerals(self, session_id: int) -> list[str]:
        """Return the paths of a session's ephemeral nodes."""
        return self._tree.ephemerals(session_id)

    async def end_session(self, session_id: int) -> None:
        """Remove a session and delete its ephemeral nodes."""
        self._sessions.pop(session_id, None)
        ephemerals = self.ephemerals(session_id)
        if ephemerals:
            await self.multi([stores.Delete(path) for path in ephemerals], session_id)

    def _remove_ephemerals(self, session_id: int | None) -> list[bytes]:
        paths = self._tree.ephemerals(session_id)
        if not paths:
            return []
        now_ms = self._now_ms()
        _, changes, _ = self._tree.apply([stores.Delete(path) for path in paths], 0, now_ms)
        return [encode_transaction(self._tree.zxid, now_ms, changes, self._synced)]

    def _batch(self) -> _Batch:
        if self._next is None:
            self._next = _Batch()
            self._next.lines.extend(self._unwritten)
            self._unwritten = []
            if self._flusher is None:
                self._flusher = asyncio.get_running_loop().create_task(self._flush())
        return self._next

    async def _flush(self) -> None:
        loop = asyncio.get_running_loop()
        while self._next is not None:
            self._current, self._next = self._next, None
            batch, applied = self._current, self._tree.zxid
            try:
                await self._append(b"".join(batch.lines))
            except OSError as error:
                self._fail(f"cannot write {self._journal.path}: {error}")
                break
            self._synced = applied
            if self._journal.wants_compaction:
                try:
                    await loop.run_in_executor(None, self._journal.compact, encode_snapshot(self._tree))
                except OSError as error:
                    log.warning("Could not compact %s: %s", self._journal.path, error)
                    self._journal.postpone_compaction()
            for watch, event in batch.calls:
                loop.call_soon(watch, event)
            # Let the watches fire before resuming the readers that wait for this batch.
            await asyncio.sleep(0)
            batch.done.set_result(None)
            self._current = None
        self._flusher = None

    async def _append(self, lines: bytes) -> None:
        """Append lines to the journal. While the disk is full, retry and keep callers waiting, because their
        changes have already been applied in memory.
        """
        loop = asyncio.get_running_loop()
        reported = False
        while True:
            try:
                return await loop.run_in_executor(None, self._journal.append, lines)
            except JournalFull as error:
                if self._closing:
                    raise
                if not reported:
                    log.error(
                        "Could not write to the metadata journal: %s. Changes are delayed until disk space "
                        "is available",
                        error,
                    )
                    reported = True
                await asyncio.sleep(FULL_DISK_RETRY_S)

    def _fail(self, reason: str) -> None:
        self._failure = reason
        for batch in (self._current, self._next):
            if batch:
                batch.done.set_exception(StoreFailed(reason))
                batch.done.exception()
        self._current = self._next = None

    def _take_watches(self, events: Sequence[stores.Event]) -> list[tuple[Watch, stores.Event]]:
        calls = []
        for event in events:
            taken = []
            if event.kind is not stores.EventKind.CHILDREN:
                taken += self._data_watches.pop(event.path, [])
            if event.kind in (stores.EventKind.CHILDREN, stores.EventKind.DELETED):
                taken += self._child_watches.pop(event.path, [])
            calls += [(watch, event) for watch in dict.fromkeys(taken)]
        return calls


class EmbeddedSession(StoreSession):
    """A session with an EmbeddedMetadataStore."""

    def __init__(self, store: EmbeddedMetadataStore, session_id: int) -> None:
        super().__init__(session_id)
        self._store = store

    @property
    def holds_ephemerals(self) -> bool:
        """Whether the session has ephemeral nodes."""
        return bool(self._store.ephemerals(self._session_id))

    async def get(self, path: str, watch: Watch | None = None) -> tuple[bytes | None, Stat]:
        self._check_connected()
        try:
            return self._store.get(path, self._guard(watch))
        finally:
            # Even without a node: it may have been deleted by a change that is not on disk yet.
            await self._store.durable()

    async def exists(self, path: str, watch: Watch | None = None) -> Stat | None:
        self._check_connected()
        found = self._store.exists(path, self._guard(watch))
        await self._store.durable()
        return found

    async def children(self, path: str, watch: Watch | None = None) -> list[str]:
        self._check_connected()
        try:
            return self._store.children(path, self._guard(watch))
        finally:
            await self._store.durable()

    async def multi(self, operations: Sequence[stores.Operation]) -> list[str | Stat | None]:
        self._check_connected()
        return await self._store.multi(operations, self._session_id)

    async def close(self) -> None:
        if self._state is stores.SessionState.CONNECTED:
            await self._end(stores.SessionState.CLOSED)

    def end_with_store(self) -> None:
        """Close the session because its store closes. Its ephemeral nodes are not deleted."""
        if self._state is stores.SessionState.CONNECTED:
            self._change_state(stores.SessionState.CLOSED)

    async def expire(self) -> None:
        """Expire the session, as ZooKeeper does after a session timeout."""
        self._check_connected()
        await self._end(stores.SessionState.EXPIRED)

    async def _end(self, state: stores.SessionState) -> None:
        self._state = state
        try:
            await self._store.end_session(self._session_id)
        finally:
            self._change_state(state)

    def _guard(self, watch: Watch | None) -> Watch | None:
        """Wrap a watch so that it does not fire after its session has ended."""
        if watch is None:
            return None

        def guarded(event: stores.Event) -> None:
            if self._state is stores.SessionState.CONNECTED:
                watch(event)

        return guarded
