"""Pushes of metrics to an OTLP receiver, which must equal /metrics."""

from __future__ import annotations

import math
import re
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from opentelemetry.proto.metrics.v1.metrics_pb2 import MetricsData

from kafka_compat.protocol.api_keys import ApiKey
from kafka_compat.testing import KafkaBroker, KafkaCluster
from tests.conformance.wire import Connection
from tests.metrics.groups import commit, produce
from tests.metrics.scraping import Scrape
from tests.otlp.receiver import Push, Receiver
from tests.processes.command import Command
from tests.support.ports import free_port
from tests.telemetry.pushing import push

PARTITIONS = 200
"""The number of topics, which is large enough that a push needs several requests."""
INTERVAL = {"kafka.compat.otlp.interval.ms": "300"}


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with Receiver(free_port()) as running:
        yield running


def _told_at(receiver: Receiver) -> dict[str, str]:
    return {"kafka.compat.otlp.endpoint": receiver.url, **INTERVAL}


def _push_of_a_client(address: str) -> None:
    """Push metrics from a client (KIP-714)."""
    told = MetricsData()
    metric = told.resource_metrics.add().scope_metrics.add().metrics.add(name="org.apache.kafka.producer.x")
    metric.gauge.data_points.add(as_double=4.5).attributes.add(key="topic").value.string_value = 'a "t"\\'
    with Connection(address) as connection:
        assert push(connection, told.SerializeToString()) == 0


def _cluster_id(address: str) -> str:
    with Connection(address.split(",")[0]) as connection:
        found: str = connection.ask(ApiKey.DESCRIBE_CLUSTER, 0, {})["cluster_id"]
        return found


@pytest.mark.parametrize("dialect", ["jmx-exporter", "confluent"])
def test_names_labels_types_and_values_match_the_metrics_endpoint(receiver: Receiver, dialect: str) -> None:
    before_ns = time.time_ns()
    with KafkaBroker({**_told_at(receiver), "kafka.compat.metrics.dialect": dialect}) as broker:
        broker.create_topic("flights", partitions=PARTITIONS)
        produce(broker.bootstrap_servers, "flights", [1_000] * 7, partition=1)
        commit(broker.bootstrap_servers, 'say "hé"\\now\nthere', {("flights", 1): 3})
        _push_of_a_client(broker.bootstrap_servers)
        seen = Scrape(broker.control.url)
        pushed = receiver.next_push()
        again = Scrape(broker.control.url)
        cluster_id = _cluster_id(broker.bootstrap_servers)
        broker_id = broker.control.brokers()[0]["broker"]
    assert pushed.samples.keys() == seen.samples.keys() == again.samples.keys()
    told = dict(re.findall(r"^# TYPE (\S+) (\S+)$", seen.text, re.MULTILINE))
    expected = {name: kind if kind == "counter" else "gauge" for name, kind in told.items()}
    assert pushed.kinds == {name: expected[name] for name in seen.names()}
    assert {"counter", "gauge"} == set(pushed.kinds.values())
    # Every scrape opens a file descriptor, which process metrics count.
    of_process = {key for key in seen.samples if key[0].startswith("process_")}
    still = {key for key, value in seen.samples.items() if again.samples[key] == value} - of_process
    assert len(still) > 0.9 * len(seen.samples)
    assert {key: pushed.samples[key] for key in still} == {key: seen.samples[key] for key in still}
    for key in seen.samples.keys() - still - of_process:
        low, high = sorted((seen.samples[key], again.samples[key]))
        assert math.isnan(low) or expected[key[0]] != "counter" or low <= pushed.samples[key] <= high, key
    pushed_by_client = [value for (name, _), value in pushed.samples.items() if name.endswith("producer_x")]
    assert pushed_by_client == [4.5]
    assert pushed.resource == {
        "service.name": "kafka-compat",
        "service.instance.id": f"{cluster_id}/{broker_id}",
        "kafka.cluster.id": cluster_id,
        "kafka.node.id": str(broker_id),
    }
    (started_ns,) = pushed.started_ns
    assert len(pushed.times_ns) > 1 and before_ns < started_ns < min(pushed.times_ns)
    assert max(pushed.times_ns) < time.time_ns()


def _requests(pushed: Push) -> float:
    """Return the number of counted requests."""
    return sum(
        value
        for (name, _), value in pushed.samples.items()
        if name == "kafka_network_requestmetrics_requests_total"
    )


def test_metrics_are_pushed_with_headers_even_without_an_http_listener(receiver: Receiver) -> None:
    settings = {
        **_told_at(receiver),
        "kafka.compat.http.listener": "",
        "kafka.compat.control.enable": "false",
        "kafka.compat.otlp.headers": "Authorization=Bearer%20a%2Cb, x-scope=7",
    }
    with KafkaBroker(settings) as broker:
        _cluster_id(broker.bootstrap_servers)
        pushed = receiver.next_push()
    assert _requests(pushed) > 0
    headers = receiver.requests[0].headers
    assert (headers["Authorization"], headers["x-scope"]) == ("Bearer a,b", "7")
    assert headers["Content-Type"] == "application/x-protobuf"


def test_metrics_of_brokers_in_one_process_are_pushed_as_one_instance(receiver: Receiver) -> None:
    with KafkaCluster(2, _told_at(receiver)) as cluster:
        cluster_id = _cluster_id(cluster.bootstrap_servers)
        pushed = receiver.next_push()
    assert pushed.resource["kafka.node.id"] == "1,2"
    assert pushed.resource["service.instance.id"] == f"{cluster_id}/1,2"
    assert pushed.samples["kafka_brokers", frozenset()] == 2


def test_metrics_of_each_process_are_pushed_as_a_separate_instance(
    receiver: Receiver, tmp_path: Path
) -> None:
    with Command(tmp_path, 2, _told_at(receiver)):
        receiver.wait(
            "pushes of both brokers",
            lambda requests: (
                {
                    attribute.value.string_value
                    for each in requests
                    for attribute in each.message.resource_metrics[0].resource.attributes
                    if attribute.key == "kafka.node.id"
                }
                == {"1", "2"}
            ),
        )


def test_the_otlp_packages_are_not_imported_without_an_endpoint(receiver: Receiver) -> None:
    """Both OTLP features need the protobuf library, which is mapped into the process once it is imported."""
    with KafkaBroker() as without, KafkaBroker(_told_at(receiver)) as pushing:
        receiver.next_push()
        loaded = ["_upb" in Path(f"/proc/{each.pid}/maps").read_text() for each in (without, pushing)]
    assert loaded == [False, True]
