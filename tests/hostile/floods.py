"""Attacks that consist of many requests or connections."""

from __future__ import annotations

import os
import struct
from collections.abc import Callable

from kafka_compat.protocol.api_keys import ApiKey
from kafka_compat.storage.records.records import Record, build_batch
from tests.conformance.wire import Plain
from tests.hostile.attacks import (
    MIB,
    TLS_HELLO,
    Attack,
    Strike,
    fetch_frame,
    filled_topic,
    framed,
    fresh,
    header,
    names,
)
from tests.hostile.client import (
    ask,
    connect,
    joining,
    open_and_send,
    pour,
    pour_on_many,
    request,
    take_answer,
)


def _announce(connections: int, size: int, sent: bytes, everyday: bool = False) -> Attack:
    data = struct.pack(">i", size) + sent

    def prepare(port: int) -> Strike:
        return lambda: open_and_send(port, connections, data)

    name = f"{connections} connections announce {size // 1_000_000} MB and send {len(data)} bytes"
    return Attack(name, prepare, is_flood=True, everyday=everyday)


def _strangers(name: str, data: bytes, connections: int = 100, everyday: bool = False) -> Attack:
    def prepare(port: int) -> Strike:
        return lambda: open_and_send(port, connections, data, 0.5)

    return Attack(name, prepare, is_flood=True, everyday=everyday)


def _drip(port: int) -> Strike:
    def strike() -> None:
        connections = [connect(port) for _ in range(200)]
        frame = request(ApiKey.METADATA, 1, {"topics": [{"name": "drip"}]})
        for byte in frame:
            for connection in connections:
                connection.sendall(bytes([byte]))
        for connection in connections:
            take_answer(connection)
            connection.close()

    return strike


def _open_and_close(port: int) -> Strike:
    def strike() -> None:
        for _ in range(3000):
            connect(port).close()

    return strike


def _reset_in_the_answer(port: int) -> Strike:
    topic = filled_topic(
        port, 1, build_batch([Record(timestamp=1_790_000_000_000, value=os.urandom(900_000))]), 20
    )
    frame = fetch_frame(6, [(topic, 0)], 18 * MIB)

    def strike() -> None:
        for _ in range(100):
            with connect(port) as connection:
                connection.sendall(frame)
                connection.recv(1000)
                linger = struct.pack("ii", 1, 0)
                connection.setsockopt(1, 13, linger)

    return strike


def _old_fetches(connections: int, requests: int, size_bytes: int) -> Callable[[int], Strike]:
    def prepare(port: int) -> Strike:
        value = os.urandom(900) * 1000
        batch = build_batch([Record(timestamp=1_790_000_000_000, value=value)])
        topic = filled_topic(port, 1, batch, size_bytes // len(value))
        frames = [fetch_frame(3, [(topic, 0)], size_bytes)] * requests
        return lambda: pour_on_many(port, connections, frames)

    return prepare


def _metadata_of_all(port: int) -> Strike:
    wanted = [
        {"name": name, "num_partitions": 1, "replication_factor": 1} for name in names(500, fresh("all"))
    ]
    ask(port, request(ApiKey.CREATE_TOPICS, 5, {"topics": wanted, "timeout_ms": 60_000}))
    frames = [request(ApiKey.METADATA, 5, {"topics": None})] * 6000
    return lambda: pour(port, frames)


def _poured(
    name: str, key: ApiKey, version: int, fields: Plain, count: int, everyday: bool = False
) -> Attack:
    def prepare(port: int) -> Strike:
        frames = [request(key, version, fields)] * count
        return lambda: pour(port, frames)

    return Attack(name, prepare, is_flood=True, everyday=everyday)


def _pipelining_crowd(port: int) -> Strike:
    frames = [request(ApiKey.METADATA, 5, {"topics": []})] * 50
    return lambda: pour_on_many(port, 500, frames)


def _poured_each(name: str, key: ApiKey, version: int, fields: Callable[[int], Plain], count: int) -> Attack:
    def prepare(port: int) -> Strike:
        frames = [request(key, version, fields(number)) for number in range(count)]
        return lambda: pour(port, frames, 10)

    return Attack(name, prepare, is_flood=True)


def _many_members(port: int) -> Strike:
    group = fresh("crowd")
    frames = [request(ApiKey.JOIN_GROUP, 3, joining(group, b"x" * 100))] * 10
    return lambda: pour_on_many(port, 300, frames)


def _join(number: int) -> Plain:
    return joining(f"group-{number}", b"x")


FLOODS = (
    _announce(60, 100_000_000, bytes(1000), everyday=True),
    _announce(2000, 90_000_000, b""),
    _announce(400, 90_000_000, bytes(60)),
    _strangers("connections that send random bytes", os.urandom(100_000), 50),
    _strangers("TLS", TLS_HELLO, everyday=True),
    _strangers("HTTP", b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"),
    _strangers("incomplete frame sizes", b"\0\0", 500),
    _strangers("negative frame sizes", struct.pack(">i", -1), 500),
    _strangers("frame sizes of zero", struct.pack(">i", 0), 500),
    _strangers("frame sizes of 2 GiB", struct.pack(">i", 2**31 - 1), 500),
    _strangers("unknown APIs", framed(header(999, 0)), 500),
    _strangers("unknown versions", framed(header(1, 99)), 500),
    Attack("200 connections that send byte by byte", _drip, is_flood=True),
    Attack("3,000 connections opened and closed", _open_and_close, is_flood=True, everyday=True),
    Attack("connections reset in the middle of a response", _reset_in_the_answer, is_flood=True),
    Attack(
        "300 responses of 10 MB to old Fetch versions, never read",
        _old_fetches(1, 300, 10 * MIB),
        is_flood=True,
        everyday=True,
    ),
    Attack("60 connections with an old Fetch version of 20 MB", _old_fetches(60, 1, 20 * MIB), is_flood=True),
    Attack(
        "6,000 Metadata requests for 500 topics, never read", _metadata_of_all, is_flood=True, everyday=True
    ),
    Attack("500 connections with 50 requests each", _pipelining_crowd, is_flood=True, everyday=True),
    Attack("3,000 members that join one group", _many_members, is_flood=True),
    _poured("50,000 ApiVersions requests", ApiKey.API_VERSIONS, 0, {}, 50_000),
    _poured(
        "3,000 DescribeConfigs requests for the broker",
        ApiKey.DESCRIBE_CONFIGS,
        3,
        {"resources": [{"resource_type": 4, "resource_name": "1", "configuration_keys": None}]},
        3000,
        everyday=True,
    ),
    _poured("10,000 ListGroups requests", ApiKey.LIST_GROUPS, 0, {}, 10_000),
    _poured(
        "10,000 DescribeLogDirs requests for all topics",
        ApiKey.DESCRIBE_LOG_DIRS,
        1,
        {"topics": None},
        10_000,
    ),
    _poured_each("5,000 groups with one member each", ApiKey.JOIN_GROUP, 3, _join, 5000),
    _poured_each(
        "3,000 transactional IDs",
        ApiKey.INIT_PRODUCER_ID,
        1,
        lambda number: {"transactional_id": f"id-{number}", "transaction_timeout_ms": 10_000},
        3000,
    ),
    _poured_each(
        "2,000 fetch sessions of 100 partitions",
        ApiKey.FETCH,
        7,
        lambda number: {
            "max_bytes": MIB,
            "session_epoch": 0,
            "topics": [{"topic": f"absent-{number}", "partitions": [{"partition": n} for n in range(100)]}],
        },
        2000,
    ),
)
"""All attacks of this module."""
