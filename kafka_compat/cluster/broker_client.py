"""One connection to another broker, over which requests are sent without asking for its versions first.

Rules
1. Brokers of a cluster speak the versions of inter.broker.protocol.version, so there is no discovery.
2. Requests are pipelined; answers come in the order of the requests.
3. A connection that breaks, or an answer that is late, fails every request that is under way with
   ConnectionError: nobody knows whether the other side has carried them out. The next request connects again,
   after a backoff that doubles while the other side cannot be reached.
"""

from __future__ import annotations

import asyncio
from collections import deque
from struct import Struct
from typing import Any

from kafka_compat.protocol import codec, messages
from kafka_compat.protocol.api_keys import ApiKey
from kafka_compat.protocol.headers import (
    RequestHeader,
    decode_response_header,
    encode_request_header,
)

RECONNECT_BACKOFF_MS = 50
RECONNECT_BACKOFF_MAX_MS = 1000
CONNECT_TIMEOUT_MS = 10_000
_READ_LIMIT_BYTES = 1024 * 1024
_SIZE = Struct(">i")


class BrokerClient:
    """See the rules above. Connects when the first request is sent."""

    def __init__(
        self,
        host: str,
        port: int,
        client_id: str,
        *,
        request_timeout_ms: int = 30_000,
        connect_timeout_ms: int = CONNECT_TIMEOUT_MS,
    ) -> None:
        self.host = host
        self.port = port
        self._client_id = client_id
        self._request_timeout_s = request_timeout_ms / 1000
        self._connect_timeout_s = connect_timeout_ms / 1000
        self._backoff_ms = 0
        self._connecting = asyncio.Lock()
        self._writer: asyncio.StreamWriter | None = None
        self._reading: asyncio.Task[None] | None = None
        self._correlation_id = 0
        self._waiting: deque[tuple[int, ApiKey, int, asyncio.Future[Any]]] = deque()
        self._closed = False

    async def send(self, api_key: ApiKey, version: int, request: Any, timeout_ms: int | None = None) -> Any:
        """The response to a request. Byte fields of it are views of the frame that it came in.

        `timeout_ms` takes the place of the client's own. Raises ConnectionError when there is no connection,
        or it broke or was given up before the answer came; MalformedRequest when the answer cannot be read.
        """
        writer = self._writer or await self._connect()
        self._correlation_id = correlation_id = (self._correlation_id + 1) & 0x7FFF_FFFF
        header = encode_request_header(RequestHeader(api_key, version, correlation_id, self._client_id))
        body = codec.encode(request, version)
        answer: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self._waiting.append((correlation_id, api_key, version, answer))
        writer.write(b"".join((_SIZE.pack(len(header) + len(body)), header, body)))
        timeout_s = self._request_timeout_s if timeout_ms is None else timeout_ms / 1000
        try:
            async with asyncio.timeout(timeout_s):
                return await answer
        except TimeoutError:
            self._drop(writer, ConnectionError(f"no answer from {self._name} within {timeout_s} s"))
            raise ConnectionError(f"no answer from {self._name} within {timeout_s} s") from None

    async def close(self) -> None:
        """Close the connection; requests under way and later ones fail with ConnectionError."""
        self._closed = True
        if self._writer is not None:
            self._drop(self._writer, ConnectionError("the client was closed"))
        if self._reading is not None:
            self._reading.cancel()
            await asyncio.gather(self._reading, return_exceptions=True)

    @property
    def _name(self) -> str:
        return f"{self.host}:{self.port}"

    async def _connect(self) -> asyncio.StreamWriter:
        async with self._connecting:
            if self._closed:
                raise ConnectionError("the client was closed")
            if self._writer is not None:
                return self._writer
            if self._backoff_ms:
                await asyncio.sleep(self._backoff_ms / 1000)
            self._backoff_ms = min(max(2 * self._backoff_ms, RECONNECT_BACKOFF_MS), RECONNECT_BACKOFF_MAX_MS)
            try:
                async with asyncio.timeout(self._connect_timeout_s):
                    reader, writer = await asyncio.open_connection(
                        self.host, self.port, limit=_READ_LIMIT_BYTES
                    )
            except OSError as error:
                raise ConnectionError(f"cannot connect to {self._name}: {error}") from error
            if self._closed:
                writer.transport.abort()
                raise ConnectionError("the client was closed")
            self._writer = writer
            self._reading = asyncio.get_running_loop().create_task(self._read(reader, writer))
            return writer

    async def _read(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                (size,) = _SIZE.unpack(await reader.readexactly(_SIZE.size))
                if size < _SIZE.size:
                    raise ConnectionError(f"{self._name} announced an answer of {size} bytes")
                self._answered(await reader.readexactly(size))
                self._backoff_ms = 0
        except (OSError, asyncio.IncompleteReadError) as error:
            self._drop(writer, ConnectionError(f"the connection to {self._name} broke: {error}"))

    def _answered(self, frame: bytes) -> None:
        if not self._waiting:
            raise ConnectionError(f"{self._name} answered what it was not asked")
        expected, api_key, version, answer = self._waiting.popleft()
        try:
            correlation_id, position = decode_response_header(api_key, version, frame)
            if correlation_id != expected:
                raise ConnectionError(f"{self._name} answered {correlation_id} in place of {expected}")
            response = codec.decode(messages.response_class(api_key), version, frame, position)
        except codec.MalformedRequest as error:
            if not answer.done():
                answer.set_exception(error)
            return
        except ConnectionError as error:
            if not answer.done():
                answer.set_exception(error)
            raise
        if not answer.done():
            answer.set_result(response)

    def _drop(self, writer: asyncio.StreamWriter, error: ConnectionError) -> None:
        """Give up a connection; nothing when it was given up before."""
        if self._writer is not writer:
            return
        self._writer = None
        writer.transport.abort()
        waiting, self._waiting = self._waiting, deque()
        for *_, answer in waiting:
            if not answer.done():
                answer.set_exception(error)
                # Whoever waited may have been cancelled; nobody is to hear of it then.
                answer.exception()
