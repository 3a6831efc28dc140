"""Metrics that librdkafka and Java clients push for a subscription, which appear at /metrics."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from confluent_kafka import Producer

from kafka_compat.testing import KafkaBroker
from kafka_compat.tools import registry
from tests.metrics.scraping import Scrape
from tests.support.java_tools import JavaTools
from tests.support.process import wait_until

SOFTWARE = "client_software_name"


@pytest.fixture(scope="module")
def broker() -> Iterator[KafkaBroker]:
    with KafkaBroker() as running:
        line = ["--alter", "--name", "all", "--metrics", "org.apache.kafka.producer.", "--interval", "100"]
        assert registry.run("client-metrics", ["--bootstrap-server", running.bootstrap_servers, *line]) == 0
        yield running


def _samples(broker: KafkaBroker, name: str, client_id: str) -> list[float]:
    """Return the samples of one client."""
    found = Scrape(broker.control.url).samples.items()
    return [value for (each, labels), value in found if each == name and ("client_id", client_id) in labels]


def _software(broker: KafkaBroker, client_id: str) -> str | None:
    """Return the software name of the client."""
    for name, labels in Scrape(broker.control.url).samples:
        if name == "kafka_client_info" and ("client_id", client_id) in labels:
            return dict(labels)[SOFTWARE]
    return None


def test_metrics_of_librdkafka_are_exported(broker: KafkaBroker) -> None:
    broker.create_topic("pushed")
    settings = {"bootstrap.servers": broker.bootstrap_servers, "enable.metrics.push": True}
    producer = Producer({**settings, "client.id": "native"})
    name = "org_apache_kafka_producer_record_queue_time_max"

    def is_told() -> bool:
        producer.produce("pushed", b"x")
        producer.poll(0)
        return any(value > 0 for value in _samples(broker, name, "native"))

    wait_until(is_told, 60, "metrics pushed by librdkafka", 0.1)
    assert _software(broker, "native") == "confluent-kafka-python"
    # The public metrics must not identify individual clients.
    few = Scrape(broker.control.url, "/public_metrics").samples
    assert not any("client_instance_id" in dict(labels) for _, labels in few)
    assert producer.flush(30) == 0


def test_metrics_of_java_clients_are_exported(broker: KafkaBroker) -> None:
    """The client sends for three seconds and pushes regularly. Its final push may be empty."""
    broker.create_topic("java")
    tools = JavaTools("3.9.1")
    try:
        done = tools.run(
            "kafka-producer-perf-test",
            *("--topic", "java", "--num-records", "300", "--record-size", "10", "--throughput", "100"),
            *("--producer-props", f"bootstrap.servers={broker.bootstrap_servers}", "client.id=java"),
        )
    finally:
        tools.close()
    told = Scrape(broker.control.url).text
    assert _software(broker, "java") == "apache-kafka-java", (done, told)
    (sent,) = _samples(broker, "org_apache_kafka_producer_record_send_total", "java")
    assert 0 < sent <= 300, told
