"""Clients that send excessive requests to a broker in a separate process: it survives within its memory
limit, and a bystander is served at the same time.
"""

from __future__ import annotations

import contextlib
import resource
import selectors
import socket
import struct
import time
from collections.abc import Callable, Iterator, Sequence
from typing import cast

import pytest

from kafka_compat.protocol.api_keys import ApiKey
from tests.conformance.batches import batch, record
from tests.conformance.wire import Closed, Connection, encode
from tests.support.bystander import Bystander
from tests.support.process import wait_until
from tests.support.servers import KafkaCompatBroker

MIB = 1 << 20
FLOOD_MS = 250
MEMORY_BYTES = 512 * MIB


@pytest.fixture(autouse=True)
def many_descriptors() -> Iterator[None]:
    """Raise this process's descriptor limit to the number of connections that the attacks need."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


@contextlib.contextmanager
def connections(port: int, count: int) -> Iterator[list[socket.socket]]:
    with contextlib.ExitStack() as stack:
        yield [stack.enter_context(socket.create_connection(("127.0.0.1", port), 30)) for _ in range(count)]


def send_what_fits(sockets: Sequence[socket.socket], data: bytes, quiet_s: float = 1.0) -> None:
    """Send `data` on every socket until all have accepted it, or none accepts a byte for `quiet_s`. Reads
    nothing.
    """
    rest = {one: memoryview(data) for one in sockets}
    with selectors.DefaultSelector() as selector:
        for one in sockets:
            one.setblocking(False)
            selector.register(one, selectors.EVENT_WRITE)
        while rest and (ready := selector.select(quiet_s)):
            for key, _ in ready:
                one = cast(socket.socket, key.fileobj)
                try:
                    rest[one] = rest[one][one.send(rest[one]) :]
                except OSError:
                    rest[one] = memoryview(b"")  # the broker has closed it
                if not rest[one]:
                    del rest[one]
                    selector.unregister(one)


def read_all(sockets: Sequence[socket.socket], answers: int, timeout_s: float = 60) -> None:
    """Read `answers` responses from every socket, and discard them."""
    deadline_s = time.monotonic() + timeout_s
    buffers = {one: bytearray() for one in sockets}
    left = dict.fromkeys(sockets, answers)
    with selectors.DefaultSelector() as selector:
        for one in sockets:
            one.setblocking(False)
            selector.register(one, selectors.EVENT_READ)
        while left:
            assert time.monotonic() < deadline_s, f"{sum(left.values())} responses are missing"
            for key, _ in selector.select(1.0):
                one = cast(socket.socket, key.fileobj)
                received = one.recv(MIB)
                assert received, "the broker closed the connection"
                left[one] -= _cut(buffers[one], received)
                if not left[one]:
                    del left[one]
                    selector.unregister(one)


def _cut(buffer: bytearray, received: bytes) -> int:
    """Append the received bytes to the buffer, remove complete responses, and return their number."""
    buffer += received
    position = count = 0
    while len(buffer) - position >= 4:
        end = position + 4 + struct.unpack_from(">i", buffer, position)[0]
        if end > len(buffer):
            break
        position = end
        count += 1
    del buffer[:position]
    return count


def create_topics(broker: KafkaCompatBroker, names: Sequence[str]) -> None:
    with Connection(broker.address, 120) as client:
        for begin in range(0, len(names), 100):
            topics = [
                {"name": name, "num_partitions": 1, "replication_factor": 1}
                for name in names[begin : begin + 100]
            ]
            client.ask(ApiKey.CREATE_TOPICS, 4, {"topics": topics, "timeout_ms": 60_000})


def fill(broker: KafkaCompatBroker, topic: str, size_bytes: int) -> None:
    """Produce `size_bytes` of data, in batches of about a megabyte."""
    from kafka_compat.storage.records.records import build_batch

    data = build_batch([record(number, b"v" * 1000) for number in range(900)])
    with Connection(broker.address, 60) as client:
        for _ in range(size_bytes // len(data)):
            parts = [{"index": 0, "records": data}]
            topics = [{"name": topic, "partition_data": parts}]
            client.ask(ApiKey.PRODUCE, 9, {"acks": 1, "timeout_ms": 5000, "topic_data": topics})


def fetch(topic: str, size_bytes: int, version: int) -> bytes:
    part = {"partition": 0, "fetch_offset": 0, "partition_max_bytes": size_bytes}
    request = {
        "max_wait_ms": 100,
        "min_bytes": 1,
        "max_bytes": size_bytes,
        "topics": [{"topic": topic, "partitions": [part]}],
    }
    return encode(ApiKey.FETCH, version, request)


def assert_unharmed(broker: KafkaCompatBroker, bystander: Bystander, peak_bytes: int) -> None:
    assert broker.running
    assert bystander.worst_ms < FLOOD_MS, f"{bystander.worst_wall_ms:.0f} ms including processor waits"
    assert peak_bytes < MEMORY_BYTES
    assert "Traceback" not in broker.process.tail(1000)


def test_memory_is_not_allocated_for_declared_sizes(broker: KafkaCompatBroker) -> None:
    before_bytes = broker.resident_bytes()
    with (
        Bystander(broker.port, broker.pid) as bystander,
        connections(broker.port, 60) as some,
        connections(broker.port, 2000) as many,
    ):
        send_what_fits(some, struct.pack(">i", 100_000_000) + bytes(1024))
        send_what_fits(many, struct.pack(">i", 90_000_000))
        time.sleep(0.5)  # the broker would allocate the announced sizes within this time
        peak_bytes = broker.resident_bytes()
    assert_unharmed(broker, bystander, peak_bytes)
    # Mostly the connections themselves; the announced requests total 190 GB.
    assert peak_bytes - before_bytes < 2060 * 32 * 1024


def test_unfinished_requests_stay_within_their_budget(broker: KafkaCompatBroker) -> None:
    """Sixty clients send all but the last byte of a 20 MB request, 1.2 GB in total."""
    body = encode(ApiKey.API_VERSIONS, 0, {})[4:] + bytes(20 * MIB)
    data = struct.pack(">i", len(body)) + body
    with Bystander(broker.port, broker.pid) as bystander, connections(broker.port, 60) as some:
        send_what_fits(some, data[:-1])
        peak_bytes = broker.resident_bytes()
    assert_unharmed(broker, bystander, peak_bytes)


def test_all_large_requests_are_served_within_a_small_budget(
    start_broker: Callable[..., KafkaCompatBroker],
) -> None:
    """Thirty requests of 1 MB share a budget of 1 MB: each is eventually served, and small requests do not
    wait.
    """
    broker = start_broker({"queued.max.request.bytes": "1000000"})
    body = encode(ApiKey.API_VERSIONS, 0, {})[4:] + bytes(MIB)
    data = struct.pack(">i", len(body)) + body
    with Bystander(broker.port, broker.pid) as bystander, connections(broker.port, 30) as some:
        send_what_fits(some, data, 20)
        read_all(some, 1)
        peak_bytes = broker.resident_bytes()
    assert_unharmed(broker, bystander, peak_bytes)


@pytest.mark.parametrize("reads", [False, True])
def test_large_responses_on_one_connection_use_bounded_memory(broker: KafkaCompatBroker, reads: bool) -> None:
    create_topics(broker, [f"topic-{number}" for number in range(500)])
    flood = encode(ApiKey.METADATA, 1, {"topics": None}) * 6000
    with Bystander(broker.port, broker.pid) as bystander, connections(broker.port, 1) as one:
        if reads:
            send_what_fits(one, flood[: len(flood) // 10])
            read_all(one, 600)
        else:
            send_what_fits(one, flood)
            time.sleep(2)  # the bystander measures during this time
        peak_bytes = broker.resident_bytes()
    assert_unharmed(broker, bystander, peak_bytes)


def test_a_flood_on_five_hundred_connections_uses_bounded_memory(broker: KafkaCompatBroker) -> None:
    create_topics(broker, [f"topic-{number}" for number in range(20)])
    flood = encode(ApiKey.METADATA, 1, {"topics": None}) * 40
    with Bystander(broker.port, broker.pid) as bystander, connections(broker.port, 500) as some:
        send_what_fits(some, flood)
        read_all(some, 40)
        peak_bytes = broker.resident_bytes()
    assert_unharmed(broker, bystander, peak_bytes)


def test_responses_are_not_built_for_clients_with_unread_responses(broker: KafkaCompatBroker) -> None:
    """The client sends 300 fetches of 10 MB in the old format and never reads: memory and the bystander's
    latency stay those of one fetch.
    """
    create_topics(broker, ["old"])
    fill(broker, "old", 10 * MIB)
    question = fetch("old", 10 * MIB, 3)
    with Bystander(broker.port, broker.pid) as bystander, connections(broker.port, 1) as one:
        send_what_fits(one, question)
        read_all(one, 1)
    once_ms, once_bytes = bystander.worst_ms, broker.resident_bytes()
    with Bystander(broker.port, broker.pid) as bystander, connections(broker.port, 1) as one:
        send_what_fits(one, question * 300, 5.0)
        peak_bytes = broker.resident_bytes()
    assert bystander.worst_ms < 2 * once_ms + FLOOD_MS
    assert peak_bytes - once_bytes < 64 * MIB


def test_responses_are_not_built_for_many_clients_with_unread_responses(broker: KafkaCompatBroker) -> None:
    """Sixty clients each request 20 MB in the old format, 1.2 GB in total, and do not read."""
    create_topics(broker, ["old"])
    fill(broker, "old", 20 * MIB)
    question = fetch("old", 20 * MIB, 3)
    with connections(broker.port, 60) as some:
        send_what_fits(some, question)
        with Connection(broker.address, 60) as client:
            client.ask(ApiKey.API_VERSIONS, 0, {})
        peak_bytes = broker.resident_bytes()
    assert peak_bytes < MEMORY_BYTES
    assert broker.running


def limited(broker: KafkaCompatBroker, descriptors: int) -> KafkaCompatBroker:
    broker.launcher = ("prlimit", f"--nofile={descriptors}:{descriptors}")
    return broker


def _is_readable(connection: socket.socket) -> bool:
    """Return whether data arrives or the connection closes within 0.2 s."""
    with selectors.DefaultSelector() as selector:
        selector.register(connection, selectors.EVENT_READ)
        return bool(selector.select(0.2))


def test_a_broker_without_descriptors_rejects_connections_and_logs_the_reason(
    start_broker: Callable[..., KafkaCompatBroker],
) -> None:
    """With 100 descriptors and many more clients, existing connections are served, and logs still roll."""
    broker = start_broker({"log.segment.bytes": "100000"})
    broker.stop()
    limited(broker, 100).start()
    with Connection(broker.address, 20) as client, Bystander(broker.port, broker.pid) as bystander:
        with connections(broker.port, 130) as idle:
            refused = [one for one in idle if _is_readable(one)]
            assert 20 < len(refused) < 110
            assert all(one.recv(1) == b"" for one in refused)
            parts = [{"index": 0, "records": batch(300)}]
            request = {
                "acks": 1,
                "timeout_ms": 5000,
                "topic_data": [{"name": "rolls", "partition_data": parts}],
            }
            client.ask(ApiKey.METADATA, 4, {"topics": [{"name": "rolls"}], "allow_auto_topic_creation": True})
            wait_until(lambda: _produced(client, request), 10, "creation of the topic")
            for _ in range(60):
                assert _produced(client, request)
        wait_until(lambda: _is_served(broker), 10, "a new connection")
    assert bystander.worst_ms < FLOOD_MS
    log = broker.process.tail(1000)
    assert "Traceback" not in log
    assert log.count("ulimit -n") == 2, log  # twice in one line
    assert "may open 100 files" in log


def _is_served(broker: KafkaCompatBroker) -> bool:
    with Connection(broker.address, 20) as client:
        try:
            client.ask(ApiKey.API_VERSIONS, 0, {})
        except Closed:
            return False
    return True


def _produced(client: Connection, request: dict[str, object]) -> bool:
    answer = client.ask(ApiKey.PRODUCE, 9, request)
    return bool(answer["responses"][0]["partition_responses"][0]["error_code"] == 0)


@pytest.mark.parametrize(
    ("sent", "said"),
    [
        (bytes.fromhex("16030102000100"), "TLS"),
        (b"GET / HTTP/1.1\r\nHost: x\r\n\r\n", "HTTP"),
        (
            struct.pack(">i", 200_000_000),
            "a request of 200000000 bytes exceeds socket.request.max.bytes=104857600",
        ),
        (struct.pack(">i", -5), "a request of -5 bytes"),
    ],
)
def test_a_rejected_client_is_logged_once(broker: KafkaCompatBroker, sent: bytes, said: str) -> None:
    for _ in range(3):
        with Connection(broker.address) as client:
            client.send(sent)
            assert client.closed_by_peer()
    broker.stop()  # flushes the broker's log
    lines = [
        line for line in broker.process.tail(1000).splitlines() if "127.0.0.1" in line and "Closed" in line
    ]
    assert len(lines) == 1
    assert said in lines[0]
