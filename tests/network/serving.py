"""A listener without a broker, and the client side of its connections."""

from __future__ import annotations

import asyncio
import os
import struct
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

from kafka_compat.config.listeners import Listener
from kafka_compat.lazy import Lazy
from kafka_compat.network.admission import Limits
from kafka_compat.network.connection import Connection
from kafka_compat.network.framing import Frame
from kafka_compat.network.server import Server
from kafka_compat.quotas.connection_rates import ConnectionRates
from kafka_compat.quotas.rates import Windows
from kafka_compat.storage.filesystem import RealFilesystem
from kafka_compat.storage.segments.file_slice import FileSlice

Dispatch = Callable[[Connection, Frame], bool]

GENEROUS = Limits(
    request_max_bytes=10_000_000,
    idle_max_ms=600_000,
    connections_max=100,
    connections_per_ip_max=100,
    frame_deadline_ms=600_000,
)


@asynccontextmanager
async def serving(dispatch: Dispatch, limits: Limits = GENEROUS) -> AsyncIterator[tuple[Server, int]]:
    server = Server(limits, Lazy(lambda: ConnectionRates(Windows(11, 1000))))
    _, port = server.bind(Listener("PLAINTEXT", "127.0.0.1", 0, "PLAINTEXT"))
    await server.start(dispatch)
    try:
        yield server, port
    finally:
        server.stop()


def frame(body: bytes) -> bytes:
    return struct.pack(">i", len(body)) + body


async def read_frame(reader: asyncio.StreamReader) -> bytes:
    (size,) = struct.unpack(">i", await reader.readexactly(4))
    return await reader.readexactly(size)


def echo(connection: Connection, body: Frame) -> bool:
    connection.respond([frame(bytes(body))])
    return True


class Slices:
    """Responds with slices of a file of random bytes, which the client compares."""

    def __init__(self, folder: Path) -> None:
        self._content = os.urandom(3_000_000)
        path = folder / "segment.log"
        path.write_bytes(self._content)
        self._file = RealFilesystem().open(str(path))

    def dispatch(self, connection: Connection, body: Frame) -> bool:
        position, size = struct.unpack(">ii", body)
        header = struct.pack(">i", size + 8) + bytes(body)
        connection.respond([header, FileSlice(self._file, position, size)])
        return True

    async def compare(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        sizes = [1, 2_000_000, 31_999, 32_000, 900_000] * 4
        wanted = [(i * 9973 % 1_000_000, size) for i, size in enumerate(sizes)]
        writer.write(b"".join(frame(struct.pack(">ii", *item)) for item in wanted))
        for position, size in wanted:
            answer = await read_frame(reader)
            assert answer == struct.pack(">ii", position, size) + self._content[position : position + size]


class LargeAnswers:
    """Responds with 100 kB, and has a client that does not read."""

    def __init__(self) -> None:
        self._served = 0

    def dispatch(self, connection: Connection, body: Frame) -> bool:
        self._served += 1
        connection.respond([frame(b"x" * 100_000)])
        return True

    async def leave(self, writer: asyncio.StreamWriter) -> None:
        request = frame(b"y" * 1000)
        for _ in range(2000):
            writer.write(request)
        before = -1
        while before != self._served:
            before = self._served
            await asyncio.sleep(0.1)  # nothing more is served within this time
        assert self._served < 2000, "all responses together would be 200 MB"
        writer.transport.abort()
