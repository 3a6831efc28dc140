"""Decode requests, call their handlers, and encode the responses in the order of the requests.

If a response is available, it is sent at once. A response that is not available yet (Deferred) has a slot in
the connection's output queue. After an invalid frame, the connection is closed, as in Kafka.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from librt.strings import read_i16_be, read_i32_be

from kafka_compat.api.api import SIZE_BYTES, Api, Part
from kafka_compat.api.calls import Calls
from kafka_compat.api.handler import RequestContext
from kafka_compat.deferred import Deferred, HungUp
from kafka_compat.network.connection import Connection
from kafka_compat.network.framing import SPARE_BYTES_MAX, Frame
from kafka_compat.network.output import Slot
from kafka_compat.protocol.api_keys import ApiKey
from kafka_compat.protocol.buffers import TooLong, size_of
from kafka_compat.protocol.codec import MalformedRequest
from kafka_compat.protocol.headers import decode_client_id
from kafka_compat.storage.segments.file_slice import FileSlice

if TYPE_CHECKING:
    from kafka_compat.errors import KafkaError
    from kafka_compat.metadata.emulation import Emulation

log = logging.getLogger(__name__)

HEADER_BYTES: Final = 10
"""Size in bytes of the API key, version, correlation ID, and client ID length."""
SHORT_HEADER_BYTES: Final = 8
"""Size in bytes of the header without a client ID."""
_KIND_BYTES: Final = 4
"""Size in bytes of the API key and version."""
_NO_BODY: Final = 0
_KEPT_HEADER_END_MAX: Final = 1024
"""Maximum size in bytes of a header that the connection keeps, to recognize it in its next request."""


class AwaitedSlot(Slot):
    """The slot of a response that is not available yet, and the data needed to encode it."""

    __slots__ = ("_dispatcher", "api", "connection", "correlation_id", "version")

    def __init__(
        self, dispatcher: Dispatcher, connection: Connection, api: Api, version: int, correlation_id: int
    ) -> None:
        super().__init__()
        self._dispatcher = dispatcher
        self.connection = connection
        self.api = api
        self.version = version
        self.correlation_id = correlation_id

    def answer(self, deferred: Deferred) -> None:
        self._dispatcher.answer_late(self, deferred)


class Dispatcher:
    """The dispatcher of one broker's frames. The server calls `dispatch` for each frame."""

    def __init__(self, calls: Calls, emulation: Emulation | None = None) -> None:
        """`emulation` limits the versions of requests, in addition to the versions that are served."""
        self._calls = calls
        self._emulation = emulation
        self._tasks: set[asyncio.Task[None]] = set()

    def dispatch(self, connection: Connection, frame: Frame) -> bool:
        """Serve one frame. Return False if the connection must be closed."""
        try:
            ctx, header = connection.known, connection.header
            position = SHORT_HEADER_BYTES + len(header)
            if (
                ctx is None
                or ctx.caller is not connection.caller
                or frame[:_KIND_BYTES] != connection.kind
                or frame[SHORT_HEADER_BYTES:position] != header
            ):
                ctx, position = self._recognize(connection, frame)
            calls, api, version = self._calls, ctx.api, ctx.api_version
            if isinstance(frame, bytes):
                correlation_id = int(read_i32_be(frame, _KIND_BYTES))
            else:
                correlation_id = _fixed_header(frame)[2]
                ctx = calls.context(api, ctx.caller, version, is_kept=False)
            began_s = 0.0 if calls.stages is None else time.perf_counter()
            try:
                request = api.decode(version, frame, position) if position else None
            except TooLong:
                deferred = Deferred(is_serial=True)
                self._answer(connection, api, version, correlation_id, deferred)
                work = self._serve_long(connection, api, version, _kept(frame), position, began_s, deferred)
                task = asyncio.ensure_future(work)
                self._tasks.add(task)
                task.add_done_callback(self._tasks.discard)
                return True
            response = calls.serve(ctx, request, len(frame), connection.last_active_s, began_s)
            if type(response) is not api.response_class:
                return self._answer(connection, api, version, correlation_id, response)
            # Inline the part of `_answer` that handles an available response, for speed.
            try:
                parts = api.encode(version, correlation_id, response)
            except TooLong:
                slot = AwaitedSlot(self, connection, api, version, correlation_id)
                connection.add_slot(slot)
                self._encode_long(slot, response, None)
                return True
            connection.respond(parts)
            return True
        except HungUp:
            return False
        except MalformedRequest as error:
            _note_malformed(connection, error)
        except Exception:
            log.exception("Closed the connection from %s: a request failed", connection.peer_host)
        return False

    def _recognize(self, connection: Connection, frame: Frame) -> tuple[RequestContext, int]:
        """Return the context of a request, which the next request may share, and the position of its body."""
        if len(frame) < HEADER_BYTES:
            raise MalformedRequest(f"the header has only {len(frame)} bytes")
        key, version, _, client_id_length = _fixed_header(frame)
        api = self._calls.api(key)
        if api is None:
            raise MalformedRequest(f"API key {key} is not supported")
        connection.known = None
        emulation = self._emulation
        if not api.min_version <= version <= api.max_version or (
            emulation is not None and not emulation.allows(connection.listener_name, key, version)
        ):
            if key == ApiKey.API_VERSIONS:
                # Use version 0 for an unknown version (KIP-511), so that the client can choose another.
                return self._calls.context(api, connection.caller, 0), _NO_BODY
            raise MalformedRequest(f"{api.key.name} version {version} is not supported")
        client_id: str | None = None
        position = SHORT_HEADER_BYTES
        if version > 0 or not api.has_short_header:
            is_flexible = version >= api.first_flexible_version
            client_id, position = decode_client_id(frame, HEADER_BYTES, client_id_length, is_flexible)
        if client_id != connection.caller.client_id:
            connection.caller = connection.caller.with_client_id(client_id)
        ctx = self._calls.context(api, connection.caller, version)
        if SHORT_HEADER_BYTES < position <= _KEPT_HEADER_END_MAX:
            connection.known = ctx
            connection.kind = bytes(frame[:_KIND_BYTES])
            connection.header = bytes(frame[SHORT_HEADER_BYTES:position])
        return ctx, position

    def refusal(self, connection: Connection, frame: Frame, error: KafkaError) -> list[Part] | None:
        """Return the response to a request rejected with `error`, or None if it gets no response."""
        if len(frame) < HEADER_BYTES:
            return None
        key, version, correlation_id, client_id_length = _fixed_header(frame)
        api = self._calls.api(key)
        if api is None or not api.min_version <= version <= api.max_version:
            return None
        try:
            is_flexible = version >= api.first_flexible_version
            _, position = decode_client_id(frame, HEADER_BYTES, client_id_length, is_flexible)
            request = api.decode(version, frame, position)
            response = api.error_response(version, request, error)
            return None if response is None else api.encode(version, correlation_id, response)
        except (MalformedRequest, TooLong):
            return None

    async def _serve_long(
        self,
        connection: Connection,
        api: Api,
        version: int,
        frame: Frame,
        position: int,
        began_s: float,
        deferred: Deferred,
    ) -> None:
        """Serve a request after decoding it in a thread. Until then, it counts toward the request budget."""
        calls, caller, size_bytes = self._calls, connection.caller, len(frame)
        budget = connection.server.request_budget
        budget.change(size_bytes)
        arrived_s = connection.last_active_s
        result: Any = None
        try:
            try:
                request = await calls.codec_thread.run(api.decode_long, version, frame, position)
            finally:
                budget.change(-size_bytes)
            ctx = calls.context(api, caller, version)
            result = calls.serve(ctx, request, size_bytes, arrived_s, began_s)
        except BaseException as error:
            deferred.hang_up()
            if isinstance(error, MalformedRequest):
                _note_malformed(connection, error)
            elif not isinstance(error, HungUp):
                raise
            return
        if isinstance(result, Deferred):
            deferred.follow(result)
        else:
            deferred.complete(result)

    def _answer(
        self, connection: Connection, api: Api, version: int, correlation_id: int, result: Any
    ) -> bool:
        """Respond to the current request. Return False if the connection must be closed."""
        if result is None:
            return True
        if isinstance(result, Deferred):
            if result.is_done and result.is_hung_up:
                return False
            slot = AwaitedSlot(self, connection, api, version, correlation_id)
            connection.add_slot(slot)
            if result.is_serial:
                connection.begin_serial()
                result.when_released(connection.end_serial)
            if result.work is not None or result.is_serial:
                connection.parked.add(result)
            result.when_done(slot.answer)
            return True
        slot = AwaitedSlot(self, connection, api, version, correlation_id)
        connection.add_slot(slot)
        self._complete(slot, result, None)
        return True

    def answer_late(self, slot: AwaitedSlot, deferred: Deferred) -> None:
        """Send the response to an earlier request."""
        connection = slot.connection
        connection.parked.discard(deferred)
        if deferred.is_hung_up:
            connection.abort()
            return
        if deferred.throttle_time_ms:
            connection.mute(deferred.throttle_time_ms / 1000)
        self._complete(slot, deferred.response, deferred)

    def _complete(self, slot: AwaitedSlot, response: Any, deferred: Deferred | None) -> None:
        parts: list[Part] | None = None
        if response is not None:
            try:
                parts = slot.api.encode(slot.version, slot.correlation_id, response)
            except TooLong:
                self._encode_long(slot, response, deferred)
                return
            except Exception:
                log.exception("Closed the connection from %s: a request failed", slot.connection.peer_host)
                slot.connection.abort()
                return
        self._send(slot, parts, deferred)

    def _send(self, slot: AwaitedSlot, parts: list[Part] | None, deferred: Deferred | None) -> None:
        connection = slot.connection
        if deferred is None:
            connection.complete(slot, parts)
            return
        if deferred.mangle is not None and parts is not None:
            whole = b"".join([part.read() if isinstance(part, FileSlice) else bytes(part) for part in parts])
            mangled = deferred.mangle(whole)
            if len(mangled) < len(whole):
                connection.drop_later(slot)
                asyncio.get_running_loop().call_soon(connection.close)
            parts = [mangled]
        connection.complete(slot, parts)
        if deferred.sent is not None:
            deferred.sent(sum(map(size_of, parts)) - SIZE_BYTES if parts else 0)

    def _encode_long(self, slot: AwaitedSlot, response: Any, deferred: Deferred | None) -> None:
        """Encode a response in the codec's thread. Later responses wait, but later requests are served."""

        def encoded(parts: asyncio.Future[list[Part]]) -> None:
            if parts.cancelled() or parts.exception() is not None:
                slot.connection.abort()
                if not parts.cancelled():
                    log.error("Closed a connection: could not encode a response", exc_info=parts.exception())
            else:
                self._send(slot, parts.result(), deferred)
            self._calls.codec_thread.free(response)

        encode: Callable[..., list[Part]] = slot.api.encode_long
        work = self._calls.codec_thread.run(encode, slot.version, slot.correlation_id, response)
        work.add_done_callback(encoded)

    async def stop(self) -> None:
        for task in list(self._tasks):
            task.cancel()
        if self._tasks:
            await asyncio.gather(*self._tasks, return_exceptions=True)
        await self._calls.stop()


def _note_malformed(connection: Connection, error: MalformedRequest) -> None:
    log.info("Closed the connection from %s: invalid request: %s", connection.peer_host, error)
    connection.server.note_refusal(connection.peer_host, f"it sent an invalid request: {error}")


def _kept(frame: Frame) -> Frame:
    """Return a frame that stays valid when its connection receives more data: a copy, unless the frame is
    small or larger than the buffers that connections reuse.
    """
    if isinstance(frame, bytes) or len(frame) > SPARE_BYTES_MAX:
        return frame
    return memoryview(bytearray(frame))


def _fixed_header(frame: Frame) -> tuple[int, int, int, int]:
    """Return the API key, version, correlation ID, and length of the client ID of a request."""
    start = frame if isinstance(frame, bytes) else bytes(frame[:HEADER_BYTES])
    return (
        int(read_i16_be(start, 0)),
        int(read_i16_be(start, 2)),
        int(read_i32_be(start, 4)),
        int(read_i16_be(start, SHORT_HEADER_BYTES)),
    )
