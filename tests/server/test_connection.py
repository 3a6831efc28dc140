"""Responses leave in the order of their requests, whole, whatever is slow; limits close the right ones."""

from __future__ import annotations

import asyncio
import os
import statistics
import struct
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from kafka_compat.config.listeners import Listener
from kafka_compat.connection import Connection, Slot
from kafka_compat.server import Limits, Server
from storage.filesystem import RealFilesystem
from storage.segment import FileSlice

Dispatch = Callable[[Connection, memoryview], bool]
GENEROUS = Limits(
    request_max_bytes=10_000_000,
    idle_max_ms=600_000,
    connections_max=100,
    connections_per_ip_max=100,
    frame_deadline_ms=600_000,
)


@asynccontextmanager
async def serving(dispatch: Dispatch, limits: Limits = GENEROUS) -> AsyncIterator[tuple[Server, int]]:
    server = Server(limits, dispatch)
    _, port = server.bind(Listener("PLAINTEXT", "127.0.0.1", 0, "PLAINTEXT"))
    await server.start()
    try:
        yield server, port
    finally:
        server.stop()


def frame(body: bytes) -> bytes:
    return struct.pack(">i", len(body)) + body


async def read_frame(reader: asyncio.StreamReader) -> bytes:
    (size,) = struct.unpack(">i", await reader.readexactly(4))
    return await reader.readexactly(size)


def echo(connection: Connection, body: memoryview) -> bool:
    connection.respond([frame(bytes(body))])
    return True


async def test_pipelined_requests_are_answered_in_order() -> None:
    async with serving(echo) as (_, port):
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        bodies = [str(i).encode() * (1 + i % 50) for i in range(1000)]
        writer.write(b"".join(frame(body) for body in bodies))
        assert [await read_frame(reader) for _ in bodies] == bodies
        writer.close()


async def test_a_late_answer_holds_back_those_behind_it_but_not_their_work() -> None:
    parked: list[tuple[Connection, Slot]] = []
    seen: list[bytes] = []
    all_seen = asyncio.Event()

    def dispatch(connection: Connection, body: memoryview) -> bool:
        seen.append(bytes(body))
        if bytes(body) == b"slow":
            parked.append((connection, connection.take_slot()))
        else:
            connection.respond([frame(bytes(body))])
        if len(seen) == 3:
            all_seen.set()
        return True

    async with serving(dispatch) as (_, port):
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(frame(b"slow") + frame(b"a") + frame(b"b"))
        await all_seen.wait()
        connection, slot = parked[0]
        connection.complete(slot, [frame(b"done")])
        assert [await read_frame(reader) for _ in range(3)] == [b"done", b"a", b"b"]
        writer.close()


async def test_an_answer_behind_another_one_leaves_at_once() -> None:
    """Not when the client acknowledges the first, which takes it 40 ms when it has nothing to say."""

    def dispatch(connection: Connection, body: memoryview) -> bool:
        if bytes(body) == b"late":
            slot = connection.take_slot()
            asyncio.get_running_loop().call_later(0.002, lambda: connection.complete(slot, [frame(b"late")]))
        else:
            connection.respond([frame(bytes(body))])
        return True

    async with serving(dispatch) as (_, port):
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        seconds = []
        for _ in range(21):
            begun = time.monotonic()
            writer.write(frame(b"first") + frame(b"late"))
            assert [await read_frame(reader) for _ in range(2)] == [b"first", b"late"]
            seconds.append(time.monotonic() - begun)
        assert statistics.median(seconds) < 0.03
        writer.close()


async def test_requests_behind_a_serial_one_wait_for_it() -> None:
    events: list[str] = []
    release = asyncio.Event()
    tasks: set[asyncio.Task[None]] = set()

    def dispatch(connection: Connection, body: memoryview) -> bool:
        name = bytes(body).decode()
        if name == "serial":
            slot = connection.take_slot()
            connection.begin_serial()

            async def run() -> None:
                await release.wait()
                events.append("serial done")
                connection.complete(slot, [frame(b"serial")])
                connection.end_serial()

            tasks.add(asyncio.ensure_future(run()))
        else:
            events.append(name)
            connection.respond([frame(name.encode())])
        return True

    async with serving(dispatch) as (_, port):
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(frame(b"first") + frame(b"serial") + frame(b"behind") * 3)
        assert await read_frame(reader) == b"first"
        release.set()
        assert [await read_frame(reader) for _ in range(4)] == [b"serial"] + [b"behind"] * 3
        assert events == ["first", "serial done", "behind", "behind", "behind"]
        writer.close()


@pytest.mark.parametrize("use_sendfile", [True, False])
async def test_slices_and_bytes_never_interleave_even_for_a_slow_reader(
    tmp_path: Path, use_sendfile: bool
) -> None:
    content = os.urandom(3_000_000)
    path = tmp_path / "segment.log"
    path.write_bytes(content)
    file = RealFilesystem().open(str(path))

    def dispatch(connection: Connection, body: memoryview) -> bool:
        position, size = struct.unpack(">ii", body)
        header = struct.pack(">i", size + 8) + bytes(body)
        connection.respond([header, FileSlice(file, position, size)])
        return True

    async with serving(dispatch) as (server, port):
        server.use_sendfile = use_sendfile and server.use_sendfile
        reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=1024)
        wanted = [
            (i * 9973 % 1_000_000, size) for i, size in enumerate([1, 2_000_000, 31_999, 32_000, 900_000] * 4)
        ]
        writer.write(b"".join(frame(struct.pack(">ii", *item)) for item in wanted))
        for position, size in wanted:
            answer = await read_frame(reader)
            assert answer == struct.pack(">ii", position, size) + content[position : position + size]
        writer.close()


async def test_a_reader_that_never_reads_stops_being_read_from() -> None:
    served = 0

    def dispatch(connection: Connection, body: memoryview) -> bool:
        nonlocal served
        served += 1
        connection.respond([frame(b"x" * 100_000)])
        return True

    async with serving(dispatch) as (_, port):
        _, writer = await asyncio.open_connection("127.0.0.1", port)
        request = frame(b"y" * 1000)
        for _ in range(2000):
            writer.write(request)
        before = -1
        while before != served:
            before = served
            await asyncio.sleep(0.05)
        assert served < 2000, "the answers to all of them would be 200 MB"
        writer.transport.abort()


async def test_connections_over_the_limit_see_the_end_at_once() -> None:
    limits = Limits(10_000, 600_000, 100, 2, 600_000)
    async with serving(echo, limits) as (_, port):
        kept = [await asyncio.open_connection("127.0.0.1", port) for _ in range(2)]
        for reader, writer in kept:
            writer.write(frame(b"hello"))
            assert await read_frame(reader) == b"hello"
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        assert await reader.read() == b""
        kept[0][1].close()
        await kept[0][1].wait_closed()
        writer.close()
        kept[1][1].write(frame(b"still here"))
        assert await read_frame(kept[1][0]) == b"still here"


@pytest.mark.parametrize(
    ("limits", "sent"),
    [
        (Limits(10_000, 600_000, 100, 100, 100), frame(b"unfinished")[:-1]),
        (Limits(10_000, 600_000, 100, 100, 100), b"\0"),
        (Limits(10_000, 100, 100, 100, 600_000), frame(b"idle")),
    ],
)
async def test_unfinished_frames_and_idle_connections_end(limits: Limits, sent: bytes) -> None:
    async with serving(echo, limits) as (_, port):
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(sent)
        await asyncio.wait_for(reader.read(), 10)
        writer.close()
