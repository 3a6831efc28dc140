"""Log messages about slow requests, limited to one line per second."""

from __future__ import annotations

import re

from confluent_kafka import Consumer, Producer

from kafka_compat.api.slow_requests import SETTING
from kafka_compat.testing import KafkaBroker
from tests.logs.reading import lines_with, make_topic, wait_for
from tests.support.process import wait_until
from tests.support.servers import KafkaCompatBroker, StartBroker, run_kafka_compat


def produce(address: str, count: int = 1, **settings: object) -> None:
    given = {"bootstrap.servers": address, "client.id": "till", "linger.ms": 0, "log_level": 0, **settings}
    producer = Producer(given)
    for _ in range(count):
        producer.produce("orders", b"x")
        assert producer.flush(20) == 0


def consume(address: str, count: int, group: str = "g") -> None:
    consumer = Consumer(
        {"bootstrap.servers": address, "group.id": group, "auto.offset.reset": "earliest", "log_level": 0}
    )
    consumer.subscribe(["orders"])
    for _ in range(count):
        assert consumer.poll(20) is not None
    # A fetch without records waits for max.wait.ms.
    assert consumer.poll(0.8) is None
    consumer.close()


def set_threshold(broker: KafkaCompatBroker, change: str) -> None:
    named = ("--entity-type", "brokers", "--entity-name", "1", "--alter", change)
    ran = run_kafka_compat("configs", "--bootstrap-server", broker.address, *named)
    assert ran.returncode == 0, ran.stdout + ran.stderr


def test_a_healthy_broker_does_not_log_slow_requests(start_broker: StartBroker) -> None:
    """The intended waits of fetches and group joins are not logged, with or without the setting."""
    for settings in ({}, {SETTING: "600"}):
        broker = start_broker({**settings, "group.initial.rebalance.delay.ms": "700"})
        make_topic(broker, "orders")
        produce(broker.address, 20)
        consume(broker.address, 20)
        assert not lines_with(broker, "Slow request")


def test_the_threshold_can_be_changed_at_runtime(start_broker: StartBroker) -> None:
    """The first of many slow requests is logged immediately, and the others are summarized in one line per
    second.
    """
    broker = start_broker()
    make_topic(broker, "orders")
    produce(broker.address)
    assert not lines_with(broker, "Slow request")
    set_threshold(broker, f"--add-config={SETTING}=0")
    produce(broker.address, 50)
    told = wait_for(broker, "Further slow requests")
    first = lines_with(broker, "Slow request")[0]
    assert re.search(
        r"WARNING Slow request: \w+ v\d+ from client \S+ \(User:ANONYMOUS\) at 127\.0\.0\.1 on listener "
        r"PLAINTEXT took \d+ ms \(bytes received: \d+, bytes sent: \d+\)$",
        first,
    )
    left_out = sum(int(line.split("Further slow requests: ")[1].split(";")[0]) for line in told)
    assert left_out + len(lines_with(broker, "Slow request")) >= 50
    set_threshold(broker, f"--delete-config={SETTING}")
    before = broker.log.read_text()
    produce(broker.address, 50)
    assert len(broker.log.read_text()) - len(before) < 1000, "at most one summary line remains"


def test_a_slow_request_is_logged_with_its_times() -> None:
    """The wait that a consumer requests does not count; a delayed response does."""
    with KafkaBroker({SETTING: "1000"}) as broker:
        broker.create_topic("orders")
        produce(broker.bootstrap_servers)
        consume(broker.bootstrap_servers, 1)
        assert "Slow request" not in broker.log
        for api in ("Produce", "Fetch"):
            broker.control.fault(api=api, delay_ms=1500, count=1)
        produce(broker.bootstrap_servers)
        consume(broker.bootstrap_servers, 2, "another")
        wait_until(lambda: "Fetch" in broker.log, 10, "a slow fetch", 0.02)
        told = re.findall(r"(Produce|Fetch) v\d+ from client (\S+) .* took (\d+) ms", broker.log)
        assert [(api, client) for api, client, _ in told] == [("Produce", "till"), ("Fetch", "rdkafka")]
        assert all(1500 <= int(took_ms) < 3000 for _, _, took_ms in told)
