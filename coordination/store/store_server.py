"""Server that gives one other process access to an EmbeddedMetadataStore.

Rules, in addition to the rules of metadata_store.py:
- Requests begin in the order of arrival. Events and responses are sent, over one connection, in the order in
  which the store generates them, so that a watch event arrives before the change can be read.
- When the connection is closed, the process is considered dead: its sessions end at once, and their ephemeral
  nodes are deleted.
- If a process sends nothing for its session timeout, its sessions with ephemeral nodes expire. Other sessions
  do not expire, because no other client depends on them. Log recovery, before a broker registers, may take
  longer than the timeout.
"""

import asyncio
import logging
from collections.abc import Callable, Coroutine
from typing import Any

from kafka_compat.coordination.store import metadata_store as stores
from kafka_compat.coordination.store import store_wire
from kafka_compat.coordination.store.embedded import EmbeddedMetadataStore, EmbeddedSession
from kafka_compat.coordination.store.metadata_store import MetadataStoreError, SessionState
from kafka_compat.coordination.store.store_wire import Message

log = logging.getLogger(__name__)

CHECKS_PER_TIMEOUT = 3
"""The number of heartbeats, and of checks for missing heartbeats, per session timeout."""


class Silence:
    """Timer that measures the time since the last message, in seconds on a monotonic clock. No I/O.

    Time during which this process did not run is not counted: if the interval between two checks is longer
    than the timeout, the measurement starts again.
    """

    def __init__(self, timeout_s: float, now_s: float) -> None:
        self._timeout_s = timeout_s
        self._heard_s = self._looked_s = now_s

    def heard(self, now_s: float) -> None:
        """Record a received message."""
        self._heard_s = now_s

    def is_too_long(self, now_s: float) -> bool:
        """Whether the timeout has passed since the last message. Call this several times per timeout."""
        if now_s - self._looked_s > self._timeout_s:
            self._heard_s = now_s
        self._looked_s = now_s
        return now_s - self._heard_s >= self._timeout_s


class StoreServer:
    """The server for one client process. `send` sends a message to that process."""

    def __init__(
        self, store: EmbeddedMetadataStore, session_timeout_ms: int, send: Callable[[Message], None]
    ) -> None:
        self._store = store
        self._send = send
        self._loop = asyncio.get_running_loop()
        self._sessions: dict[int, EmbeddedSession] = {}
        self._under_way: set[asyncio.Task[None]] = set()
        self._silence = Silence(session_timeout_ms / 1000, self._loop.time())
        self._look_every_s = session_timeout_ms / 1000 / CHECKS_PER_TIMEOUT
        self._next_look = self._loop.call_later(self._look_every_s, self._look)

    def receive(self, message: Message) -> None:
        """Process a request. Raises store_wire.BadFrame if it is invalid."""
        request = store_wire.decode_request(message)
        self._silence.heard(self._loop.time())
        match request:
            case store_wire.Open():
                self._open(request)
            case store_wire.Read():
                self._begin(self._answer(request.request_id, self._read(request)))
            case store_wire.Multi():
                self._begin(self._answer(request.request_id, self._multi(request)))
            case store_wire.Close():
                self._begin(self._answer(request.request_id, self._close(request)))

    def end(self) -> None:
        """End all sessions after the pending requests, because the client process has exited."""
        self._next_look.cancel()
        for session in list(self._sessions.values()):
            self._begin(self._expire(session))

    async def expire(self, session_id: int) -> None:
        """Expire a session."""
        session = self._sessions.get(session_id)
        if session is not None:
            await self._expire(session)

    async def settled(self) -> None:
        """Wait until all requests have been processed and all sessions that must end have ended."""
        while self._under_way:
            await asyncio.wait(self._under_way)

    def _begin(self, work: Coroutine[Any, Any, None]) -> None:
        # Tasks start in the order of their creation, so requests reach the store in the order of arrival.
        task = self._loop.create_task(work)
        self._under_way.add(task)
        task.add_done_callback(self._under_way.discard)

    # --- requests

    def _open(self, request: store_wire.Open) -> None:
        session = self._store.connect()
        session_id = session.session_id
        self._sessions[session_id] = session

        def changed(state: SessionState) -> None:
            self._sessions.pop(session_id, None)
            if state is SessionState.EXPIRED:
                self._send(["expired", session_id])

        session.on_state(changed)
        self._send(["done", request.request_id, session_id])

    async def _answer(self, request_id: int, work: Coroutine[Any, Any, Any]) -> None:
        try:
            result = await work
            # Send the result in the `try` block, because a list of children may be too long to be sent.
            self._send(["done", request_id, result])
        except MetadataStoreError as error:
            self._send(["failed", request_id, store_wire.encode_error(error)])

    async def _read(self, request: store_wire.Read) -> Any:
        session = self._session(request.session_id)
        watch = None if request.watch_id is None else self._watch_callback(request.watch_id)
        if request.kind == "get":
            return store_wire.encode_node(*await session.get(request.path, watch))
        if request.kind == "exists":
            return await session.exists(request.path, watch)
        return await session.children(request.path, watch)

    async def _multi(self, request: store_wire.Multi) -> Any:
        return await self._session(request.session_id).multi(request.operations)

    async def _close(self, request: store_wire.Close) -> None:
        await self._session(request.session_id).close()

    def _session(self, session_id: int) -> EmbeddedSession:
        session = self._sessions.get(session_id)
        if session is None:
            raise stores.SessionExpired(f"session {session_id} has ended")
        return session

    def _watch_callback(self, watch_id: int) -> stores.Watch:
        def tell(event: stores.Event) -> None:
            self._send(["event", watch_id, event.kind.value, event.path])

        return tell

    # --- end of sessions

    def _look(self) -> None:
        self._next_look = self._loop.call_later(self._look_every_s, self._look)
        if not self._silence.is_too_long(self._loop.time()):
            return
        for session in list(self._sessions.values()):
            if session.holds_ephemerals:
                log.warning("Metadata session %d expired: its process stopped responding", session.session_id)
                self._begin(self._expire(session))

    async def _expire(self, session: EmbeddedSession) -> None:
        try:
            await session.expire()
        except stores.SessionExpired:
            return
        except MetadataStoreError as error:
            log.error("Could not record the end of metadata session %d: %s", session.session_id, error)
