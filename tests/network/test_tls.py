"""TLS connections: the data is the same in both directions, and failed handshakes are logged."""

from __future__ import annotations

import asyncio
import logging
import random
import socket
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from kafka_compat.network.admission import Limits
from kafka_compat.network.connection import Connection
from kafka_compat.network.entrance import ListenerEntrance, TlsTerms
from kafka_compat.network.framing import Frame
from kafka_compat.network.server import Server
from kafka_compat.security.principal import ANONYMOUS, Principal
from tests.network.serving import GENEROUS, Dispatch, LargeAnswers, Slices, echo, frame, read_frame, serving
from tests.security.authority import Authority
from tests.support.process import wait_until

CLIENT = Principal("User", "the client")
Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]


class World:
    """A server with TLS, and its clients."""

    def __init__(self, directory: Path) -> None:
        self.authority = Authority(directory)
        files = self.authority.sign("server")
        self.context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self.context.load_cert_chain(files.store)
        self.context.load_verify_locations(self.authority.file)
        self.context.verify_mode = ssl.CERT_OPTIONAL
        self.refusal: str | None = None
        self.server: Server
        self.port = 0

    def client(self, certificate: str = "") -> ssl.SSLContext:
        context = ssl.create_default_context(cafile=str(self.authority.file))
        if certificate:
            context.load_cert_chain(self.authority.sign(certificate).store)
        return context

    @asynccontextmanager
    async def serving(self, dispatch: Dispatch, limits: Limits = GENEROUS) -> AsyncIterator[None]:
        terms = TlsTerms(lambda: self.context, lambda session: self.refusal, lambda certificate: CLIENT)
        async with serving(dispatch, limits) as (self.server, self.port):
            self.server.entrances["PLAINTEXT"] = ListenerEntrance(self.server, terms, None)
            yield

    async def connect(self, context: ssl.SSLContext | None = None) -> Streams:
        return await asyncio.open_connection(
            "127.0.0.1", self.port, ssl=context or self.client(), limit=2**16
        )


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
async def test_frames_of_all_sizes_are_received_and_sent_intact(
    world: World, version: ssl.TLSVersion
) -> None:
    chance = random.Random(1)
    sizes = [1, 5, 16_383, 16_384, 16_385, 100, 300_000, 262_144, 3_000_000]
    sizes += [chance.randint(1, 70_000) for _ in range(100)]
    bodies = [chance.randbytes(size) for size in sizes]
    context = world.client()
    context.minimum_version = context.maximum_version = version

    async with world.serving(echo):
        reader, writer = await world.connect(context)

        async def send() -> None:
            stream = b"".join(frame(body) for body in bodies)
            position = 0
            while position < len(stream):
                size = chance.choice([1, 7, 5_000, 100_000, 1_000_000])
                writer.write(stream[position : position + size])
                await writer.drain()
                position += size

        sending = asyncio.create_task(send())
        for body in bodies:
            assert await read_frame(reader) == body
        await sending
        writer.close()


async def test_file_slices_arrive_intact_at_a_slow_reader(world: World, tmp_path: Path) -> None:
    slices = Slices(tmp_path)
    async with world.serving(slices.dispatch):
        reader, writer = await asyncio.open_connection(
            "127.0.0.1", world.port, ssl=world.client(), limit=1024
        )
        await slices.compare(reader, writer)
        (connection,) = world.server.connections
        assert connection.answer_bytes == 0
        writer.close()


async def test_a_client_is_identified_by_its_certificate(world: World) -> None:
    principals: list[Principal] = []

    def dispatch(connection: Connection, body: Frame) -> bool:
        principals.append(connection.principal)
        return echo(connection, body)

    async with world.serving(dispatch):
        for context in (world.client("somebody"), world.client()):
            reader, writer = await world.connect(context)
            writer.write(frame(b"x"))
            await read_frame(reader)
            writer.close()
    assert principals == [CLIENT, ANONYMOUS]


async def test_every_kind_of_disconnection_removes_the_client(world: World) -> None:
    async with world.serving(echo):
        for ends_properly in (True, False):
            reader, writer = await world.connect()
            writer.write(frame(b"x"))
            await read_frame(reader)
            if ends_properly:
                writer.close()
                await writer.wait_closed()
            else:
                writer.transport.abort()
            await asyncio.to_thread(wait_until, lambda: not world.server.connections, 10, "the end", 0.01)


