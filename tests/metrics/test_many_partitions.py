"""Cost of scraping many partitions: duration, delay of other requests, and memory.

1,000 partitions daily, 10,000 in a campaign.
"""

from __future__ import annotations

import socket
import struct
import time
from collections.abc import Iterator

import pytest
from confluent_kafka import Producer

from kafka_compat.metrics.replica_beans import FAMILIES
from tests.metrics.groups import commit
from tests.metrics.scraping import get, samples_of
from tests.support import campaign
from tests.support.bystander import Bystander
from tests.support.ports import free_port
from tests.support.servers import KafkaCompatBroker
from tests.transactions.programs import create_topic

TOPICS = 10
PARTITIONS = campaign.rounds(100, 1_000)
# Daily runs share the machine with other tests.
SCRAPE_MS_MAX = 300
STALL_MS_MAX = campaign.rounds(100, 20)
MEMORY_MAX = 10 * 1024 * 1024


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[KafkaCompatBroker, str]]:
    url = f"http://127.0.0.1:{free_port()}"
    broker = KafkaCompatBroker(tmp_path_factory.mktemp("many"), {"kafka.compat.http.listener": url})
    broker.start()
    for number in range(TOPICS):
        create_topic(broker.address, f"topic-{number}", PARTITIONS)
    assert get(url, "/live")[0] == 200
    yield broker, url
    broker.stop()


def watched(served: tuple[KafkaCompatBroker, str], what: str) -> tuple[float, bytes]:
    """Return the minimum duration of several scrapes in ms, and the last scrape's text."""
    broker, url = served
    took_ms = []
    with Bystander(broker.port, broker.pid, interval_ms=2) as bystander:
        for _ in range(7):
            begun_s = time.perf_counter()
            status, body, _ = get(url, "/metrics")
            took_ms.append((time.perf_counter() - begun_s) * 1000)
            assert status == 200
    shown = ", ".join(f"{each:.0f}" for each in took_ms)
    print(
        f"{what}: {TOPICS * PARTITIONS} partitions, {body.count(b'kafka_') // 1000} thousand samples, "
        f"{len(body) / 1e6:.1f} MB; scrapes took {shown} ms; others waited {bystander.worst_ms:.1f} ms "
        f"at most, {bystander.worst_wall_ms:.1f} ms with the waiting for a processor"
    )
    assert bystander.worst_ms < STALL_MS_MAX
    return min(took_ms), body


def test_a_scrape_of_many_partitions_stays_within_time_and_memory_limits(
    served: tuple[KafkaCompatBroker, str],
) -> None:
    broker, _ = served
    before = broker.resident_bytes()
    took_ms, body = watched(served, "topics")
    grown = broker.resident_bytes() - before
    print(f"memory grew by {grown / 1024 / 1024:.1f} MiB")
    samples = samples_of(body.decode())
    of_partitions = [labels for _, labels in samples if {"topic", "partition"} <= dict(labels).keys()]
    assert len(of_partitions) == TOPICS * PARTITIONS * (7 + len(FAMILIES))
    assert took_ms < SCRAPE_MS_MAX
    assert grown < MEMORY_MAX


def test_lag_on_every_partition_is_scraped_within_time_and_memory_limits(
    served: tuple[KafkaCompatBroker, str],
) -> None:
    broker, _ = served
    producer = Producer({"bootstrap.servers": broker.address, "linger.ms": 50})
    for topic in range(TOPICS):
        for partition in range(PARTITIONS):
            for age_s in (20, 10):
                then_ms = int((time.time() - age_s) * 1000)
                producer.produce(f"topic-{topic}", b"v", None, partition, timestamp=then_ms)
        producer.flush(60)
    for topic in range(TOPICS):
        offsets = {(f"topic-{topic}", partition): partition % 2 for partition in range(PARTITIONS)}
        commit(broker.address, "behind", offsets)
    took_ms, body = watched(served, "topics and a group")
    samples = samples_of(body.decode())
    seconds = [value for (name, _), value in samples.items() if name == "kafka_consumergroup_lag_seconds"]
    assert len(seconds) == TOPICS * PARTITIONS and all(value >= 10 for value in seconds)
    assert took_ms < 2 * SCRAPE_MS_MAX


def test_an_interrupted_scrape_does_not_affect_later_scrapes(
    served: tuple[KafkaCompatBroker, str],
) -> None:
    broker, url = served
    host, port = url.removeprefix("http://").split(":")
    for read_bytes in (0, 1000):
        with socket.create_connection((host, int(port)), 20) as connection:
            # Close the connection with a reset.
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            connection.sendall(b"GET /metrics HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
            if read_bytes:
                assert connection.recv(read_bytes)
        assert get(url, "/metrics")[0] == 200
    assert "Traceback" not in broker.log.read_text()
