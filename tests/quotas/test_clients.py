"""Real clients with quotas: their rate is within a tenth of the quota, and other clients are not affected."""

from __future__ import annotations

import re
import statistics
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest
from confluent_kafka import Consumer, Producer
from kafka import KafkaConsumer, KafkaProducer

from tests.conformance.wire import Connection
from tests.quotas.clients import Who, alter, await_notices, create_topic, produce, unique
from tests.support import java
from tests.support.bystander import Bystander
from tests.support.campaign import enabled
from tests.support.servers import GenuineKafka, KafkaCompatBroker, StartBroker

RATE = 500_000
VALUE = b"v" * 1000
WINDOWS = {"quota.window.num": "3"}
"""Few windows, so that the initial burst, in which all windows fill at once, is short."""
SECONDS = 11.0 if not enabled() else 45.0
"""Consumers fetch in bursts, so their average needs this many seconds."""

campaign_only = pytest.mark.skipif(not enabled(), reason="a campaign")


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KafkaCompatBroker]:
    server = KafkaCompatBroker(tmp_path_factory.mktemp("quotas"), WINDOWS)
    server.start()
    yield server
    server.stop()


def confluent_producing(address: str, client: str, topic: str, acks: str = "1") -> Iterator[int]:
    """Yield the number of record bytes acknowledged so far, whenever it grows."""
    producer = Producer(
        {
            "bootstrap.servers": address,
            "client.id": client,
            "linger.ms": 5,
            "acks": acks,
            "batch.size": 20_000,
        }
    )
    done = 0

    def delivered(error: object, message: object) -> None:
        nonlocal done
        assert error is None
        done += len(VALUE)

    while True:
        try:
            producer.produce(topic, VALUE, on_delivery=delivered)
        except BufferError:
            producer.poll(0.1)
        producer.poll(0)
        yield done


def python_producing(address: str, client: str, topic: str) -> Iterator[int]:
    producer = KafkaProducer(bootstrap_servers=address, client_id=client, linger_ms=5, max_block_ms=60_000)
    done = 0

    def delivered(_: object) -> None:
        nonlocal done
        done += len(VALUE)

    pending = 0
    try:
        while True:
            if pending - done < 2 * RATE:
                producer.send(topic, VALUE).add_callback(delivered)
                pending += len(VALUE)
            else:
                time.sleep(0.001)  # polling interval
            yield done
    finally:
        # With a shorter timeout than the queued records need, close() would fail and leave its thread
        # running.
        producer.close(timeout=60)


def confluent_consuming(address: str, client: str, topic: str) -> Iterator[int]:
    consumer = Consumer(
        {
            "bootstrap.servers": address,
            "client.id": client,
            "group.id": unique("group"),
            "auto.offset.reset": "earliest",
            "fetch.message.max.bytes": 110_000,
            "queued.max.messages.kbytes": 200,
        }
    )
    consumer.subscribe([topic])
    done = 0
    try:
        while True:
            done += sum(len(message.value() or b"") for message in consumer.consume(100, 0.1))
            yield done
    finally:
        consumer.close()


def python_consuming(address: str, client: str, topic: str) -> Iterator[int]:
    consumer = KafkaConsumer(
        topic,
        bootstrap_servers=address,
        client_id=client,
        auto_offset_reset="earliest",
        max_partition_fetch_bytes=110_000,
    )
    done = 0
    try:
        while True:
            polled = consumer.poll(100)
            done += sum(len(record.value) for records in polled.values() for record in records)
            yield done
    finally:
        consumer.close()


def reached(progress: Iterator[int], warm_s: float = 4.0) -> float:
    """Return the rate in bytes per second after the first windows, measured between two moments at which
    bytes arrived.
    """
    began_s = time.monotonic()
    first: tuple[float, int] | None = None
    last = (0.0, 0)
    for done in progress:
        now_s = time.monotonic() - began_s
        if now_s > warm_s and done > last[1]:
            first = first or (now_s, done)
            last = (now_s, done)
        if now_s > warm_s + SECONDS:
            break
        last = (now_s, done) if first is None else last
    progress.close()  # type: ignore[attr-defined]
    assert first is not None
    return (last[1] - first[1]) / (last[0] - first[0])


