"""Client metrics subscriptions with two of our brokers and Apache Kafka 3.9.1 on one ZooKeeper: a
subscription set on one of our brokers applies on the other. Apache Kafka, which supports subscriptions only
with KRaft, is not affected.
"""

from __future__ import annotations

import contextlib
import uuid
from collections.abc import Iterator

import pytest

from kafka_compat.protocol.api_keys import ApiKey
from kafka_compat.tools import registry
from tests.conformance.wire import Connection
from tests.support.process import wait_until
from tests.support.servers import GenuineKafka, KafkaCompatBroker, ZooKeeper

BROKER = 4
"""The resource type of brokers."""
_HTTP = {"kafka.compat.http.listener": "http://127.0.0.1:0"}


@pytest.fixture(scope="module")
def brokers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[GenuineKafka, list[str]]]:
    """The Apache Kafka broker, and the addresses of our brokers."""
    directory = tmp_path_factory.mktemp("together")
    zookeeper = ZooKeeper(directory / "zookeeper")
    genuine = GenuineKafka(directory / "genuine", {"broker.id": "1"}, zookeeper=zookeeper, heap="256M")
    place = {"zookeeper.connect": zookeeper.address, **_HTTP}
    ours = [KafkaCompatBroker(directory / each, {**place, "broker.id": each}) for each in ("2", "3")]
    with contextlib.ExitStack() as stack:
        for server in (zookeeper, genuine, *ours):
            stack.callback(server.stop)
            server.start()
        yield genuine, [each.address for each in ours]


def _asked_for(address: str) -> list[str]:
    """Return the metrics that the broker requests from a new client."""
    with Connection(address) as connection:
        request = {"client_instance_id": uuid.uuid4()}
        answer = connection.ask(ApiKey.GET_TELEMETRY_SUBSCRIPTIONS, 0, request)
    assert answer["error_code"] == 0
    metrics: list[str] = answer["requested_metrics"]
    return metrics


def _retention_ms(genuine: GenuineKafka) -> str:
    """Return the setting as the broker itself reports it."""
    resource = {"resource_type": BROKER, "resource_name": "1", "configuration_keys": ["log.retention.ms"]}
    request = {"resources": [resource], "include_synonyms": False, "include_documentation": False}
    with Connection(genuine.address) as connection:
        (found,) = connection.ask(ApiKey.DESCRIBE_CONFIGS, 4, request)["results"]
    value: str = found["configs"][0]["value"]
    return value


def test_a_subscription_applies_on_our_brokers_and_is_harmless_to_apache_kafka(
    brokers: tuple[GenuineKafka, list[str]],
) -> None:
    genuine, (one, other) = brokers
    assert [_asked_for(one), _asked_for(other)] == [[], []]

    def alter(tool: str, *line: str) -> None:
        assert registry.run(tool, ["--bootstrap-server", one, *line]) == 0

    alter("client-metrics", "--alter", "--name", "all", "--metrics", "a.,b.", "--interval", "1000")
    wait_until(
        lambda: sorted(_asked_for(other)) == ["a.", "b."], 30, "the subscription on the other broker", 0.05
    )
    alter("client-metrics", "--delete", "--name", "all")
    wait_until(lambda: _asked_for(other) == [], 30, "the subscription removed", 0.05)
    # Apache Kafka still applies later changes.
    change = ("--entity-type", "brokers", "--entity-default", "--add-config", "log.retention.ms=7200000")
    alter("configs", "--alter", *change)
    wait_until(lambda: _retention_ms(genuine) == "7200000", 30, "the setting in Apache Kafka", 0.05)
    told = genuine.log.read_text()
    assert "ERROR" not in told and "client-metrics" not in told, told
