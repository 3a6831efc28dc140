"""Metric names of the JMX exporter: selectors from public dashboards and alert rules return data from this
project's broker if they return data from Apache Kafka with the exporter. Types and labels are equal.

selectors.txt contains the selectors, and marks those without data from Apache Kafka. The campaign checks this
with Apache Kafka itself.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.metrics import jmx_agent
from tests.metrics.jmx_names import DIALECTS, RECORDS, SMALL, TOPIC, kinds, label_names, work
from tests.metrics.prometheus import VARIABLE, program, prometheus
from tests.metrics.scraping import Samples, get, samples_of
from tests.support import campaign
from tests.support.ports import free_port
from tests.support.servers import KafkaCompatBroker, ZooKeeper

OF_ZOOKEEPER = re.compile("zookeeper")


class Selector(NamedTuple):
    """A Prometheus selector: `name{label="value"}`."""

    text: str
    dialect: str
    has_data: bool

    def picks(self, samples: Samples) -> bool:
        """Return whether the selector matches any sample."""
        name, _, conditions = self.text.partition("{")
        wanted = re.findall(r'(\w+)(=|!=)"([^"]*)"', conditions)
        return any(
            found == name
            and all((dict(labels).get(label, "") == value) == (op == "=") for label, op, value in wanted)
            for found, labels in samples
        )


def selectors() -> list[Selector]:
    found: dict[tuple[str, str], Selector] = {}
    dialect = ""
    for line in (Path(__file__).parent / "selectors.txt").read_text().splitlines():
        if line.startswith("["):
            dialect = line[1:].partition("]")[0]
        elif line and not line.startswith("#"):
            text = line.removeprefix("! ")
            found[dialect, text] = Selector(text, dialect, not line.startswith("! "))
    return list(found.values())


@contextmanager
def our_broker(
    directory: Path, dialect: str, zookeeper: ZooKeeper | None = None
) -> Iterator[tuple[str, str]]:
    """Start a broker. Return its address and the URL of its HTTP listener."""
    url = f"http://127.0.0.1:{free_port()}"
    settings = {"kafka.compat.http.listener": url, "kafka.compat.metrics.dialect": dialect}
    if zookeeper is not None:
        settings["zookeeper.connect"] = f"{zookeeper.address}/{dialect}"
        settings |= {"offsets.topic.replication.factor": "1", "transaction.state.log.min.isr": "1"}
        settings["transaction.state.log.replication.factor"] = "1"
    broker = KafkaCompatBroker(directory, settings)
    broker.start()
    try:
        yield broker.address, url
    finally:
        broker.stop()


@pytest.mark.parametrize("dialect", DIALECTS)
def test_selectors_of_kafka_dashboards_match_samples(dialect: str, tmp_path: Path) -> None:
    with our_broker(tmp_path, dialect) as (address, url), work(address):
        samples = samples_of(get(url, "/metrics")[1].decode())
    for selector in selectors():
        if selector.dialect == dialect and not OF_ZOOKEEPER.search(selector.text):
            assert selector.picks(samples) == selector.has_data, selector.text


@pytest.mark.skipif(not campaign.enabled(), reason="needs --campaign")
def test_prometheus_queries_of_dashboards_return_samples(tmp_path: Path) -> None:
    found = program()
    if found is None:
        pytest.skip(f"prometheus is not on the PATH, and {VARIABLE} is not set")
    with (
        our_broker(tmp_path / "1", "jmx-exporter") as (first, first_url),
        our_broker(tmp_path / "2", "confluent") as (second, second_url),
        work(first),
        work(second),
        prometheus(found, tmp_path, {"jmx-exporter": first_url, "confluent": second_url}) as server,
    ):
        for selector in selectors():
            if OF_ZOOKEEPER.search(selector.text):
                continue
            name, _, conditions = selector.text.partition("{")
            asked = f'{name}{{job="{selector.dialect}",{conditions or "}"}'
            assert bool(server.ask(asked)) == selector.has_data, asked
        topic = f'{{job="jmx-exporter",topic="{TOPIC}"}}'
        (sample,) = server.ask(f"kafka_server_brokertopicmetrics_messagesin_total{topic}")
        assert float(sample["value"][1]) == RECORDS
        assert server.ask(f"sum(rate(kafka_server_brokertopicmetrics_bytesin_total{topic}[1m]))")


@pytest.mark.skipif(not campaign.enabled(), reason="needs --campaign")
def test_metric_names_match_those_of_apache_kafka_with_the_jmx_exporter(tmp_path: Path) -> None:
    theirs: dict[str, list[str]] = {}
    ours: dict[str, str] = {}
    with jmx_agent.kafka_with_agent(tmp_path, {}) as (kafka, agent):
        with work(kafka.address):
            theirs["jmx-exporter"] = [
                agent.told(rules, lowercase_labels=False)
                for rules in (jmx_agent.jmx_exporter(), jmx_agent.strimzi())
            ]
            theirs["confluent"] = [agent.told(jmx_agent.confluent(), lowercase_labels=True)]
        assert kafka.zookeeper is not None
        for dialect in DIALECTS:
            folder = tmp_path / dialect
            with our_broker(folder, dialect, kafka.zookeeper) as (address, url), work(address):
                ours[dialect] = get(url, "/metrics")[1].decode()
    for dialect in DIALECTS:
        compare(dialect, theirs[dialect], ours[dialect])


def compare(dialect: str, theirs: list[str], ours: str) -> None:
    expected: Samples = {}
    types: dict[str, str] = {}
    labels: dict[str, set[frozenset[str]]] = {}
    for text in theirs:
        expected |= samples_of(text)
        types |= kinds(text)
        labels |= label_names(text)
    found, our_types, our_labels = samples_of(ours), kinds(ours), label_names(ours)
    wrong = [
        f"{selector.text}: genuine {selector.picks(expected)}, ours {selector.picks(found)}, "
        f"noted {selector.has_data}"
        for selector in selectors()
        if selector.dialect == dialect
        and not selector.text.startswith(("kafka_consumergroup_", "kafka_topic_", "kafka_broker"))
        and not selector.picks(expected) == selector.picks(found) == selector.has_data
    ]
    common = types.keys() & our_types.keys()
    wrong += [
        f"{name}: {types[name]}, and not {our_types[name]}"
        for name in common
        if types[name] != our_types[name]
    ]
    wrong += [
        f"{name}: labels {sorted(map(sorted, labels[name]))}, and not {sorted(map(sorted, our_labels[name]))}"
        for name in labels.keys() & our_labels.keys()
        if name.startswith("kafka_") and labels[name] != our_labels[name]
    ]
    assert not wrong, "\n".join(wrong)
    suffix = "_total" if dialect == "jmx-exporter" else "persec"
    for name in ("messagesin", "bytesin", "bytesout", "bytesrejected", "totalproducerequests"):
        for topic in (TOPIC, SMALL):
            key = (f"kafka_server_brokertopicmetrics_{name}{suffix}", frozenset({("topic", topic)}))
            assert found.get(key) == expected.get(key), key
    print(f"{dialect}: {len(common)} families in common, of {len(types)} there and {len(our_types)} here")
