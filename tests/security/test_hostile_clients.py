"""Invalid and slow handshakes, floods, and tokens of any size do not disturb other clients of a broker.

During each attack, a client on another listener is served within 50 ms, and the broker's memory stays
bounded. The log contains no tracebacks and no passwords.
"""

from __future__ import annotations

import random
import shutil
import socket
import ssl
import struct
import subprocess
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from kafka_compat.protocol.api_keys import ApiKey
from tests.conformance.wire import encode, frame
from tests.security.authority import Authority
from tests.security.logins import log_in
from tests.security.secured import USERS, listeners, store_users
from tests.support.bystander import Bystander
from tests.support.campaign import rounds
from tests.support.servers import KafkaCompatBroker

STALL_MS = 50.0
MIB = 1024 * 1024
MEMORY_BYTES_MAX = 512 * MIB
SEED = 20260202


class Target:
    """The attacked broker, with the ports of its listeners."""

    def __init__(self, directory: Path) -> None:
        self.authority = Authority(directory / "ca")
        settings, self.ports = listeners(self.authority, "target")
        settings["connection.failed.authentication.delay.ms"] = "0"
        settings["kafka.compat.frame.timeout.ms"] = "5000"
        self.broker = KafkaCompatBroker(directory, settings, port=self.ports["PLAINTEXT"])
        self.broker.start()
        store_users(self.broker.address)

    def connect(self, listener: str) -> socket.socket:
        return socket.create_connection(("127.0.0.1", self.ports[listener]), 10)

    def context(self) -> ssl.SSLContext:
        return ssl.create_default_context(cafile=str(self.authority.file))


@pytest.fixture(scope="module")
def target(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Target]:
    found = Target(tmp_path_factory.mktemp("target"))
    yield found
    found.broker.stop()
    log = found.broker.log.read_text()
    assert "Traceback" not in log
    assert not any(password in log for password in USERS.values())


def beside(target: Target, attack: Callable[[], None]) -> None:
    """Run an attack, and check the latency of a bystander on the PLAINTEXT listener, the broker's memory, and
    that TLS clients can still connect.
    """
    before = target.broker.process.resident_bytes()
    with Bystander(target.ports["PLAINTEXT"], target.broker.pid) as bystander:
        attack()
    assert bystander.worst_ms < STALL_MS
    assert target.broker.process.resident_bytes() - before < MEMORY_BYTES_MAX
    with target.connect("SAFE") as connection:
        assert target.context().wrap_socket(connection, server_hostname="localhost").version()


def drained(connection: socket.socket) -> None:
    """Read until the broker closes the connection, or sends nothing for 50 ms."""
    connection.settimeout(0.05)
    try:
        while connection.recv(65536):
            pass
    except OSError:
        pass


def hello(target: Target) -> bytes:
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    tls = target.context().wrap_bio(incoming, outgoing, server_hostname="localhost")
    with pytest.raises(ssl.SSLWantReadError):
        tls.do_handshake()
    return outgoing.read()


def mutated(chance: random.Random, data: bytes) -> bytes:
    found = bytearray(data)
    for _ in range(chance.randint(1, 4)):
        kind = chance.randrange(4)
        at = chance.randrange(len(found))
        if kind == 0:
            found[at] ^= 1 << chance.randrange(8)
        elif kind == 1:
            del found[at : at + chance.randint(1, 20)]
        elif kind == 2:
            found[at:at] = chance.randbytes(chance.randint(1, 20))
        else:
            found[at : at + 2] = chance.randbytes(2)
        if not found:
            found = bytearray(b"\x16")
    return bytes(found)


@pytest.mark.parametrize("listener", ["SSL", "SAFE"])
def test_mutated_tls_handshakes_do_not_affect_other_clients(target: Target, listener: str) -> None:
    chance = random.Random(SEED)
    good = hello(target)

    def attack() -> None:
        for _ in range(rounds(200, 50_000)):
            connection = target.connect(listener)
            connection.sendall(mutated(chance, good))
            if chance.random() < 0.5:
                connection.settimeout(0.02)
                try:
                    connection.recv(65536)
                    connection.sendall(mutated(chance, good))
                except OSError:
                    pass
            connection.close()

    beside(target, attack)


def test_mutated_tls_records_do_not_affect_other_clients(target: Target) -> None:
    """The TLS handshake is valid, and the encrypted records after it are modified."""
    chance = random.Random(SEED)

    def attack() -> None:
        for _ in range(rounds(50, 5_000)):
            incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
            tls = target.context().wrap_bio(incoming, outgoing, server_hostname="localhost")
            connection = target.connect("SAFE")
            while True:
                try:
                    tls.do_handshake()
                    break
                except ssl.SSLWantReadError:
                    connection.sendall(outgoing.read())
                    incoming.write(connection.recv(65536))
            connection.sendall(outgoing.read())
            tls.write(encode(ApiKey.API_VERSIONS, 0, {}) * 5)
            connection.sendall(mutated(chance, outgoing.read()))
            drained(connection)
            connection.close()

    beside(target, attack)


