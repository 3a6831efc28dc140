"""Client of a metadata store in another process on this machine, over a connection to its StoreServer.

Rules, in addition to the rules of metadata_store.py:
- Calls are pipelined: each call is sent without waiting for earlier responses. store_wire.py describes the
  format.
- The connection is never reopened. When it is closed, all sessions become CLOSED, and no new session can be
  opened. Pending calls raise ConnectionLost, and later calls raise SessionExpired.
"""

import asyncio
from collections.abc import Callable, Sequence
from typing import Any

from kafka_compat.coordination.store import metadata_store as stores
from kafka_compat.coordination.store import store_wire
from kafka_compat.coordination.store.metadata_store import MetadataStoreError, SessionState, StoreSession
from kafka_compat.coordination.store.store_server import CHECKS_PER_TIMEOUT
from kafka_compat.coordination.store.store_wire import Message
from kafka_compat.coordination.store.tree import check_path


class StoreClient:
    """The client side of a connection, and its sessions. `send` sends a message to the server.

    The owner of the connection calls `receive` with each message, and `lost` when the connection is closed.
    """

    def __init__(self, send: Callable[[Message], None], session_timeout_ms: int) -> None:
        self._send = send
        self._loop = asyncio.get_running_loop()
        self._last_id = 0
        self._asked: dict[int, tuple[asyncio.Future[Any], int | None]] = {}
        """Maps each request ID to the future for its response, and to the ID of the watch to set, if any."""
        self._watches: dict[int, tuple[RemoteSession, stores.Watch]] = {}
        self._sessions: dict[int, RemoteSession] = {}
        self._is_lost = False
        self._beat_every_s = session_timeout_ms / 1000 / CHECKS_PER_TIMEOUT
        self._next_beat = self._loop.call_later(self._beat_every_s, self._beat)

    async def connect(self) -> "RemoteSession":
        """Open a session. Raises ConnectionLost if the connection is closed."""
        session_id = await self._ask("open")
        if self._is_lost:
            raise stores.ConnectionLost("the process with the metadata store has ended")
        session = self._sessions[session_id] = RemoteSession(self, session_id)
        return session

    def receive(self, message: Message) -> None:
        """Process a received message. Raises store_wire.BadFrame if it is invalid."""
        match store_wire.decode_answer(message):
            case store_wire.Done(request_id, result):
                self._settle(request_id, result, None)
            case store_wire.Failed(request_id, error):
                self._settle(request_id, None, error)
            case store_wire.WatchEvent(watch_id, event):
                watching = self._watches.pop(watch_id, None)
                if watching is not None:
                    # Call the watch before resuming the callers that have read the change.
                    self._loop.call_soon(_call, *watching, event)
            case store_wire.Expired(session_id):
                session = self._sessions.pop(session_id, None)
                if session is not None:
                    session.end(SessionState.EXPIRED)

    def lost(self) -> None:
        """End all sessions and fail pending calls, because the connection was closed."""
        self._is_lost = True
        self._next_beat.cancel()
        sessions, self._sessions = self._sessions, {}
        asked, self._asked = self._asked, {}
        for future, _ in asked.values():
            if not future.done():
                future.set_exception(stores.ConnectionLost("the process with the metadata store has ended"))
        for session in sessions.values():
            session.end(SessionState.CLOSED)

    def _beat(self) -> None:
        self._next_beat = self._loop.call_later(self._beat_every_s, self._beat)
        self._send(["alive"])

    def _settle(self, request_id: int, result: Any, error: MetadataStoreError | None) -> None:
        waiting = self._asked.pop(request_id, None)
        if waiting is None:
            raise store_wire.BadFrame(f"a response to request {request_id}, which was not sent")
        future, watch_id = waiting
        if error is not None and watch_id is not None:
            self._watches.pop(watch_id, None)
        # The caller may have been canceled.
        if not future.done():
            if error is None:
                future.set_result(result)
            else:
                future.set_exception(error)

    # --- requests of sessions

    async def _ask(self, kind: str, *arguments: Any, watch_id: int | None = None) -> Any:
        if self._is_lost:
            raise stores.ConnectionLost("the process with the metadata store has ended")
        request_id = self._new_id()
        # Register after sending: if `_send` raises, an entry registered earlier would never be removed.
        self._send([kind, request_id, *arguments])
        future: asyncio.Future[Any] = self._loop.create_future()
        self._asked[request_id] = future, watch_id
        return await future

    async def read(self, session: "RemoteSession", kind: str, path: str, watch: stores.Watch | None) -> Any:
        """Send a read request of type `kind` (see store_wire.READS), and return its encoded result."""
        watch_id = None
        if watch is not None:
            watch_id = self._new_id()
            # Register the watch before the response arrives, because its event may arrive first.
            self._watches[watch_id] = session, watch
        return await self._ask(kind, session.session_id, path, watch_id, watch_id=watch_id)

    async def multi(self, session: "RemoteSession", operations: Sequence[stores.Operation]) -> Any:
        """Run a transaction and return its encoded results."""
        return await self._ask("multi", session.session_id, store_wire.encode_operations(operations))

    async def close(self, session: "RemoteSession") -> None:
        """Close a session on the server."""
        self.forget(session)
        await self._ask("close", session.session_id)

    def forget(self, session: "RemoteSession") -> None:
        """Drop a session, so that later messages for it are ignored."""
        self._sessions.pop(session.session_id, None)
        self._watches = {key: item for key, item in self._watches.items() if item[0] is not session}

    def _new_id(self) -> int:
        self._last_id += 1
        return self._last_id


class RemoteSession(StoreSession):
    """A session with the store of another process, opened by `StoreClient.connect`."""

    def __init__(self, client: StoreClient, session_id: int) -> None:
        super().__init__(session_id)
        self._client = client

    async def get(self, path: str, watch: stores.Watch | None = None) -> tuple[bytes | None, stores.Stat]:
        return store_wire.decode_node(await self._read("get", path, watch))

    async def exists(self, path: str, watch: stores.Watch | None = None) -> stores.Stat | None:
        return store_wire.decode_stat(await self._read("exists", path, watch))

    async def children(self, path: str, watch: stores.Watch | None = None) -> list[str]:
        names: list[str] = await self._read("children", path, watch)
        return names

    async def multi(self, operations: Sequence[stores.Operation]) -> list[str | stores.Stat | None]:
        self._check_connected()
        for operation in operations:
            check_path(operation.path)
        return store_wire.decode_results(await self._client.multi(self, operations))

    async def close(self) -> None:
        if self._state is not SessionState.CONNECTED:
            return
        self._state = SessionState.CLOSED
        try:
            await self._client.close(self)
        except (stores.ConnectionLost, stores.SessionExpired):
            pass  # The session has already ended.
        finally:
            self._change_state(SessionState.CLOSED)

    def end(self, state: SessionState) -> None:
        """End the session, because it expired or the connection was closed."""
        self._client.forget(self)
        self._change_state(state)

    async def _read(self, kind: str, path: str, watch: stores.Watch | None) -> Any:
        self._check_connected()
        check_path(path)
        return await self._client.read(self, kind, path, watch)


def _call(session: RemoteSession, watch: stores.Watch, event: stores.Event) -> None:
    if session.state is SessionState.CONNECTED:
        watch(event)
