"""Muted connections (KIP-219): requests that wait, the memory they use, and the end of the mute."""

from __future__ import annotations

import asyncio
import os

from kafka_compat.network.connection import Connection
from kafka_compat.network.framing import FIRST_BYTES, Frame
from kafka_compat.network.server import Server
from tests.network.serving import GENEROUS, Dispatch, frame, read_frame, serving
from tests.support.waiting import until

LONG_S = 600.0


def muting(for_s: float) -> tuple[list[float], Dispatch]:
    """Return the times of requests, and a dispatcher that responds and mutes the connection for `for_s` after
    the first request.
    """
    served: list[float] = []

    def dispatch(connection: Connection, body: Frame) -> bool:
        served.append(asyncio.get_running_loop().time())
        connection.respond([frame(bytes(body[:10]))])
        if len(served) == 1:
            connection.mute(for_s)
        return True

    return served, dispatch


def only(server: Server) -> Connection:
    (connection,) = server.connections
    return connection


async def test_requests_wait_until_the_connection_is_unmuted() -> None:
    served, dispatch = muting(0.3)
    async with serving(dispatch) as (_, port):
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(frame(b"one") + frame(b"two"))
        assert await read_frame(reader) == b"one", "the response is sent immediately"
        writer.write(frame(b"three"))
        assert [await read_frame(reader) for _ in range(2)] == [b"two", b"three"]
        assert served[1] - served[0] >= 0.3
        writer.close()


async def test_the_longest_of_several_mutes_applies() -> None:
    def dispatch(connection: Connection, body: Frame) -> bool:
        connection.respond([frame(bytes(body))])
        if bytes(body) == b"one":
            for for_s in (0.1, 0.4, 0.2):
                connection.mute(for_s)
        return True

    async with serving(dispatch) as (_, port):
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        began_s = asyncio.get_running_loop().time()
        writer.write(frame(b"one") + frame(b"two"))
        assert [await read_frame(reader) for _ in range(2)] == [b"one", b"two"]
        assert 0.4 <= asyncio.get_running_loop().time() - began_s < 2
        writer.close()


async def test_a_disconnection_during_a_mute_is_detected_immediately() -> None:
    _, dispatch = muting(LONG_S)
    async with serving(dispatch) as (server, port):
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(frame(b"one"))
        await read_frame(reader)
        writer.close()
        await until(lambda: not server.connections)


async def test_a_large_request_waits_in_the_sockets_buffer_while_its_connection_is_muted() -> None:
    _, dispatch = muting(1.0)
    large = os.urandom(5_000_000)
    async with serving(dispatch) as (server, port):
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(frame(b"one"))
        await read_frame(reader)
        writer.write(frame(large))
        connection = only(server)
        await until(lambda: connection._reader.held_bytes)
        for _ in range(20):
            await asyncio.sleep(0.02)  # held bytes are watched for the time of the mute
            assert connection._reader.held_bytes <= FIRST_BYTES
        assert await read_frame(reader) == large[:10], "it is read and served after the mute"
        writer.close()


async def test_reading_of_a_partial_frame_stops_while_its_connection_is_muted() -> None:
    _, dispatch = muting(1.0)
    large = os.urandom(5_000_000)
    async with serving(dispatch) as (server, port):
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        # The first bytes of the large request arrive together with the request before it.
        writer.write(frame(b"one") + frame(large)[:100])
        await read_frame(reader)
        connection = only(server)
        writer.write(frame(large)[100:])
        for _ in range(20):
            await asyncio.sleep(0.02)  # held bytes are watched for the time of the mute
            assert connection._reader.held_bytes <= 2 * FIRST_BYTES
        assert await read_frame(reader) == large[:10]
        writer.close()


async def test_a_mute_does_not_keep_an_idle_connection_alive() -> None:
    """The idle timeout applies whether or not the client has sent more requests."""
    for more in (b"", frame(b"two")):
        _, dispatch = muting(LONG_S)
        async with serving(dispatch, GENEROUS._replace(idle_max_ms=300)) as (_, port):
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(frame(b"one") + more)
            assert await read_frame(reader) == b"one"
            assert await asyncio.wait_for(reader.read(), 5) == b""
            writer.close()


async def test_a_server_with_muted_connections_can_stop() -> None:
    _, dispatch = muting(LONG_S)
    async with serving(dispatch) as (server, port):
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(frame(b"one") + frame(b"two"))
        await read_frame(reader)
        server.stop()
        assert await reader.read() == b""
        writer.close()
