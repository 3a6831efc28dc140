"""A hostile client, which sends raw frames without regard for the broker's state."""

from __future__ import annotations

import contextlib
import socket
import struct
import time
from collections.abc import Sequence

from kafka_compat.protocol.api_keys import ApiKey
from tests.conformance.wire import Plain, encode

ANSWER_S = 120.0
LINGER_S = 3.0
"""How long idle connections stay open."""


def connect(port: int, timeout_s: float = ANSWER_S) -> socket.socket:
    return socket.create_connection(("127.0.0.1", port), timeout_s)


def request(api_key: ApiKey, version: int, fields: Plain) -> bytes:
    return encode(api_key, version, fields)


def ask(port: int, frame: bytes) -> None:
    """Send one request, and read the response or the end of the connection."""
    with connect(port) as connection:
        with contextlib.suppress(ConnectionError):
            connection.sendall(frame)
        take_answer(connection)


def take_answer(connection: socket.socket) -> int:
    """Return the size of the next response, or -1 if the connection was closed."""
    try:
        start = connection.recv(4, socket.MSG_WAITALL)
        if len(start) < 4:
            return -1
        left = size = int(struct.unpack(">i", start)[0])
        while left > 0:
            part = connection.recv(min(left, 1 << 20))
            if not part:
                return -1
            left -= len(part)
    except ConnectionError:
        return -1
    return size


def open_and_send(port: int, count: int, data: bytes, linger_s: float = LINGER_S) -> None:
    """Open `count` connections that each send the same data, stay open for `linger_s`, and read nothing."""
    connections = []
    try:
        for _ in range(count):
            try:
                connection = connect(port, 5)
            except OSError:
                # The broker may reject the connection.
                continue
            connections.append(connection)
            with contextlib.suppress(OSError):
                connection.sendall(data)
        time.sleep(linger_s)  # the connections stay open for this time
    finally:
        for connection in connections:
            connection.close()


def pour(port: int, frames: Sequence[bytes], seconds: float = 5.0) -> None:
    """Send frames without reading responses while the broker accepts them, for at most `seconds`."""
    data = memoryview(b"".join(frames))
    with connect(port) as connection:
        connection.setblocking(False)
        end_s = time.monotonic() + seconds
        while data and time.monotonic() < end_s:
            try:
                data = data[connection.send(data) :]
            except BlockingIOError:
                time.sleep(0.01)  # polling interval: the broker has stopped reading
            except ConnectionError:
                return
        time.sleep(max(min(end_s - time.monotonic(), 1.0), 0))  # the connection stays open for this time


def pour_on_many(port: int, connections: int, frames: Sequence[bytes], seconds: float = 5.0) -> None:
    """Send frames like `pour`, on several connections at once."""
    data = b"".join(frames)
    opened: dict[socket.socket, memoryview] = {}
    try:
        for _ in range(connections):
            connection = connect(port)
            connection.setblocking(False)
            opened[connection] = memoryview(data)
        end_s = time.monotonic() + seconds
        while any(opened.values()) and time.monotonic() < end_s:
            moved = False
            for connection, left in opened.items():
                try:
                    opened[connection] = left[connection.send(left) :] if left else left
                    moved = moved or bool(left)
                except BlockingIOError:
                    pass
                except ConnectionError:
                    opened[connection] = memoryview(b"")
            if not moved:
                time.sleep(0.01)  # polling interval: the broker has stopped reading
        time.sleep(1.0)  # the connections stay open for this time
    finally:
        for connection in opened:
            connection.close()


def joining(group: str, metadata: bytes) -> Plain:
    """Return the JoinGroup request of a new member of a classic group."""
    return {
        "group_id": group,
        "session_timeout_ms": 10_000,
        "rebalance_timeout_ms": 10_000,
        "member_id": "",
        "protocol_type": "consumer",
        "protocols": [{"name": "range", "metadata": memoryview(metadata)}],
    }
