"""Attacks on a broker: each is prepared first, and then run while a bystander measures the broker.

A `Single` is one request of any size; a `Flood` consists of many requests or connections.
"""

from __future__ import annotations

import struct
import uuid
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from kafka_compat.protocol.api_keys import ApiKey
from kafka_compat.storage.records.kinds import CompressionType
from kafka_compat.storage.records.records import Record, build_batch
from tests.conformance.wire import Plain
from tests.hostile.client import ask, request

MANY = 100_000
MIB = 1024 * 1024
TLS_HELLO = bytes.fromhex("1603010200010001fc0303") + bytes(500)

Strike = Callable[[], None]


@dataclass(frozen=True)
class Attack:
    """`prepare(port)` returns the function that runs the attack. `everyday` attacks also run in normal test
    runs.

    With `leaves_work`, Apache Kafka processes the attack for minutes, so the next attack uses a new broker.
    """

    name: str
    prepare: Callable[[int], Strike]
    is_flood: bool = False
    everyday: bool = False
    leaves_work: bool = False


def names(count: int, prefix: str = "absent") -> list[str]:
    return [f"{prefix}-{number}" for number in range(count)]


def make_topic(port: int, name: str, partitions: int = 1, **configs: str) -> None:
    given = [{"name": key.replace("_", "."), "value": value} for key, value in configs.items()]
    topic = {"name": name, "num_partitions": partitions, "replication_factor": 1, "configs": given}
    ask(port, request(ApiKey.CREATE_TOPICS, 5, {"topics": [topic], "timeout_ms": 60_000}))


def fresh(prefix: str) -> str:
    return f"{prefix}-{uuid.uuid4().hex[:8]}"


def produce_frame(topic: str, batches: Iterable[tuple[int, bytes]], acks: int = 1) -> bytes:
    data = [{"index": index, "records": memoryview(batch)} for index, batch in batches]
    fields = {"acks": acks, "timeout_ms": 30_000, "topic_data": [{"name": topic, "partition_data": data}]}
    return request(ApiKey.PRODUCE, 8, fields)


def small_records(count: int, compression: CompressionType = CompressionType.GZIP) -> bytes:
    records = [Record(timestamp=1_790_000_000_000 + number, value=b"v") for number in range(count)]
    return build_batch(records, compression=compression)


def filled_topic(port: int, partitions: int, batch: bytes, times: int = 1) -> str:
    """Create a topic with the same batches in every partition."""
    topic = fresh("filled")
    make_topic(port, topic, partitions, max_message_bytes="20000000")
    for index in range(partitions):
        for _ in range(times):
            ask(port, produce_frame(topic, [(index, batch)]))
    return topic


def fetch_frame(version: int, partitions: Iterable[tuple[str, int]], max_bytes: int, **fields: Any) -> bytes:
    topics: dict[str, list[Plain]] = {}
    for topic, index in partitions:
        item = {"partition": index, "fetch_offset": 0, "partition_max_bytes": max_bytes}
        topics.setdefault(topic, []).append(item)
    listed = [{"topic": topic, "partitions": items} for topic, items in topics.items()]
    return request(
        ApiKey.FETCH,
        version,
        {"max_bytes": max_bytes, "min_bytes": 1, "max_wait_ms": 0, "topics": listed, **fields},
    )


def single(name: str, key: ApiKey, version: int, fields: Callable[[], Plain], **kind: bool) -> Attack:
    """Return an attack that consists of one request."""

    def prepare(port: int) -> Strike:
        frame = request(key, version, fields())
        return lambda: ask(port, frame)

    return Attack(name, prepare, **kind)


def header(key: int, version: int) -> bytes:
    return struct.pack(">hhih", key, version, 1, -1)


def framed(body: bytes) -> bytes:
    return struct.pack(">i", len(body)) + body