def filled(address: str, topic: str, size_bytes: int) -> None:
    with Connection(address) as connection:
        for _ in range(size_bytes // 50_000):
            produce(connection, topic, 50_000)


Client = Callable[[str, str, str], Iterator[int]]

PRODUCERS: list[Client] = [confluent_producing, python_producing]
CONSUMERS: list[Client] = [confluent_consuming, python_consuming]


@pytest.mark.parametrize("client", PRODUCERS if enabled() else PRODUCERS[:1])
def test_producers_reach_but_never_exceed_their_quota(broker: KafkaCompatBroker, client: Client) -> None:
    name, topic = unique("client"), unique("topic")
    create_topic(broker.address, topic)
    alter(broker.address, ("", name), producer_byte_rate=RATE)
    rate = reached(client(broker.address, name, topic))
    # A quota is an upper limit. How closely a client approaches it also depends on the machine.
    assert (0.9 if enabled() else 0.7) * RATE <= rate <= 1.1 * RATE


@campaign_only
@pytest.mark.parametrize("client", CONSUMERS)
def test_consumers_reach_but_never_exceed_their_quota(broker: KafkaCompatBroker, client: Client) -> None:
    name, topic = unique("client"), unique("topic")
    create_topic(broker.address, topic)
    filled(broker.address, topic, int(RATE * (SECONDS + 10)))
    alter(broker.address, ("", name), consumer_byte_rate=RATE)
    assert reached(client(broker.address, name, topic)) == pytest.approx(RATE, rel=0.1)


def log_sizes(broker: KafkaCompatBroker, topic: str) -> Iterator[int]:
    folder = broker.log_dir / f"{topic}-0"
    while True:
        yield sum(file.stat().st_size for file in folder.glob("*.log"))
        time.sleep(0.01)  # interval of measuring


@contextmanager
def going_on(progress: Iterator[int]) -> Iterator[None]:
    """Run a client in a thread within the block."""
    stop = threading.Event()

    def go_on() -> None:
        for _ in progress:
            if stop.is_set():
                return

    thread = threading.Thread(target=go_on)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()


@campaign_only
def test_a_producer_with_acks_0_reaches_but_never_exceeds_its_quota(broker: KafkaCompatBroker) -> None:
    """With acks=0, the connection is muted, and the client's buffers fill."""
    name, topic = unique("client"), unique("topic")
    create_topic(broker.address, topic)
    alter(broker.address, ("", name), producer_byte_rate=RATE)
    with going_on(confluent_producing(broker.address, name, topic, acks="0")):
        assert reached(log_sizes(broker, topic)) == pytest.approx(RATE, rel=0.1)


@campaign_only
def test_a_throttled_client_does_not_slow_down_other_clients(broker: KafkaCompatBroker) -> None:
    """The p99 latency of a bystander is compared with and without a producer that is throttled."""
    name, topic = unique("client"), unique("topic")
    create_topic(broker.address, topic)
    alter(broker.address, ("", name), producer_byte_rate=RATE)

    def p99_ms() -> float:
        with Bystander(broker.port, broker.pid, 5) as bystander:
            time.sleep(SECONDS)  # the bystander measures during this time
        assert not bystander.trouble
        return statistics.quantiles(bystander.latencies_ms, n=100)[-1]

    with going_on(confluent_producing(broker.address, name, topic)):
        # Let the producer use the initial burst of all windows first.
        time.sleep(4)
        beside_ms = p99_ms()
    alone_ms = p99_ms()
    assert beside_ms <= 1.2 * alone_ms


USER = "ANONYMOUS"
LEVELS: list[Who] = [
    ("", None),
    ("", "client"),
    (None, ""),
    (None, None),
    (None, "client"),
    (USER, ""),
    (USER, None),
    (USER, "client"),
]
"""From the least specific to the most specific."""


@campaign_only
@pytest.mark.parametrize("kind", ["producer_byte_rate", "consumer_byte_rate"])
@pytest.mark.parametrize("level", range(len(LEVELS)))
def test_a_quota_at_each_level_overrides_less_specific_quotas(
    start_broker: StartBroker, level: int, kind: str
) -> None:
    broker = start_broker(WINDOWS)
    name, topic = unique("client"), unique("topic")
    create_topic(broker.address, topic)
    filled(broker.address, topic, int(RATE * (SECONDS + 10)))
    for number, (user, client_id) in enumerate(LEVELS[: level + 1]):
        who = (user, name if client_id == "client" else client_id)
        alter(broker.address, who, **{kind: RATE if number == level else RATE // 10})
    client = confluent_producing if kind == "producer_byte_rate" else python_consuming
    assert reached(client(broker.address, name, topic)) == pytest.approx(RATE, rel=0.1)


def perf_test(broker: KafkaCompatBroker | GenuineKafka, name: str, topic: str) -> float:
    """Return the rate in records per second of Kafka's own producer, over a time in which bursts do not
    matter.
    """
    arguments = ("--num-records", "60000", "--record-size", "1000", "--throughput", "-1")
    properties = (f"bootstrap.servers={broker.address}", f"client.id={name}")
    tool = "kafka-producer-perf-test"
    producer = ("--producer-props", *properties)
    printed = java.run(tool, "--topic", topic, *arguments, *producer, timeout_s=150).stdout
    return float(re.findall(r"60000 records sent, ([\d.]+) records/sec", printed)[-1])


@campaign_only
def test_the_java_producer_reaches_the_same_rate_as_on_apache_kafka(
    shared_broker: KafkaCompatBroker, genuine: GenuineKafka
) -> None:
    rates = []
    for broker in (shared_broker, genuine):
        name, topic = unique("client"), unique("topic")
        create_topic(broker.address, topic)
        alter(broker.address, ("", name), producer_byte_rate=1_000_000)
        await_notices(broker.address)
        rates.append(perf_test(broker, name, topic))
    assert rates[0] == pytest.approx(rates[1], rel=0.1)
