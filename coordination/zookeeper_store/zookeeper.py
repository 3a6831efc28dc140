"""Metadata store in a ZooKeeper ensemble, which Apache Kafka brokers can also use.

Rules, in addition to the rules of metadata_store.py:
- As in Kafka, nodes are open to everyone, or have the ACLs of StoreSecurity if zookeeper.set.acl is true.
- A session with credentials is authenticated on each connection, and is connected after that. It ends if
  authentication is rejected.
- While the session is suspended, calls wait until it is connected. If it ends, they raise SessionExpired.
- A read whose response was lost with the connection is retried. A write is not retried: ConnectionLost means
  that it may or may not have been performed, and the caller must decide.
- When a connection is lost, ZooKeeper drops the watches of the session. They are set again before the session
  is reported as connected, and they fire if they missed a change.
- An expired session stays expired. kazoo would continue with a new session, but the owner may rely on nodes
  of the old session. Therefore kazoo is stopped, and the owner opens a new session.

Only this module and kazoo_loop.py import kazoo. Import these modules only where ZooKeeper is used, so that a
broker without ZooKeeper starts without kazoo.
"""

import asyncio
import logging
import time
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any

from kazoo import exceptions as kazoo_errors
from kazoo.client import KazooClient
from kazoo.protocol import serialization
from kazoo.protocol.states import EventType, KazooState, WatchedEvent, ZnodeStat
from kazoo.retry import KazooRetry
from kazoo.security import ACL, CREATOR_ALL_ACL, OPEN_ACL_UNSAFE, READ_ACL_UNSAFE

from kafka_compat.coordination.store import metadata_store as stores
from kafka_compat.coordination.store.metadata_store import MetadataStoreError, SessionState, StoreSession
from kafka_compat.coordination.store.tree import check_path
from kafka_compat.coordination.zookeeper_store.kazoo_loop import Connection, LoopHandler, OnResult, translated
from kafka_compat.coordination.zookeeper_store.security import OPEN, StoreSecurity, Unusable, access_of_others

log = logging.getLogger(__name__)

TIMES_KEPT = 512
REQUESTS_IN_FLIGHT_MAX = 100
"""Maximum number of pending requests. kazoo writes a byte for each to a socket pair, and blocks at 271."""

_RETRY_WAIT_S_MAX = 1.0
"""Maximum wait between reconnection attempts. kazoo's default, up to a minute, would delay recovery."""

_EVENT_KINDS = {
    EventType.CREATED: stores.EventKind.CREATED,
    EventType.CHANGED: stores.EventKind.CHANGED,
    EventType.DELETED: stores.EventKind.DELETED,
    EventType.CHILD: stores.EventKind.CHILDREN,
}

_ALIVE = (SessionState.CONNECTED, SessionState.SUSPENDED)


class _Watching:
    """A one-time watch, set by a read. It becomes active when the response to the read arrives. `seen` is
    the stat in that response, or None if the node was missing.
    """

    def __init__(self, path: str, of_children: bool, watch: stores.Watch) -> None:
        self.path = path
        self.of_children = of_children
        self.watch = watch
        self.seen: ZnodeStat | None = None

    def missed(self, now: ZnodeStat | None) -> stores.EventKind | None:
        """Return the first change between `seen` and `now`, or None if the stat did not change."""
        if self.seen is None:
            return stores.EventKind.CREATED if now else None
        if now is None or now.czxid != self.seen.czxid:
            return stores.EventKind.DELETED
        if self.of_children:
            return stores.EventKind.CHILDREN if now.pzxid != self.seen.pzxid else None
        return stores.EventKind.CHANGED if now.mzxid != self.seen.mzxid else None


