"""From a frame to its handler and back to bytes.

A handler is a function named as its API in the module of that name under `kafka_compat.handlers`:

- `def name(ctx, request)` returns the response, or None where the request wants no answer, or PENDING: then
  it calls `ctx.respond(response)` later, exactly once, and requests behind it on the connection go on
  meanwhile;
- `async def name(ctx, request)`, or a function that returns a coroutine, gives the response, or PENDING as
  above; requests behind it on the connection wait until it returns (admin APIs).

A frame that no handler can answer closes its connection, as Kafka does; the process lives.
"""

from __future__ import annotations

import asyncio
import importlib
import logging
from collections.abc import Awaitable, Callable
from struct import Struct
from types import CoroutineType
from typing import TYPE_CHECKING, Any, Final, TypeVar, cast

from kafka_compat.connection import Connection, Part, Slot
from kafka_compat.protocol import codec, messages
from kafka_compat.protocol.api_keys import ApiKey
from kafka_compat.protocol.codec import MalformedRequest
from kafka_compat.protocol.headers import decode_request_header, encode_response_header

if TYPE_CHECKING:
    from kafka_compat.broker import Broker

log = logging.getLogger(__name__)

_FIXED_HEADER = Struct(">hhih")
_SIZE = Struct(">i")


class _Pending:
    """The type of PENDING."""


PENDING: Final = _Pending()

Handler = TypeVar("Handler", bound=Callable[..., Any])


def handler(api_key: ApiKey) -> Callable[[Handler], Handler]:
    """Mark the function that serves an API; its name is the API's."""

    def mark(function: Handler) -> Handler:
        if function.__name__ != api_key.name.lower():
            raise TypeError(f"the handler of {api_key.name} is named {function.__name__}")
        return function

    return mark


class RequestContext:
    """What a handler may know of the request and its connection."""

    __slots__ = (
        "_api",
        "_early",
        "_slot",
        "api_version",
        "broker",
        "client_id",
        "connection",
        "correlation_id",
    )

    def __init__(
        self,
        broker: Broker,
        connection: Connection,
        api: _Api,
        api_version: int,
        correlation_id: int,
        client_id: str | None,
    ) -> None:
        self.broker = broker
        self.connection = connection
        self.api_version = api_version
        self.correlation_id = correlation_id
        self.client_id = client_id
        self._api = api
        self._slot: Slot | None = None
        self._early: list[Part] | None = None

    @property
    def client_host(self) -> str:
        return self.connection.peer_host

    @property
    def listener_name(self) -> str:
        return self.connection.listener_name

    def respond(self, response: Any) -> None:
        """The late answer to a request whose handler returned PENDING; None closes the slot without an
        answer.
        """
        parts = (
            None if response is None else self._api.encode(self.api_version, self.correlation_id, response)
        )
        if self._slot is None:
            self._early = parts or []
        else:
            self.connection.complete(self._slot, parts)


class _Api:
    """One API: its handler, its versions, its messages."""

    __slots__ = ("function", "has_slices", "key", "max_version", "min_version", "request_class")

    def __init__(self, key: ApiKey, min_version: int, max_version: int) -> None:
        module = importlib.import_module(f"kafka_compat.handlers.{key.name.lower()}")
        self.key = key
        self.min_version = min_version
        self.max_version = max_version
        self.function: Callable[..., Any] = getattr(module, key.name.lower())
        self.request_class = messages.request_class(key)
        self.has_slices = key is ApiKey.FETCH

    def encode(self, version: int, correlation_id: int, response: Any) -> list[Part]:
        """The frame of a response, in the parts in which it goes to the connection."""
        header = encode_response_header(self.key, version, correlation_id)
        if self.has_slices:
            parts = codec.encode_parts(response, version)
            size_bytes = len(header) + codec.parts_size_bytes(parts)
            return [_SIZE.pack(size_bytes) + header, *cast("list[Part]", parts)]
        body = codec.encode(response, version)
        return [b"".join((_SIZE.pack(len(header) + len(body)), header, body))]


class Dispatcher:
    """Routes frames of one broker. `dispatch` is what the server calls."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self._apis: dict[int, _Api] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    def api(self, key: int) -> _Api | None:
        api = self._apis.get(key)
        if api is None:
            versions = self._broker.served.get(key)  # type: ignore[call-overload]
            if versions is None:
                return None
            api = self._apis[key] = _Api(ApiKey(key), *versions)
        return api

    def dispatch(self, connection: Connection, frame: memoryview) -> bool:
        """Serve one frame; False when the connection must be closed."""
        try:
            return self._dispatch(connection, frame)
        except MalformedRequest as error:
            log.info("closing the connection from %s: %s", connection.peer_host, error)
        except Exception:
            log.exception("closing the connection from %s: a request failed", connection.peer_host)
        return False

    def _dispatch(self, connection: Connection, frame: memoryview) -> bool:
        if len(frame) < _FIXED_HEADER.size:
            raise MalformedRequest(f"a header of {len(frame)} bytes")
        key, version, correlation_id, _ = _FIXED_HEADER.unpack_from(frame)
        api = self._apis.get(key) or self.api(key)
        if api is None:
            raise MalformedRequest(f"API key {key} is not served")
        if not api.min_version <= version <= api.max_version:
            if key == ApiKey.API_VERSIONS:
                return self._unsupported_api_versions(connection, api, correlation_id)
            raise MalformedRequest(f"{api.key.name} version {version} is not served")
        header, position = decode_request_header(frame)
        request, _ = codec.decode_at(api.request_class, version, frame, position)
        ctx = RequestContext(self._broker, connection, api, version, correlation_id, header.client_id)
        response = api.function(ctx, request)
        if type(response) is CoroutineType:
            self._start_serial(connection, ctx, response)
        elif response is PENDING:
            if ctx._early is not None:
                connection.respond(ctx._early)
            else:
                ctx._slot = connection.take_slot()
        elif response is not None:
            connection.respond(api.encode(version, correlation_id, response))
        return True

    def _unsupported_api_versions(self, connection: Connection, api: _Api, correlation_id: int) -> bool:
        # KIP-511: a version we do not know is answered in version 0, so that the client can choose again.
        ctx = RequestContext(self._broker, connection, api, 0, correlation_id, None)
        connection.respond(api.encode(0, correlation_id, api.function(ctx, None)))
        return True

    def _start_serial(self, connection: Connection, ctx: RequestContext, result: Awaitable[Any]) -> None:
        ctx._slot = connection.take_slot()
        connection.begin_serial()
        task = asyncio.ensure_future(self._run_serial(connection, ctx, result))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _run_serial(self, connection: Connection, ctx: RequestContext, result: Awaitable[Any]) -> None:
        try:
            response = await result
            if response is not PENDING:
                ctx.respond(response)
        except asyncio.CancelledError:
            connection.abort()
            raise
        except Exception:
            log.exception("closing the connection from %s: a request failed", connection.peer_host)
            connection.abort()
        finally:
            if not connection.closed:
                connection.end_serial()

    async def stop(self) -> None:
        for task in list(self._tasks):
            task.cancel()
        if self._tasks:
            await asyncio.gather(*self._tasks, return_exceptions=True)