def test_mutated_sasl_conversations_do_not_affect_other_clients(target: Target) -> None:
    chance = random.Random(SEED)
    token = b"n,,n=alice,r=abcdefghijkl"
    frames = [
        encode(ApiKey.API_VERSIONS, 3, {"client_software_name": "a", "client_software_version": "1"}),
        encode(ApiKey.SASL_HANDSHAKE, 1, {"mechanism": "SCRAM-SHA-256"}),
        encode(ApiKey.SASL_AUTHENTICATE, 2, {"auth_bytes": token}),
        encode(ApiKey.METADATA, 9, {"topics": []}),
        frame(token),
    ]

    def attack() -> None:
        for _ in range(rounds(300, 50_000)):
            connection = target.connect("SASL")
            stream = b"".join(chance.choice(frames) for _ in range(chance.randint(1, 4)))
            connection.sendall(mutated(chance, stream) if chance.random() < 0.8 else stream)
            connection.settimeout(0.01)
            with suppress(OSError):
                connection.recv(65536)
            connection.close()

    beside(target, attack)


@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"])
def test_tokens_of_every_size_are_accepted_or_rejected(target: Target, mechanism: str) -> None:
    """The size of tokens before authentication is bounded, and so is the time to process them."""
    sizes = [0, 1, 100, 16_384, 100_000, 524_000]
    shapes = [b"n,,n=", b"a=", b"\0", b"n,,n=a,r=", b"=2C", b"n,a=b,n=b,r=x,m=", b"\xff"]

    def attack() -> None:
        for size in sizes:
            for shape in shapes:
                with target.connect("SASL") as connection:
                    connection.sendall(encode(ApiKey.SASL_HANDSHAKE, 1, {"mechanism": mechanism}))
                    connection.recv(65536)
                    token = (shape * (size // len(shape) + 1))[:size]
                    connection.sendall(encode(ApiKey.SASL_AUTHENTICATE, 2, {"auth_bytes": token}))
                    drained(connection)

    beside(target, attack)


@pytest.mark.parametrize("listener", ["SASL", "SAFE"])
def test_frames_that_are_too_large_close_the_connection_immediately(target: Target, listener: str) -> None:
    with target.connect(listener) as connection:
        stream: socket.socket = connection
        if listener == "SAFE":
            stream = target.context().wrap_socket(connection, server_hostname="localhost")
        stream.settimeout(5)
        stream.sendall(struct.pack(">i", 524_289))
        with suppress(ConnectionError):
            assert stream.recv(1) == b""


def test_many_unfinished_frames_do_not_affect_other_clients(target: Target) -> None:
    """A frame has at most 524,288 bytes. Its buffer grows with the received data, until the frame timeout."""
    before = target.broker.process.resident_bytes()

    def attack() -> None:
        half = struct.pack(">i", 524_288) + b"x" * 1000
        connections = [target.connect("SASL") for _ in range(200)]
        for connection in connections:
            connection.sendall(half)
        assert target.broker.process.resident_bytes() - before < 64 * MIB
        for connection in connections:
            connection.settimeout(20)
            assert connection.recv(1) == b"", "the connection is open after the frame timeout"
            connection.close()

    beside(target, attack)


def test_many_slow_handshakes_do_not_affect_other_clients(target: Target) -> None:
    start = hello(target)

    def attack() -> None:
        connections = [target.connect("SSL") for _ in range(200)]
        for at in range(0, 40, 8):
            for connection in connections:
                connection.sendall(start[at : at + 8])
        for connection in connections:
            connection.settimeout(20)
            with suppress(ConnectionError):
                assert connection.recv(1) == b""
            connection.close()

    beside(target, attack)


def test_a_flood_of_handshakes_does_not_affect_other_clients(target: Target) -> None:
    def attack() -> None:
        for _ in range(rounds(200, 5_000)):
            with target.connect("SAFE") as connection:
                target.context().wrap_socket(connection, server_hostname="localhost").close()

    beside(target, attack)


def test_a_flood_of_wrong_passwords_does_not_affect_other_clients(target: Target) -> None:
    def attack() -> None:
        for _ in range(rounds(300, 20_000)):
            with target.connect("SASL") as connection:
                connection.sendall(encode(ApiKey.SASL_HANDSHAKE, 1, {"mechanism": "PLAIN"}))
                connection.recv(65536)
                token = b"\0alice\0wrong"
                connection.sendall(encode(ApiKey.SASL_AUTHENTICATE, 2, {"auth_bytes": token}))
                connection.recv(65536)

    beside(target, attack)


@pytest.mark.skipif(shutil.which("openssl") is None, reason="openssl is not installed")
@pytest.mark.parametrize(("version", "key"), [("-tls1_2", "R"), ("-tls1_3", "K"), ("-tls1_3", "k")])
def test_renegotiation_and_key_updates_do_not_affect_other_clients(
    target: Target, version: str, key: str
) -> None:
    """TLS 1.2 renegotiation is disabled. TLS 1.3 key updates are allowed in any number."""

    def attack() -> None:
        port = target.ports["SAFE"]
        line = ["openssl", "s_client", version, "-connect", f"127.0.0.1:{port}", "-quiet"]
        if key != "R":
            line.remove("-quiet")
        subprocess.run(line, input=f"{key}\n" * 200, capture_output=True, text=True, timeout=30)

    beside(target, attack)


def test_a_client_may_send_large_requests_after_its_login(target: Target) -> None:
    """Only requests of clients that are not authenticated yet are limited to 512 KiB."""
    name, password = next(iter(USERS.items()))
    login = log_in(f"127.0.0.1:{target.ports['SASL']}", name, password)
    topics = [{"name": f"{number:0200}"} for number in range(3_000)]
    asked = {"topics": topics, "allow_auto_topic_creation": False}
    with login.connection as connection:
        assert len(connection.ask(ApiKey.METADATA, 4, asked)["topics"]) == len(topics)