async def test_requests_sent_right_before_a_disconnection_are_served(world: World) -> None:
    """A client may send and disconnect immediately, for example with acks=0."""
    seen: list[bytes] = []
    all_seen = asyncio.Event()

    def dispatch(connection: Connection, body: Frame) -> bool:
        seen.append(bytes(body))
        if len(seen) == 300:
            all_seen.set()
        return True

    async with world.serving(dispatch):
        _, writer = await world.connect()
        for number in range(300):
            writer.write(frame(str(number).encode() * 300))
        writer.close()
        async with asyncio.timeout(10):
            await all_seen.wait()
    assert seen == [str(number).encode() * 300 for number in range(300)]


STRANGERS = {
    b"GET / HTTP/1.1\r\n\r\n": "HTTP request",
    frame(b"\0\x12\0\0\0\0\0\1\0\4test"): "this is not TLS",
}


@pytest.mark.parametrize("data", STRANGERS)
async def test_an_untrusted_client_is_disconnected_and_logged(
    world: World, data: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    async with world.serving(echo):
        reader, writer = await asyncio.open_connection("127.0.0.1", world.port)
        writer.write(data)
        async with asyncio.timeout(10):
            await reader.read()
        writer.close()
    assert STRANGERS[data] in caplog.text and "127.0.0.1" in caplog.text


@pytest.mark.parametrize("name", ["Test CA", "Another CA"])
async def test_a_client_that_does_not_trust_the_broker_is_logged(
    world: World, caplog: pytest.LogCaptureFixture, tmp_path: Path, name: str
) -> None:
    another = ssl.create_default_context(cafile=str(Authority(tmp_path / "other", name).file))

    def distrust() -> None:
        with (
            socket.create_connection(("127.0.0.1", world.port)) as connection,
            pytest.raises(ssl.SSLCertVerificationError),
        ):
            another.wrap_socket(connection, server_hostname="localhost")

    async with world.serving(echo):
        # Do not use asyncio's client, which disconnects without sending an alert.
        await asyncio.to_thread(distrust)
        await asyncio.to_thread(wait_until, lambda: "does not trust" in caplog.text, 10, "a warning", 0.01)
        assert not any(record.levelno > logging.WARNING for record in caplog.records)


async def test_a_rejected_connection_is_closed(world: World, caplog: pytest.LogCaptureFixture) -> None:
    world.refusal = "of a reason"
    async with world.serving(echo):
        reader, writer = await world.connect()
        writer.write(frame(b"x"))
        async with asyncio.timeout(10):
            assert await reader.read() == b""
        writer.close()
    assert "of a reason" in caplog.text


async def test_an_unfinished_handshake_is_subject_to_the_frame_deadline(world: World) -> None:
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    tls = world.client().wrap_bio(incoming, outgoing, server_hostname="localhost")
    with pytest.raises(ssl.SSLWantReadError):
        tls.do_handshake()
    hello = outgoing.read()
    limits = GENEROUS._replace(frame_deadline_ms=300)
    async with world.serving(echo, limits):
        for part in (b"", hello[:1], hello[:-1], hello):
            reader, writer = await asyncio.open_connection("127.0.0.1", world.port)
            writer.write(part)
            async with asyncio.timeout(10):
                await reader.read()
            writer.close()
        # After the handshake, the client may be idle for longer than the handshake timeout.
        reader, writer = await world.connect()
        await asyncio.sleep(1.5)  # longer than a handshake may take
        writer.write(frame(b"x"))
        assert await read_frame(reader) == b"x"
        writer.close()


async def test_the_broker_stops_reading_from_a_client_that_does_not_read_its_responses(world: World) -> None:
    answers = LargeAnswers()
    async with world.serving(answers.dispatch):
        _, writer = await world.connect()
        await answers.leave(writer)


async def test_a_slow_handshake_does_not_delay_other_clients(world: World) -> None:
    async with world.serving(echo):
        quiet = [socket.create_connection(("127.0.0.1", world.port)) for _ in range(50)]
        reader, writer = await world.connect()
        writer.write(frame(b"x"))
        assert await read_frame(reader) == b"x"
        writer.close()
        for one in quiet:
            one.close()


@pytest.mark.parametrize("data", [b"\0\0\0\x0a\0\x12\0\0\0\0\0\x01\xff\xff", b"GET / HTTP/1.1\r\n\r\n"])
async def test_a_client_without_tls_receives_an_alert(world: World, data: bytes) -> None:
    async with world.serving(echo):
        reader, writer = await asyncio.open_connection("127.0.0.1", world.port)
        writer.write(data)
        # kafka-go tells its users that the broker expects TLS if it receives this alert.
        assert await reader.read(7) == bytes.fromhex("15030300020250")
        writer.close()


async def test_a_port_check_is_not_logged(world: World, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING)
    async with world.serving(echo):
        _, writer = await asyncio.open_connection("127.0.0.1", world.port)
        await asyncio.to_thread(wait_until, lambda: world.server.connections, 10, "the connection", 0.01)
        writer.close()
        await asyncio.to_thread(wait_until, lambda: not world.server.connections, 10, "the end", 0.01)
    assert not caplog.messages


@pytest.mark.parametrize(
    ("code", "reason"),
    [(46, "or the certificate does not contain the name"), (45, "has expired"), (48, "does not trust this")],
)
async def test_a_plain_alert_in_the_handshake_is_understood(
    world: World, caplog: pytest.LogCaptureFixture, code: int, reason: str
) -> None:
    """Old Java clients send their alert in plain text, after the server has switched to encryption."""
    caplog.set_level(logging.WARNING)
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    client = world.client().wrap_bio(incoming, outgoing, server_hostname="localhost")
    async with world.serving(echo):
        reader, writer = await asyncio.open_connection("127.0.0.1", world.port)
        with pytest.raises(ssl.SSLWantReadError):
            client.do_handshake()
        writer.write(outgoing.read())
        assert await reader.read(1)
        writer.write(bytes([0x15, 3, 3, 0, 2, 2, code]))
        await asyncio.to_thread(wait_until, lambda: not world.server.connections, 10, "the end", 0.01)
        writer.close()
    assert reason in caplog.text


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
async def test_an_old_java_client_that_rejects_the_certificate_is_understood(
    world: World, caplog: pytest.LogCaptureFixture, version: ssl.TLSVersion
) -> None:
    """Kafka's clients before 3.0 send the whole buffer that ends with their alert: it begins with their first
    message. In TLS 1.3, the alert is encrypted.
    """
    caplog.set_level(logging.WARNING)
    context = world.client()
    context.maximum_version = version
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    client = context.wrap_bio(incoming, outgoing, server_hostname="localhost")
    async with world.serving(echo):
        reader, writer = await asyncio.open_connection("127.0.0.1", world.port)
        with pytest.raises(ssl.SSLWantReadError):
            client.do_handshake()
        hello = outgoing.read()
        writer.write(hello)
        assert await reader.read(1)
        if version is ssl.TLSVersion.TLSv1_2:
            writer.write(hello.ljust(16_709, b"\0") + bytes([0x15, 3, 3, 0, 2, 2, 46]))
        else:
            change = bytes([0x14, 3, 3, 0, 1, 1])
            writer.write(change)
            writer.write((change + hello[len(change) :]).ljust(16_709, b"\0"))
        await asyncio.to_thread(wait_until, lambda: not world.server.connections, 10, "the end", 0.01)
        writer.close()
    assert "the client rejects this broker's certificate: it does not trust the CA" in caplog.text


async def test_an_expired_certificate_of_the_broker_is_the_reason(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING)
    async with world.serving(echo):
        terms = TlsTerms(
            lambda: world.context, lambda session: None, lambda certificate: CLIENT, lambda: "expired on X"
        )
        world.server.entrances["PLAINTEXT"] = ListenerEntrance(world.server, terms, None)
        with pytest.raises(ssl.SSLCertVerificationError):
            await world.connect(ssl.create_default_context())
        await asyncio.to_thread(wait_until, lambda: bool(caplog.messages), 10, "the reason", 0.01)
    assert "this broker's certificate expired on X: replace it" in caplog.text
