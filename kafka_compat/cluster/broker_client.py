"""Client connection to another broker, with pipelined requests and without version discovery.

Rules
1. Brokers of a cluster use the API versions of inter.broker.protocol.version, so ApiVersions is not needed.
2. Requests are pipelined, and responses arrive in the order of the requests.
3. After a broken connection or a late response, all pending requests fail with ConnectionError, because
   the other broker may or may not have processed them. The next request reconnects, after a backoff that
   doubles while the other broker is unreachable.
4. Responses are delivered as soon as they are read, without an intermediate task, because any delay of a
   follower's fetch adds to the latency of producers with acks=all.
5. If the listener requires it, a connection is authenticated before any other request, and again before its
   session expires (KIP-368). Requests wait for the authentication.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable
from functools import partial
from struct import Struct
from typing import Any, Final, NamedTuple, cast

from kafka_compat.network.framing import Frame, FrameReader, InvalidFrame
from kafka_compat.protocol import codec, messages
from kafka_compat.protocol.api_keys import ApiKey
from kafka_compat.protocol.headers import RequestHeader, decode_response_header, encode_request_header
from kafka_compat.security.broker_security import NONE, BrokerSecurity
from kafka_compat.tasks import settle

log = logging.getLogger(__name__)

RECONNECT_BACKOFF_MS: Final = 50
RECONNECT_BACKOFF_MAX_MS: Final = 1000
CONNECT_TIMEOUT_MS: Final = 10_000
_READ_BYTES: Final = 64 * 1024
_ANSWER_MAX_BYTES: Final = 2**31 - 5
_SIZE: Final = Struct(">i")
_OF_SASL: Final = (ApiKey.SASL_HANDSHAKE, ApiKey.SASL_AUTHENTICATE)
_LIFETIME_SHARE: Final = 0.85
"""Fraction of the session lifetime after which a connection is reauthenticated, as in Kafka clients."""

Handover = Callable[[Any], None]
"""A callback that receives the response or an exception."""


class _Request(NamedTuple):
    """A pending request. `keeps` is true if the response must be copied from the frame buffer."""

    correlation_id: int
    api_key: ApiKey
    version: int
    deadline_s: float
    keeps: bool
    handover: Handover


class Encoded(NamedTuple):
    """A request whose body has been encoded."""

    body: bytes


class BrokerClient:
    """A client for one broker, with the rules in the module docstring. `ask` requires an open connection."""

    def __init__(
        self,
        host: str,
        port: int,
        client_id: str,
        *,
        request_timeout_ms: int = 30_000,
        connect_timeout_ms: int = CONNECT_TIMEOUT_MS,
        reconnect_backoff_max_ms: int = RECONNECT_BACKOFF_MAX_MS,
        security: BrokerSecurity = NONE,
    ) -> None:
        self.host = host
        self.port = port
        self._security = security
        self._client_id = client_id
        self._request_timeout_s = request_timeout_ms / 1000
        self._connect_timeout_s = connect_timeout_ms / 1000
        self._backoff_ms = 0
        self._backoff_max_ms = reconnect_backoff_max_ms
        self._connecting = asyncio.Lock()
        self._link: _Link | None = None
        self._correlation_id = 0
        self._closed = False
        self._logging_in: set[asyncio.Task[None]] = set()

    async def send(self, api_key: ApiKey, version: int, request: Any, timeout_ms: int | None = None) -> Any:
        """Send a request and return the response. `request` is a message, or an `Encoded` if its body has
        already been encoded. Byte fields of the response are views of a copy of the frame.

        `timeout_ms` overrides the client's timeout. Raises ConnectionError if no connection can be opened, or
        if the connection is closed before the response arrives. Raises MalformedRequest if the response is
        invalid.
        """
        link = self._link or await self._connect()
        timeout_s = self._request_timeout_s if timeout_ms is None else timeout_ms / 1000
        return await self._answer(link, timeout_s, api_key, version, request)

    async def _answer(
        self, link: _Link, timeout_s: float, api_key: ApiKey, version: int, request: Any
    ) -> Any:
        # To avoid a reference cycle through this frame, do not keep the future in a variable.
        return await self._asked(link, timeout_s, api_key, version, request)

    def _asked(
        self, link: _Link, timeout_s: float, api_key: ApiKey, version: int, request: Any
    ) -> asyncio.Future[Any]:
        answer: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self._write(link, api_key, version, request, timeout_s, True, partial(settle, answer))
        return answer

    async def connect(self) -> None:
        """Open a connection for `ask`, unless one is open. Raises ConnectionError if this fails."""
        if self._link is None:
            await self._connect()

    def ask(self, api_key: ApiKey, version: int, request: Any, handover: Handover) -> None:
        """Send a request over the open connection. When the response arrives or the request fails, call
        `handover` with the response or the exception, but never within `ask` itself.

        Byte fields of the response are valid until `handover` returns. Raises ConnectionError if there is no
        open connection.
        """
        if self._link is None:
            raise ConnectionError(f"not connected to {self._name}")
        self._write(self._link, api_key, version, request, self._request_timeout_s, False, handover)

    async def close(self) -> None:
        """Close the connection. Pending and later requests fail with ConnectionError."""
        self._closed = True
        if self._link is not None:
            self._link.drop(ConnectionError("the client was closed"))

    @property
    def _name(self) -> str:
        return f"{self.host}:{self.port}"

    def _write(
        self,
        link: _Link,
        api_key: ApiKey,
        version: int,
        request: Any,
        timeout_s: float,
        keeps: bool,
        handover: Handover,
    ) -> None:
        self._correlation_id = correlation_id = (self._correlation_id + 1) & 0x7FFF_FFFF
        header = encode_request_header(RequestHeader(api_key, version, correlation_id, self._client_id))
        body = request.body if isinstance(request, Encoded) else codec.encode(request, version)
        link.write(
            b"".join((_SIZE.pack(len(header) + len(body)), header, body)),
            _Request(correlation_id, api_key, version, link.loop.time() + timeout_s, keeps, handover),
        )

    async def _connect(self) -> _Link:
        async with self._connecting:
            if self._closed:
                raise ConnectionError("the client was closed")
            if self._link is not None:
                return self._link
            if self._backoff_ms:
                await asyncio.sleep(self._backoff_ms / 1000)
            self._backoff_ms = min(max(2 * self._backoff_ms, RECONNECT_BACKOFF_MS), self._backoff_max_ms)
            loop = asyncio.get_running_loop()
            try:
                async with asyncio.timeout(self._connect_timeout_s):
                    tls = self._security.tls
                    _, link = await loop.create_connection(
                        lambda: _Link(self._name, loop, self._worked, self._lost),
                        self.host,
                        self.port,
                        ssl=None if tls is None else tls(),
                    )
                    await self._log_in(link)
            except (OSError, UnicodeError) as error:  # An invalid host name raises UnicodeError.
                raise ConnectionError(f"cannot connect to {self._name}: {error}") from error
            if self._closed:
                link.drop(ConnectionError("the client was closed"))
                raise ConnectionError("the client was closed")
            self._link = link
            return link

    async def _log_in(self, link: _Link) -> None:
        login = self._security.login
        if login is None:
            return
        from kafka_compat.cluster.broker_login import log_in

        try:
            lifetime_ms = await log_in(login, self.host, partial(self._answer, link, self._connect_timeout_s))
        except (ConnectionError, codec.MalformedRequest, asyncio.CancelledError) as error:
            link.drop(ConnectionError(f"could not authenticate to {self._name}"))
            if isinstance(error, codec.MalformedRequest):
                raise ConnectionError(f"its response cannot be read: {error}") from error
            raise
        if lifetime_ms > 0:
            link.loop.call_later(lifetime_ms * _LIFETIME_SHARE / 1000, self._log_in_again_soon, link)

    def _log_in_again_soon(self, link: _Link) -> None:
        if self._link is link:
            task = link.loop.create_task(self._log_in_again(link))
            self._logging_in.add(task)
            task.add_done_callback(self._logging_in.discard)

    async def _log_in_again(self, link: _Link) -> None:
        link.hold()
        try:
            await self._log_in(link)
        except ConnectionError as error:
            if not self._closed:
                log.warning("Could not reauthenticate to %s: %s; closed the connection", self._name, error)
        else:
            link.release()

    def _worked(self) -> None:
        self._backoff_ms = 0

    def _lost(self, link: _Link) -> None:
        if self._link is link:
            self._link = None


class _Link(asyncio.BufferedProtocol):
    def __init__(
        self,
        name: str,
        loop: asyncio.AbstractEventLoop,
        worked: Callable[[], None],
        lost: Callable[[_Link], None],
    ) -> None:
        self.loop = loop
        self._name = name
        self._worked = worked
        self._lost = lost
        self._reader = FrameReader(_ANSWER_MAX_BYTES)
        self._buffer = memoryview(bytearray(_READ_BYTES))
        self._room: memoryview | None = None
        self._waiting: deque[_Request] = deque()
        self._timer: asyncio.Handle | None = None
        self._timer_at_s = 0.0
        self._transport: asyncio.Transport | None = None
        self._dropped = False
        self._held: list[tuple[bytes, _Request]] | None = None

    def hold(self) -> None:
        """Delay all requests except authentication requests until `release`."""
        self._held = []

    def release(self) -> None:
        """Send the requests that `hold` has delayed."""
        held, self._held = self._held, None
        for frame, request in held or ():
            self.write(frame, request)

    def write(self, frame: bytes, request: _Request) -> None:
        if self._held is not None and request.api_key not in _OF_SASL:
            self._held.append((frame, request))
            return
        self._waiting.append(request)
        if self._timer is None or self._timer_at_s > request.deadline_s:
            self._watch(request.deadline_s)
        assert self._transport is not None
        self._transport.write(frame)

    def drop(self, error: ConnectionError) -> None:
        """Close the connection, and fail all pending requests with `error`."""
        if self._dropped:
            return
        self._dropped = True
        self._lost(self)
        if self._timer is not None:
            self._timer.cancel()
        if self._transport is not None:
            self._transport.abort()
        waiting, self._waiting = self._waiting, deque()
        held, self._held = self._held, None
        for request in (*waiting, *(request for _, request in held or ())):
            self.loop.call_soon(request.handover, error)

    # --- asyncio protocol methods

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)

    def get_buffer(self, sizehint: int) -> memoryview:
        self._room = self._reader.room()
        return self._buffer if self._room is None else self._room

    def buffer_updated(self, nbytes: int) -> None:
        try:
            if self._room is None:
                self._reader.received(bytes(self._buffer[:nbytes]))
            else:
                self._reader.filled(nbytes)
            while (frame := self._reader.next_frame()) is not None:
                self._answered(frame)
                if self._dropped:
                    return
        except InvalidFrame as invalid:
            self.drop(ConnectionError(f"{self._name}: {invalid}"))
        except ConnectionError as error:
            self.drop(error)

    def connection_lost(self, exc: Exception | None) -> None:
        self.drop(ConnectionError(f"the connection to {self._name} was lost: {exc or 'it was closed'}"))

    # --- responses

    def _answered(self, frame: Frame) -> None:
        if not self._waiting:
            raise ConnectionError(f"{self._name} sent an unexpected response")
        request = self._waiting[0]
        try:
            correlation_id, position = decode_response_header(request.api_key, request.version, frame)
            if correlation_id != request.correlation_id:
                raise ConnectionError(
                    f"{self._name} sent response {correlation_id} instead of {request.correlation_id}"
                )
            body = bytes(frame) if request.keeps else frame
            response: object = codec.decode(
                messages.response_class(request.api_key), request.version, body, position
            )
        except codec.MalformedRequest as error:
            response = error
        self._waiting.popleft()
        self._worked()
        request.handover(response)

    def _watch(self, deadline_s: float) -> None:
        if self._timer is not None:
            self._timer.cancel()
        # uvloop's handle of a time that has passed does not know the time.
        self._timer_at_s = deadline_s
        self._timer = self.loop.call_at(deadline_s, self._look_at_clock)

    def _look_at_clock(self) -> None:
        self._timer = None
        if not self._waiting:
            # No request is pending, so spare memory can be released.
            self._reader.release_spare()
            return
        deadline_s = min(request.deadline_s for request in self._waiting)
        if deadline_s > self.loop.time():
            self._watch(deadline_s)
        else:
            self.drop(ConnectionError(f"{self._name} did not respond in time"))
