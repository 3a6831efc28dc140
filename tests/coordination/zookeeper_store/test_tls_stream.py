"""A TLS stream with select(): it is readable exactly when a plain stream would be."""

from __future__ import annotations

import selectors
import socket
import ssl
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kafka_compat.coordination.zookeeper_store.kazoo_loop import TlsStream, select_streams
from tests.support.certificates import authority


def plain_select(
    reading: Any, writing: Any, failing: Any, timeout: float | None
) -> tuple[list[Any], list[Any], list[Any]]:
    with selectors.DefaultSelector() as selector:
        for item in reading:
            selector.register(item, selectors.EVENT_READ)
        return [key.fileobj for key, _ in selector.select(timeout)], [], []


class Ends:
    """Both ends of a connection. Each write of the server is sent at once, in one TLS record."""

    def __init__(self, directory: Path, version: ssl.TLSVersion) -> None:
        ca, keys = directory / "ca.pem", directory / "keys.pem"
        identity = authority().issue()
        keys.write_text(identity.key_pem() + identity.chain_pem())
        ca.write_text(authority().pem())
        server_context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        server_context.load_cert_chain(keys)
        server_context.minimum_version = server_context.maximum_version = version
        client_context = ssl.create_default_context(cafile=str(ca))
        here, there = socket.socketpair()
        accepting = threading.Thread(target=self._accept, args=(server_context, there))
        accepting.start()
        connected = client_context.wrap_socket(here, server_hostname="localhost")
        accepting.join(10)
        connected.setblocking(False)
        self.failures: list[OSError] = []
        self.stream = TlsStream(connected, self._explain)

    def _accept(self, context: ssl.SSLContext, connection: socket.socket) -> None:
        self.server = context.wrap_socket(connection, server_side=True)

    def _explain(self, error: OSError) -> OSError:
        self.failures.append(error)
        return OSError("explained")

    def readable(self, timeout: float | None = 5) -> bool:
        return bool(select_streams(plain_select, [self.stream], [], [], timeout)[0])

    def close(self) -> None:
        self.stream.close()
        self.server.close()


@pytest.fixture(params=[ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
def ends(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Ends]:
    made = Ends(tmp_path, request.param)
    yield made
    made.close()


def test_a_stream_is_readable_until_the_whole_tls_record_is_read(ends: Ends) -> None:
    ends.server.sendall(b"abcdef")
    for expected in (b"ab", b"cd", b"ef"):
        assert ends.readable()
        assert ends.stream.recv(2) == expected
    assert not ends.readable(0)
    with pytest.raises(ssl.SSLWantReadError):
        ends.stream.recv(2)


def test_tls_records_without_data_do_not_make_a_stream_readable(ends: Ends) -> None:
    """In TLS 1.3, the server sends session tickets before any data."""
    assert not ends.readable(0.1)
    ends.server.sendall(b"x")
    assert ends.readable()


def test_a_stream_that_has_ended_stays_readable(ends: Ends) -> None:
    ends.server.sendall(b"last")
    ends.server.shutdown(socket.SHUT_WR)
    assert ends.readable()
    assert ends.stream.recv(10) == b"last"
    for _ in range(2):
        assert ends.readable()
        try:
            assert ends.stream.recv(10) == b""
        except OSError as error:
            assert str(error) == "explained"
            assert ends.failures


def test_a_partly_read_tls_record_does_not_prevent_other_sockets_from_being_selected(ends: Ends) -> None:
    ends.server.sendall(b"ab")
    assert ends.readable()
    ends.stream.recv(1)
    waker, woken = socket.socketpair()
    with waker, woken:
        assert select_streams(plain_select, [ends.stream, woken], [], [], 5)[0] == [ends.stream]
        waker.send(b"!")
        assert select_streams(plain_select, [ends.stream, woken], [], [], 5)[0] == [ends.stream, woken]


def _send_all(connection: ssl.SSLSocket, writes: list[bytes]) -> None:
    for data in writes:
        connection.sendall(data)


@given(
    writes=st.lists(st.binary(min_size=1, max_size=40_000), max_size=6),
    sizes=st.lists(st.integers(1, 50_000), min_size=1, max_size=5),
)
@settings(max_examples=25)
def test_bytes_arrive_complete_and_in_order(
    tmp_path_factory: pytest.TempPathFactory, writes: list[bytes], sizes: list[int]
) -> None:
    ends = Ends(tmp_path_factory.mktemp("ends"), ssl.TLSVersion.TLSv1_3)
    sending = threading.Thread(target=_send_all, args=(ends.server, writes))
    sending.start()
    expected, received, turn = b"".join(writes), b"", 0
    while len(received) < len(expected):
        assert ends.readable()
        received += ends.stream.recv(sizes[turn % len(sizes)])
        turn += 1
    sending.join(10)
    ends.close()
    assert received == expected
