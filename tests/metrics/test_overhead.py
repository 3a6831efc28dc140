"""Overhead of metrics: CPU time of the broker for each record, compared with a broker without an HTTP
listener. Needs --campaign.

Pairs of brokers receive the same frames in alternating order. The median of all pairs counts, because the
machine has other load. The test judges requests of clients with much data: batches of 100 records, and
fetches of 64 KiB. Results for smaller requests are only printed. Larger requests are not measured: the
kernel's time for sending 1 MiB varies by a factor of two between runs.
"""

from __future__ import annotations

import os
import socket
import statistics
import struct
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pytest

from kafka_compat.protocol.api_keys import ApiKey
from tests.conformance.batches import batch
from tests.conformance.wire import encode
from tests.metrics.scraping import get
from tests.support import campaign
from tests.support.compiled import COMPILED
from tests.support.ports import free_port
from tests.support.servers import KafkaCompatBroker
from tests.transactions.programs import create_topic

pytestmark = pytest.mark.skipif(not campaign.enabled(), reason="needs --campaign")

STARTS, PAIRS = 6, 4
RATIO_MAX = 1.02 if COMPILED else 1.06
"""Without compilation, a fetch costs 1.5 µs more, regardless of its size: see decision 0016."""
IN_FLIGHT = 5
"""The usual number of requests in flight of a client."""
TOPIC = "t"


def produce(records: int) -> bytes:
    data = {"index": 0, "records": batch(records)}
    topic = {"name": TOPIC, "partition_data": [data]}
    return encode(ApiKey.PRODUCE, 9, {"acks": 1, "timeout_ms": 1000, "topic_data": [topic]})


def fetch(max_bytes: int) -> bytes:
    partition = {"partition": 0, "fetch_offset": 0, "partition_max_bytes": max_bytes}
    topic = {"topic": TOPIC, "partitions": [partition]}
    limits = {"max_wait_ms": 500, "min_bytes": 1, "max_bytes": 1 << 20, "session_epoch": -1}
    return encode(ApiKey.FETCH, 12, {**limits, "topics": [topic]})


BATCH = 100
FETCH_BYTES = 64 * 1024
WRITE, READ = "produce 100 records per request", "fetch 64 KiB per request"
WORK: Mapping[str, tuple[bytes, int, int]] = {
    WRITE: (produce(BATCH), BATCH, 4_000),
    READ: (fetch(FETCH_BYTES), BATCH * (FETCH_BYTES // len(batch(BATCH))), 8_000),
    "produce 1 record per request": (produce(1), 1, 15_000),
    "fetch 100 records per request": (fetch(1), BATCH, 8_000),
}
"""Maps each workload to a frame, its number of records, and the number of requests."""
JUDGED = (WRITE, READ)


@contextmanager
def pair(directory: Path) -> Iterator[Mapping[str, KafkaCompatBroker]]:
    """Start one broker with an HTTP listener that has been scraped once, and one without."""
    url = f"http://127.0.0.1:{free_port()}"
    brokers = {
        "on": KafkaCompatBroker(directory / "on", {"kafka.compat.http.listener": url}),
        "off": KafkaCompatBroker(directory / "off"),
    }
    for broker in brokers.values():
        broker.start()
    assert get(url, "/metrics")[0] == 200
    try:
        yield brokers
    finally:
        for broker in brokers.values():
            broker.stop()


def cpu_ns(broker: KafkaCompatBroker) -> int:
    """Return the CPU time of all threads of the broker."""
    tasks = Path(f"/proc/{broker.pid}/task").iterdir()
    return sum(int((task / "schedstat").read_text().split()[0]) for task in tasks)


def send(broker: KafkaCompatBroker, frame: bytes, times: int) -> None:
    with socket.create_connection((broker.host, broker.port), 60) as connection:
        answers = connection.makefile("rb")
        for number in range(times + IN_FLIGHT):
            if number < times:
                connection.sendall(frame)
            if number >= IN_FLIGHT:
                (size,) = struct.unpack(">i", answers.read(4))
                assert len(answers.read(size)) == size
        answers.close()


def cost_us(broker: KafkaCompatBroker, frame: bytes, records: int, times: int) -> float:
    """Return the CPU time for each record."""
    before = cpu_ns(broker)
    send(broker, frame, times)
    return (cpu_ns(broker) - before) / times / records / 1000


def test_metrics_add_almost_no_overhead(tmp_path: Path) -> None:
    ratios: dict[str, list[float]] = {what: [] for what in WORK}
    for start in range(STARTS):
        # Memory layout may affect CPU time as much as metrics do, so restart both brokers in every round.
        with pair(tmp_path / str(start)) as brokers:
            for broker in brokers.values():
                create_topic(broker.address, TOPIC, 1)
            for number in range(PAIRS + 1):
                order = ["on", "off"] if number % 2 else ["off", "on"]
                for what, (frame, records, times) in WORK.items():
                    took = {each: cost_us(brokers[each], frame, records, times) for each in order}
                    if number:
                        # The first pair is a warm-up.
                        ratios[what].append(took["on"] / took["off"])
    for what, seen in ratios.items():
        shown = ", ".join(f"{ratio:.3f}" for ratio in sorted(seen))
        print(f"{what}: {statistics.median(seen):.3f} of {shown}; load {os.getloadavg()[0]:.1f}")
    for what in JUDGED:
        assert statistics.median(ratios[what]) <= RATIO_MAX, what
