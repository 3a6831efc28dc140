"""From a frame to its handler and back to bytes.

A handler is a function named as its API in the module of that name under `kafka_compat.handlers`:

- `def name(ctx, request)` returns the response, or None where the request wants no answer, or PENDING: then
  it calls `ctx.respond(response)` later, exactly once, and requests behind it on the connection go on
  meanwhile;
- a generator, `def name(ctx, request)` with a `yield` after each item of a request that may have many: the
  steps of `kafka_compat.long_work`, which return the response; requests behind it wait where it takes long;
- `async def name(ctx, request)`, or a function that returns a coroutine, gives the response, or PENDING as
  above; requests behind it on the connection wait until it returns (admin APIs).

A frame that is no request closes its connection, as with Kafka. An error that escapes from a handler becomes
the API's error response (see error_response.py): every client waits for some answer. The process lives.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine, Generator, Mapping
from functools import partial
from struct import Struct
from typing import TYPE_CHECKING, Any, Final, Protocol

from kafka_compat.error_mapping import told_as
from kafka_compat.network.api import SIZE_BYTES, Api, LateAnswer
from kafka_compat.network.codec_thread import ELEMENTS_ON_LOOP_MAX, CodecThread
from kafka_compat.network.connection import Connection
from kafka_compat.network.framing import SPARE_BYTES_MAX
from kafka_compat.network.request import HasLongWork, RequestContext
from kafka_compat.network.stages import Account, Quota, Sent, Served, StagedContext, Stages
from kafka_compat.protocol import codec
from kafka_compat.protocol.api_keys import ApiKey
from kafka_compat.protocol.buffers import TooLong
from kafka_compat.protocol.codec import MalformedRequest
from kafka_compat.protocol.headers import decode_client_id
from kafka_compat.protocol.pending import PENDING
from kafka_compat.storage.segments.segment import FileSlice

if TYPE_CHECKING:
    from kafka_compat.errors import KafkaError
    from kafka_compat.network.output import Part, Slot
    from kafka_compat.protocol.schema import Message

log = logging.getLogger(__name__)

_FIXED_HEADER: Final = Struct(">hhih")
HEADER_BYTES: Final = 10
"""Key, version, correlation id, and the length of the client id, which follows."""
SHORT_HEADER_BYTES: Final = 8
"""The same without a client id."""


class Serving(HasLongWork, Protocol):
    """What the dispatcher itself asks of the services that it hands to handlers."""

    @property
    def served(self) -> Mapping[ApiKey, tuple[int, int]]:
        """The APIs that are answered, with their first and last version."""


class Observed(Protocol):
    """Who counts what all requests come to."""

    def new_api(self, key: ApiKey, min_version: int, max_version: int, answer_late: LateAnswer) -> Api:
        """An API whose answers are counted."""

    def timed(self, served: Served) -> None:
        """Told of requests that came by `dispatch_timed`."""


class Dispatcher:
    """Routes frames of one broker. `dispatch` is what the server calls.

    `services` is what handlers find at `ctx.services`; each says by its type what it needs of it.
    """

    def __init__(
        self, services: Serving, stages: Stages | None = None, observed: Observed | None = None
    ) -> None:
        """`stages` are what requests go through beside their handlers, if anything."""
        self._services = services
        self._stages = stages
        self._observed = observed
        self._accounts: list[Account] = []
        if stages is not None and stages.account is not None:
            self._accounts.append(stages.account)
        self._timing = self._with_times()
        self._apis: dict[int, Api] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._codec_thread = CodecThread()

    def api(self, key: int) -> Api | None:
        api = self._apis.get(key)
        if api is None:
            versions = self._services.served.get(key)  # type: ignore[call-overload]
            if versions is None:
                return None
            low, high = versions
            new_api = Api if self._observed is None else self._observed.new_api
            api = self._apis[key] = new_api(ApiKey(key), low, high, self._answer_late)
        return api

    def set_quota(self, quota: Quota | None, sent: Sent | None = None) -> None:
        """Have requests that come from now on go through this stage, or through none."""
        before = self._stages or Stages()
        self._set_stages(Stages(quota, before.account, sent, before.faults))

    def add_account(self, account: Account) -> None:
        """Have requests that come from now on counted by this, too."""
        self._accounts.append(account)
        self._accounts_changed()

    def remove_account(self, account: Account) -> None:
        """Have it count no more."""
        self._accounts.remove(account)
        self._accounts_changed()

    def _accounts_changed(self) -> None:
        before = self._stages or Stages()
        account = self._accounts[0] if len(self._accounts) == 1 else None
        if len(self._accounts) > 1:
            account = partial(_all_count, tuple(self._accounts))
        self._set_stages(Stages(before.quota, account, before.sent, before.faults))

    def _set_stages(self, stages: Stages) -> None:
        self._stages = stages if stages.any else None
        self._timing = self._with_times()

    def _with_times(self) -> Stages | None:
        """The stages of requests that the observer wants to know the times of."""
        if self._observed is None:
            return None
        stages, times = self._stages or Stages(), self._observed.timed
        account = times if stages.account is None else partial(_all_count, (stages.account, times))
        return Stages(stages.quota, account, stages.sent, stages.faults)

    def dispatch(self, connection: Connection, frame: memoryview) -> bool:
        """Serve one frame; False when the connection must be closed."""
        try:
            return self._dispatch(connection, frame, self._stages)
        except Exception as error:
            return self._failed(connection, error)

    def dispatch_timed(self, connection: Connection, frame: memoryview) -> bool:
        """The same for a request whose times the observer is told."""
        try:
            return self._dispatch(connection, frame, self._timing)
        except Exception as error:
            return self._failed(connection, error)

    def _failed(self, connection: Connection, error: Exception) -> bool:
        host = connection.peer_host
        if isinstance(error, MalformedRequest):
            log.info("closing the connection from %s: %s", host, error)
            connection.server.note_refusal(host, f"it sent what is no request: {error}")
        else:
            log.error("closing the connection from %s: a request failed", host, exc_info=error)
        return False

    def _dispatch(self, connection: Connection, frame: memoryview, stages: Stages | None) -> bool:
        if len(frame) < HEADER_BYTES:
            raise MalformedRequest(f"a header of {len(frame)} bytes")
        key, version, correlation_id, client_id_length = _FIXED_HEADER.unpack_from(frame)
        api = self._apis.get(key) or self.api(key)
        if api is None:
            raise MalformedRequest(f"API key {key} is not served")
        if not api.min_version <= version <= api.max_version:
            if key == ApiKey.API_VERSIONS:
                return self._unsupported_api_versions(connection, api, correlation_id, len(frame))
            raise MalformedRequest(f"{api.key.name} version {version} is not served")
        client_id: str | None = None
        position = SHORT_HEADER_BYTES
        if version > 0 or not api.has_short_header:
            is_flexible = version >= api.first_flexible_version
            client_id, position = decode_client_id(frame, HEADER_BYTES, client_id_length, is_flexible)
        if stages is None:
            ctx = RequestContext(self._services, connection, api, version, correlation_id, client_id)
            function = api.handler
        else:
            staged = StagedContext(self._services, connection, api, version, correlation_id, client_id)
            staged.begin(len(frame), stages)
            ctx = staged
            function = stages.guarded(api.handler)
        try:
            request, _ = codec.decode_at(api.request_class, version, frame, position, ELEMENTS_ON_LOOP_MAX)
        except TooLong:
            self._start_serial(ctx, self._serve_long(ctx, _kept(frame), position))
            return True
        try:
            response = function(ctx, request)
            is_usual = type(response) is api.response_class
            if not is_usual and response is not PENDING and _is_steps(response):
                response = self._services.long_work.run(response)
                is_usual = type(response) is api.response_class
        except Exception as error:
            response = self._error_response(ctx, request, error)
            if response is None:
                return False
            is_usual = True
        if is_usual and stages is None:
            # What `_answer` does where there are no stages, without the call.
            try:
                parts = api.encode(version, correlation_id, response)
            except TooLong:
                self._encode_long(ctx, connection.take_slot(), response)
                return True
            connection.respond(parts)
        elif response is PENDING:
            if ctx._early is not PENDING:
                self._answer(ctx, ctx._early)
            else:
                ctx._slot = connection.take_slot()
        elif isinstance(response, Coroutine):
            self._start_serial(ctx, self._serve(ctx, request, response))
        else:
            self._answer(ctx, response)
        return True

    def refusal(self, connection: Connection, frame: memoryview, error: KafkaError) -> list[Part] | None:
        """The answer to a request that is not served for this reason; None where it gets none."""
        if len(frame) < HEADER_BYTES:
            return None
        key, version, correlation_id, client_id_length = _FIXED_HEADER.unpack_from(frame)
        api = self.api(key)
        if api is None or not api.min_version <= version <= api.max_version:
            return None
        try:
            is_flexible = version >= api.first_flexible_version
            _, position = decode_client_id(frame, HEADER_BYTES, client_id_length, is_flexible)
            request, _ = codec.decode_at(api.request_class, version, frame, position, ELEMENTS_ON_LOOP_MAX)
            response = api.error_response(version, request, error)
            return None if response is None else api.encode(version, correlation_id, response)
        except (MalformedRequest, TooLong):
            return None

    def _error_response(self, ctx: RequestContext[Any], request: Any, error: Exception) -> Message | None:
        """None where the request wants no answer: its connection is to be closed."""
        told = told_as(error, f"{ctx._api.key.name} v{ctx.api_version} from {ctx.connection.peer_host}")
        return ctx._api.error_response(ctx.api_version, request, told)

    # --- answers

    def _answer(self, ctx: RequestContext[Any], response: Any) -> None:
        """Answer the request that is being dispatched."""
        if isinstance(ctx, StagedContext):
            if self._is_withheld(ctx, None, response):
                return
            self._apply_quota(ctx, response)
        if response is None:
            self._account(ctx, None, None)
            return
        try:
            parts = ctx._api.encode(ctx.api_version, ctx.correlation_id, response)
        except TooLong:
            self._encode_long(ctx, ctx.connection.take_slot(), response)
            return
        ctx.connection.respond(parts)
        self._account(ctx, response, parts)

    def _answer_late(self, ctx: RequestContext[Any], slot: Slot, response: Any) -> None:
        if isinstance(ctx, StagedContext):
            if self._is_withheld(ctx, slot, response):
                return
            self._apply_quota(ctx, response)
        parts = None
        if response is not None:
            try:
                parts = ctx._api.encode(ctx.api_version, ctx.correlation_id, response)
            except TooLong:
                self._encode_long(ctx, slot, response)
                return
        ctx.connection.complete(slot, parts)
        if isinstance(ctx, StagedContext):
            self._account(ctx, response, parts)

    def _encode_long(self, ctx: RequestContext[Any], slot: Slot, response: Any) -> None:
        """Answer from the codec's thread; until then the answers behind wait, their requests do not."""

        def encoded(parts: asyncio.Future[list[Part]]) -> None:
            if parts.cancelled() or parts.exception() is not None:
                ctx.connection.abort()
                if not parts.cancelled():
                    log.error("closing a connection: an answer failed", exc_info=parts.exception())
            else:
                ctx.connection.complete(slot, parts.result())
                self._account(ctx, response, parts.result())

        work = self._codec_thread.run(ctx._api.encode_long, ctx.api_version, ctx.correlation_id, response)
        work.add_done_callback(encoded)

    def _is_withheld(self, ctx: StagedContext[Any], slot: Slot | None, response: Any) -> bool:
        """Whether a fault keeps this answer back, for a while or for good."""
        if ctx.fault is None:
            return False
        fault, ctx.fault = ctx.fault, None
        if fault.amend is not None and response is not None:
            fault.amend(response)
        mangle = fault.mangle if response is not None else None
        if not (fault.is_dropped or fault.is_lost or fault.delay_ms or mangle):
            return False
        if slot is None:
            # The answers behind it wait.
            slot = ctx.connection.take_slot()
        loop = asyncio.get_running_loop()
        if fault.is_dropped or fault.is_lost:
            loop.call_soon(ctx.connection.abort)
            self._account(ctx, None, None)
        elif mangle is not None:
            self._answer_mangled(ctx, slot, response, mangle)
        else:
            loop.call_later(fault.delay_ms / 1000, self._answer_late, ctx, slot, response)
        return True

    def _answer_mangled(
        self, ctx: RequestContext[Any], slot: Slot, response: Any, mangle: Callable[[bytes], bytes]
    ) -> None:
        parts = ctx._api.encode_long(ctx.api_version, ctx.correlation_id, response)
        whole = b"".join([part.read() if isinstance(part, FileSlice) else bytes(part) for part in parts])
        sent = mangle(whole)
        ctx.connection.complete(slot, [sent])
        if len(sent) < len(whole):
            asyncio.get_running_loop().call_soon(ctx.connection.close)
        self._account(ctx, response, [sent])

    def _apply_quota(self, ctx: StagedContext[Any], response: Any) -> None:
        throttle_time_ms = ctx.stages.ready(ctx, response)
        if throttle_time_ms:
            ctx.connection.mute(throttle_time_ms / 1000)

    def _account(self, ctx: RequestContext[Any], response: Any, parts: list[Part] | None) -> None:
        if isinstance(ctx, StagedContext):
            response_bytes = codec.parts_size_bytes(parts) - SIZE_BYTES if parts else 0
            ctx.stages.answered(ctx, response, response_bytes)

    def _unsupported_api_versions(
        self, connection: Connection, api: Api, correlation_id: int, size_bytes: int
    ) -> bool:
        # KIP-511: a version we do not know is answered in version 0, so that the client can choose again.
        ctx: StagedContext[Any] = StagedContext(self._services, connection, api, 0, correlation_id, None)
        ctx.begin(size_bytes, self._stages or Stages())
        self._answer(ctx, api.handler(ctx, None))
        return True

    # --- requests that take their time, and let those behind them on the connection wait

    def _start_serial(self, ctx: RequestContext[Any], work: Awaitable[None]) -> None:
        ctx._slot = ctx.connection.take_slot()
        if ctx._early is not PENDING:
            # Given before the handler's steps turned out to take their time.
            ctx.respond(ctx._early)
        ctx.connection.begin_serial()
        task = asyncio.ensure_future(self._run_serial(ctx.connection, work))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _run_serial(self, connection: Connection, work: Awaitable[None]) -> None:
        try:
            await work
        except asyncio.CancelledError:
            connection.abort()
            raise
        except MalformedRequest as error:
            log.info("closing the connection from %s: %s", connection.peer_host, error)
            connection.server.note_refusal(connection.peer_host, f"it sent what is no request: {error}")
            connection.abort()
        except Exception:
            log.exception("closing the connection from %s: a request failed", connection.peer_host)
            connection.abort()
        finally:
            connection.end_serial()

    async def _serve(self, ctx: RequestContext[Any], request: Any, result: Awaitable[Any]) -> None:
        """Answer with what an `async def` handler gives."""
        try:
            response = await result
        except Exception as error:
            response = self._error_response(ctx, request, error)
            if response is None:
                ctx.connection.abort()
        if response is not PENDING:
            ctx.respond(response)

    async def _serve_long(self, ctx: RequestContext[Any], frame: memoryview, position: int) -> None:
        """Serve a request that is decoded in the codec's thread. Its frame counts as unserved until then."""
        api = ctx._api
        budget = ctx.connection.server.request_budget
        budget.change(len(frame))
        try:
            request = await self._codec_thread.run(api.decode_long, ctx.api_version, frame, position)
        finally:
            budget.change(-len(frame))
        ctx.frame_is_kept = True
        try:
            function = ctx.stages.guarded(api.handler) if isinstance(ctx, StagedContext) else api.handler
            response = function(ctx, request)
            if _is_steps(response):
                response = await self._services.long_work.finish(response)
            elif isinstance(response, Coroutine):
                response = await response
        except Exception as error:
            response = await self._codec_thread.run(self._error_response, ctx, request, error)
            if response is None:
                ctx.connection.abort()
        if response is not PENDING:
            ctx.respond(response)

    async def stop(self) -> None:
        for task in list(self._tasks):
            task.cancel()
        if self._tasks:
            await asyncio.gather(*self._tasks, return_exceptions=True)
        self._codec_thread.close()


def _all_count(accounts: tuple[Account, ...], served: Served) -> None:
    for account in accounts:
        account(served)


def _is_steps(response: Any) -> bool:
    """Whether a handler gave the steps to its response. A coroutine that is compiled looks like a generator,
    too; the other way round they differ.
    """
    return isinstance(response, Generator) and not isinstance(response, Coroutine)


def _kept(frame: memoryview) -> memoryview:
    """A frame that may be read when its connection receives again. One that is larger than what connections
    keep for the next frame is not used for another.
    """
    return frame if len(frame) > SPARE_BYTES_MAX else memoryview(bytearray(frame))