class ZooKeeperMetadataStore(StoreSession):
    """A session with a ZooKeeper ensemble, opened by `connect`."""

    def __init__(self, hosts: str, session_timeout_ms: int, security: StoreSecurity = OPEN) -> None:
        super().__init__(0, SessionState.SUSPENDED)
        self._hosts, slash, chroot = hosts.partition("/")
        self._chroot = ""
        self._wanted_chroot = slash + chroot.strip("/") if chroot.strip("/") else ""
        servers = len(self._hosts.split(","))
        self._security = security
        self._handler = LoopHandler(session_timeout_ms / 1000 / servers, security.tls)
        retry = KazooRetry(
            max_tries=-1, delay=0.05, max_delay=_RETRY_WAIT_S_MAX, sleep_func=self._handler.sleep_func
        )
        try:
            self._client = KazooClient(
                self._hosts, timeout=session_timeout_ms / 1000, handler=self._handler, connection_retry=retry
            )
        except ValueError:
            raise ValueError(f"zookeeper.connect={hosts}: expected host:port,host:port/chroot") from None
        self._client._connection = Connection(
            self._client, retry.copy(), security.login, self._hear_login, self._hear_refusal
        )
        self._refusal = ""
        self._client.add_listener(self._hear_state)
        self._connection = 0
        self._resumed = asyncio.Event()
        self._slots = asyncio.Semaphore(REQUESTS_IN_FLIGHT_MAX)
        self.requests = 0
        """The number of completed requests, including failed ones."""
        self.request_times_ms: deque[float] = deque(maxlen=TIMES_KEPT)
        self._watches: set[_Watching] = set()
        self._resuming: asyncio.Task[None] | None = None
        self._stopping: asyncio.Future[None] | None = None

    @classmethod
    async def connect(
        cls,
        hosts: str,
        *,
        session_timeout_ms: int = 18_000,
        connection_timeout_ms: int | None = None,
        security: StoreSecurity = OPEN,
    ) -> "ZooKeeperMetadataStore":
        """Open a session. `hosts` has the format of zookeeper.connect (`host:port,host:port/chroot`). A
        missing chroot is created. The servers' configuration may change the session timeout.

        Raises ValueError if `hosts` is malformed, ConnectionLost if no server responds within
        `connection_timeout_ms` (default: the session timeout), or LoginFailed if authentication is rejected.
        """
        timeout_ms = session_timeout_ms if connection_timeout_ms is None else connection_timeout_ms
        store = cls(hosts, session_timeout_ms, security)
        store._client.start_async()
        try:
            async with asyncio.timeout(timeout_ms / 1000):
                await store._until_connected()
                if store._wanted_chroot:
                    await store.ensure(store._wanted_chroot)
        except TimeoutError:
            await store.close()
            error = store._handler.last_error
            reason = f" ({error})" if error else ""
            advice = "" if isinstance(error, Unusable) else ". Check zookeeper.connect"
            raise stores.ConnectionLost(
                f"ZooKeeper at {hosts} did not respond within {timeout_ms} ms{reason}{advice}"
            ) from None
        except stores.SessionExpired as error:
            await store.close()
            if store._refusal:
                raise stores.LoginFailed(store._refusal) from error
            raise
        except BaseException:
            await store.close()
            raise
        store._chroot = store._wanted_chroot
        return store

    async def get(self, path: str, watch: stores.Watch | None = None) -> tuple[bytes | None, stores.Stat]:
        data, stat = await self._read(path, watch, of_children=False)
        return data, _stat(stat)

    async def exists(self, path: str, watch: stores.Watch | None = None) -> stores.Stat | None:
        stat = await self._read(path, watch, of_children=False, must_exist=False)
        return _stat(stat) if stat else None

    async def children(self, path: str, watch: stores.Watch | None = None) -> list[str]:
        names, _ = await self._read(path, watch, of_children=True)
        return sorted(names)

    async def multi(self, operations: Sequence[stores.Operation]) -> list[str | stores.Stat | None]:
        for operation in operations:
            check_path(operation.path)
        await self._until_connected()
        if not operations:
            return []
        async with self._slots:
            transaction = self._client.transaction()
            transaction.operations.extend(self._request(operation) for operation in operations)
            asked_s = time.monotonic()
            try:
                answers = await transaction.commit_async().future
            except kazoo_errors.KazooException as error:
                raise translated(error, operations[0].path) from None
            finally:
                self._answered(asked_s)
        for index, answer in enumerate(answers):
            # Skip operations that ZooKeeper reports as rolled back: they precede the failed operation.
            if isinstance(answer, Exception) and not isinstance(answer, kazoo_errors.RolledBackError):
                raise stores.TransactionFailed(index, translated(answer, operations[index].path))
        return [self._result(answer) for answer in answers]

    async def close(self) -> None:
        if self._state in _ALIVE:
            if self._state is SessionState.SUSPENDED:
                # Skip the close request, because the client is not connected to a server.
                self._handler.end()
            self._end(SessionState.CLOSED)
        if self._stopping:
            await asyncio.shield(self._stopping)

    async def _until_connected(self) -> None:
        await self._resumed.wait()
        if self._state not in _ALIVE:
            raise stores.SessionExpired(f"session {self._session_id:#x} is {self._state.value}")

    async def _read(
        self, path: str, watch: stores.Watch | None, *, of_children: bool, must_exist: bool = True
    ) -> Any:
        check_path(path)
        while True:
            await self._until_connected()
            connection = self._connection
            watching = _Watching(path, of_children, watch) if watch else None

            def arm(
                answer: Any,
                error: Exception | None,
                sent_on: int = connection,
                new: _Watching | None = watching,
            ) -> None:
                if sent_on != self._connection:
                    # Reject a response that may come from a new connection before its watches are set: the
                    # caller would read a change before the watches fire.
                    raise stores.ConnectionLost(path)
                if new and error is None:
                    new.seen = answer[1] if must_exist else answer
                    self._watches.add(new)

            try:
                return await self._ask(path, [watching] if watching else [], of_children, must_exist, arm)
            except stores.ConnectionLost:
                log.debug("Lost the connection to ZooKeeper while reading %s; reading it again", path)

    async def _ask(
        self,
        path: str,
        watchings: Sequence[_Watching],
        of_children: bool,
        must_exist: bool,
        on_result: OnResult,
    ) -> Any:
        async with self._slots:
            asked_s = time.monotonic()
            try:
                # To avoid a reference cycle through this frame, do not keep the future in a variable.
                return await self._send_read(path, watchings, of_children, must_exist, on_result)
            except kazoo_errors.KazooException as error:
                raise translated(error, path) from None
            finally:
                self._answered(asked_s)

    def _send_read(
        self,
        path: str,
        watchings: Sequence[_Watching],
        of_children: bool,
        must_exist: bool,
        on_result: OnResult,
    ) -> asyncio.Future[Any]:
        kazoo_watch = self._kazoo_watch(watchings) if watchings else None
        full = self._full(path)
        if of_children:
            result = self._client.get_children_async(full, kazoo_watch, include_data=True)
        elif must_exist:
            result = self._client.get_async(full, kazoo_watch)
        else:
            result = self._client.exists_async(full, kazoo_watch)
        result.on_result = on_result
        answer: asyncio.Future[Any] = result.future
        return answer

    def _answered(self, asked_s: float) -> None:
        self.requests += 1
        self.request_times_ms.append((time.monotonic() - asked_s) * 1000)

    def _kazoo_watch(self, watchings: Sequence[_Watching]) -> Callable[[WatchedEvent], None]:
        def tell(event: WatchedEvent) -> None:
            kind = _EVENT_KINDS.get(event.type)
            if kind:
                for watching in watchings:
                    self._tell(watching, kind)

        return tell

    def _tell(self, watching: _Watching, kind: stores.EventKind) -> None:
        if watching in self._watches:
            self._watches.remove(watching)
            self._handler.loop.call_soon(self._call_watch, watching, kind)

    def _call_watch(self, watching: _Watching, kind: stores.EventKind) -> None:
        if self._state in _ALIVE:
            watching.watch(stores.Event(kind, watching.path))

    def _hear_state(self, state: str) -> None:
        """Handle a state change. kazoo calls this in the connection's thread."""
        if state == KazooState.LOST:
            # Stop the thread here, because it would otherwise request a new session.
            self._handler.end()
        if state != KazooState.CONNECTED or self._security.login is None:
            self._pass_on(state)

    def _hear_login(self) -> None:
        """Handle successful authentication, in the connection's thread."""
        self._pass_on(KazooState.CONNECTED)

    def _hear_refusal(self, why: str) -> None:
        """Handle rejected authentication, in the connection's thread, before the session is lost."""
        self._handler.call(self._take_refusal, why)

    def _pass_on(self, state: str) -> None:
        session = self._client.client_id
        self._handler.call(self._take_state, state, session[0] if session else 0)

    def _take_refusal(self, why: str) -> None:
        self._refusal = why
        log.error("%s", why)

    def _take_state(self, state: str, session_id: int) -> None:
        if self._state not in _ALIVE:
            return
        if state == KazooState.LOST:
            self._end(SessionState.EXPIRED)
        elif state == KazooState.SUSPENDED:
            self._connection += 1
            self._resumed.clear()
            if self._state is SessionState.CONNECTED:
                self._change_state(SessionState.SUSPENDED)
        else:
            self._session_id = session_id
            self._resuming = self._handler.loop.create_task(self._resume())

    async def _resume(self) -> None:
        """Set the watches again, and then report the session as connected unless the connection was lost."""
        connection = self._connection
        groups: dict[tuple[str, bool], list[_Watching]] = {}
        for watching in self._watches:
            groups.setdefault((watching.path, watching.of_children), []).append(watching)
        stand = await asyncio.gather(*(self._set_again(*key, group) for key, group in groups.items()))
        if all(stand) and connection == self._connection and self._state is SessionState.SUSPENDED:
            self._resumed.set()
            self._change_state(SessionState.CONNECTED)

    async def _set_again(self, path: str, of_children: bool, watchings: Sequence[_Watching]) -> bool:
        """Set watches again, and fire those that missed a change. Return False if the connection was lost."""
        connection = self._connection

        def compare(answer: Any, error: Exception | None) -> None:
            if connection != self._connection or not isinstance(error, kazoo_errors.NoNodeError | None):
                return
            now = None if error else answer[1] if of_children else answer
            for watching in watchings:
                missed = watching.missed(now)
                if missed:
                    self._tell(watching, missed)

        try:
            await self._ask(path, watchings, of_children, of_children, compare)
        except stores.NoNode:
            return True
        except MetadataStoreError:
            return False
        return True

    def _end(self, state: SessionState) -> None:
        self._watches.clear()
        self._stopping = self._handler.loop.run_in_executor(None, self._stop_client)
        self._change_state(state)
        self._resumed.set()

    def _stop_client(self) -> None:
        try:
            self._client.stop()
            self._client.close()
        except Exception as error:
            log.warning("Could not close the connection to ZooKeeper at %s cleanly: %r", self._hosts, error)

    def _change_state(self, state: SessionState) -> None:
        log.info("ZooKeeper session %#x is now %s", self._session_id, state.value)
        super()._change_state(state)

    def _full(self, path: str) -> str:
        return self._chroot + path if path != "/" else self._chroot or path

    def _request(self, operation: stores.Operation) -> Any:
        # Build the request here, because kazoo's methods cannot write null, which many Kafka nodes contain.
        path = self._full(operation.path)
        if isinstance(operation, stores.Create):
            flags = operation.ephemeral * 1 + operation.sequential * 2
            return serialization.Create(path, operation.data, self._acl(operation.path), flags)
        if isinstance(operation, stores.SetData):
            return serialization.SetData(path, operation.data, operation.version)
        if isinstance(operation, stores.Delete):
            return serialization.Delete(path, operation.version)
        return serialization.CheckVersion(path, operation.version)

    def _acl(self, path: str) -> list[ACL]:
        if not self._security.protects_nodes:
            return list(OPEN_ACL_UNSAFE)
        others = access_of_others(path)
        if others.world_writes:
            return list(OPEN_ACL_UNSAFE)
        return [*CREATOR_ALL_ACL, *(READ_ACL_UNSAFE if others.world_reads else ())]

    def _result(self, answer: Any) -> str | stores.Stat | None:
        if isinstance(answer, ZnodeStat):
            return _stat(answer)
        return answer[len(self._chroot) :] if isinstance(answer, str) else None


def _stat(stat: ZnodeStat) -> stores.Stat:
    return stores.Stat(
        czxid=stat.czxid,
        mzxid=stat.mzxid,
        version=stat.version,
        children_version=stat.cversion,
        ephemeral_owner=stat.ephemeralOwner,
        children_count=stat.numChildren,
        ctime_ms=stat.ctime,
        mtime_ms=stat.mtime,
    )
