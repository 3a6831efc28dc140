"""Responses on a connection: they are sent complete and in the order of the requests, whatever is slow, and
limits close only the connections that exceed them.
"""

from __future__ import annotations

import asyncio
import statistics
import time
from pathlib import Path

import pytest

from kafka_compat.network.admission import Limits
from kafka_compat.network.connection import Connection
from kafka_compat.network.framing import Frame
from kafka_compat.network.output import Slot
from tests.network.serving import LargeAnswers, Slices, echo, frame, read_frame, serving
from tests.support.waiting import until


async def test_responses_to_pipelined_requests_are_sent_in_order() -> None:
    async with serving(echo) as (_, port):
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        bodies = [str(i).encode() * (1 + i % 50) for i in range(1000)]
        writer.write(b"".join(frame(body) for body in bodies))
        assert [await read_frame(reader) for _ in bodies] == bodies
        writer.close()


async def test_a_late_response_delays_later_responses_but_not_their_processing() -> None:
    parked: list[tuple[Connection, Slot]] = []
    seen: list[bytes] = []
    all_seen = asyncio.Event()

    def dispatch(connection: Connection, body: Frame) -> bool:
        seen.append(bytes(body))
        if bytes(body) == b"slow":
            parked.append((connection, connection.add_slot(Slot())))
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


async def test_a_response_behind_another_response_is_sent_without_waiting_for_an_acknowledgement() -> None:
    """It must not wait for the client's TCP acknowledgement of the first response, which an idle client
    delays by 40 ms.
    """

    def dispatch(connection: Connection, body: Frame) -> bool:
        if bytes(body) == b"late":
            slot = connection.add_slot(Slot())
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


async def test_requests_behind_a_serial_request_wait_for_its_completion() -> None:
    events: list[str] = []
    release = asyncio.Event()
    tasks: set[asyncio.Task[None]] = set()

    def dispatch(connection: Connection, body: Frame) -> bool:
        name = bytes(body).decode()
        if name == "serial":
            slot = connection.add_slot(Slot())
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
async def test_file_slices_and_bytes_never_interleave_even_for_a_slow_reader(
    tmp_path: Path, use_sendfile: bool
) -> None:
    slices = Slices(tmp_path)
    async with serving(slices.dispatch) as (server, port):
        server.use_sendfile = use_sendfile and server.use_sendfile
        reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=1024)
        await slices.compare(reader, writer)
        writer.close()


async def test_the_broker_stops_reading_from_a_client_that_does_not_read_its_responses() -> None:
    answers = LargeAnswers()
    async with serving(answers.dispatch) as (_, port):
        _, writer = await asyncio.open_connection("127.0.0.1", port)
        await answers.leave(writer)


async def test_connections_over_the_limit_are_closed_immediately() -> None:
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
async def test_connections_that_are_idle_or_have_unfinished_frames_time_out(
    limits: Limits, sent: bytes
) -> None:
    async with serving(echo, limits) as (_, port):
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(sent)
        await asyncio.wait_for(reader.read(), 10)
        writer.close()


async def test_requests_stay_intact_while_later_requests_reuse_the_buffer() -> None:
    """Many clients each have more requests in flight than one turn serves, of every size."""

    async def client(port: int, number: int) -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        bodies = [b"%d:%d:" % (number, i) + bytes([number]) * (i * 997 % 9000) for i in range(300)]
        writer.write(b"".join(frame(body) for body in bodies))
        assert [await read_frame(reader) for _ in bodies] == bodies
        writer.close()

    async with serving(echo) as (_, port):
        await asyncio.gather(*(client(port, number) for number in range(20)))


async def test_bytes_of_responses_waiting_for_an_earlier_response_count_as_pending() -> None:
    """Responses queued behind an earlier one use memory, so no more requests are served."""
    served = 0
    parked: list[tuple[Connection, Slot]] = []

    def dispatch(connection: Connection, body: Frame) -> bool:
        nonlocal served
        if not parked:
            parked.append((connection, connection.add_slot(Slot())))
        else:
            served += 1
            connection.respond([frame(b"x" * 1_000_000)])
        return True

    async with serving(dispatch) as (server, port):
        reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=2**21)
        writer.write(frame(b"y") * 501)
        before = -1
        while before != served:
            before = served
            await asyncio.sleep(0.05)  # nothing more is served within this time
        assert 0 < served < 20
        assert server.answer_budget.used_bytes > 1_000_000
        connection, slot = parked[0]
        connection.complete(slot, [frame(b"at last")])
        assert await read_frame(reader) == b"at last"
        for _ in range(500):
            assert len(await read_frame(reader)) == 1_000_000
        assert server.answer_budget.used_bytes == 0
        writer.close()


async def test_waiting_for_memory_does_not_count_toward_the_frame_deadline(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A different connection holds the budget for most of the frame's deadline."""
    monkeypatch.setattr("kafka_compat.network.server.REAP_INTERVAL_S", 0.02)
    deadline_s = 2.0
    limits = Limits(10_000_000, 600_000, 100, 100, int(deadline_s * 1000), request_memory_bytes=50_000)
    body = b"z" * 300_000
    data = frame(body)
    loop = asyncio.get_running_loop()

    async with serving(echo, limits) as (server, port):
        first_reader, first = await asyncio.open_connection("127.0.0.1", port)
        first.write(data[:60_000])
        await until(lambda: server.request_budget.favoured is not None)
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        begun_s = loop.time()
        writer.write(data[:60_000])
        await until(lambda: server.request_budget.someone_waits)
        await asyncio.sleep(begun_s + 0.7 * deadline_s - loop.time())  # most of the deadline passes
        first.write(data[60_000:])
        assert await read_frame(first_reader) == body
        await asyncio.sleep(begun_s + 1.2 * deadline_s - loop.time())  # the deadline passes
        writer.write(data[60_000:])
        assert await read_frame(reader) == body
        first.close()
        writer.close()


async def test_memory_of_an_idle_client_is_freed_for_waiting_clients(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("kafka_compat.network.server.REAP_INTERVAL_S", 0.02)
    monkeypatch.setattr("kafka_compat.network.server.STALLED_S", 0.2)
    limits = Limits(10_000_000, 600_000, 100, 100, 600_000, request_memory_bytes=50_000)
    body = b"z" * 300_000

    async with serving(echo, limits) as (server, port):
        idle_reader, idle_writer = await asyncio.open_connection("127.0.0.1", port)
        idle_writer.write(frame(body)[:60_000])
        await until(lambda: server.request_budget.favoured is not None)
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(frame(body))
        assert await read_frame(reader) == body
        assert await idle_reader.read() == b""
        writer.close()
        await until(lambda: not server.connections)
        assert server.request_budget.used_bytes == 0


async def test_requests_before_an_invalid_frame_get_responses() -> None:
    def dispatch(connection: Connection, body: Frame) -> bool:
        return bytes(body) != b"bad" and echo(connection, body)

    async with serving(dispatch) as (_, port):
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(frame(b"good") + frame(b"bad"))
        assert await reader.read() == frame(b"good")
        writer.close()


async def test_a_client_that_closes_its_sending_side_still_gets_its_responses() -> None:
    async with serving(echo) as (server, port):
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(frame(b"q" * 500_000) * 10)
        writer.write_eof()
        for _ in range(10):
            assert await read_frame(reader) == b"q" * 500_000
        assert await reader.read() == b""
        writer.close()
        await until(lambda: not server.connections)
