"""The names of the JMX exporter: each selector of dashboards and alert rules that circulate has data from us
where it has data from genuine Kafka with the exporter, and the families are alike in types and labels.

selectors.txt has the selectors, and says which have no data of genuine Kafka; a campaign asks Kafka itself.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import pytest
from confluent_kafka import Consumer, KafkaException, Producer
from confluent_kafka.admin import AdminClient, NewTopic
from prometheus_client.parser import text_string_to_metric_families

from tests.metrics import jmx_agent
from tests.metrics.prometheus import VARIABLE, program, prometheus
from tests.metrics.scraping import Samples, get, samples_of
from tests.quotas.clients import alter, await_notices
from tests.support import campaign
from tests.support.ports import free_port
from tests.support.process import wait_until
from tests.support.servers import KafkaCompatBroker, ZooKeeper

TOPIC, SMALL = "flights", "odd"
RECORDS = 300
DIALECTS = ("jmx-exporter", "confluent")

GENEROUS = {"producer_byte_rate": 1e9, "consumer_byte_rate": 1e9, "request_percentage": 1e4}
"""Quotas that hold nobody back."""
OF_ZOOKEEPER = re.compile("zookeeper")


class Selector(NamedTuple):
    """One of Prometheus's, as `name{label="value"}`."""

    text: str
    dialect: str
    has_data: bool

    def picks(self, samples: Samples) -> bool:
        """Whether any sample is selected."""
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
def work(address: str) -> Iterator[None]:
    """What a broker is asked: records in and out, in a transaction, too large ones, a group with a member; by
    clients with quotas.
    """
    alter(address, ("", None), **GENEROUS)
    await_notices(address)
    admin = AdminClient({"bootstrap.servers": address})
    for future in admin.create_topics([NewTopic(TOPIC, 3, 1), NewTopic(SMALL, 1, 1)]).values():
        future.result(60)
    producer = Producer({"bootstrap.servers": address})
    for number in range(RECORDS):
        producer.produce(TOPIC, b"v" * 100, str(number).encode())
    assert producer.flush(60) == 0
    large = Producer({"bootstrap.servers": address, "message.max.bytes": 3_000_000, "retries": 0})
    large.produce(SMALL, b"v" * 2_000_000)
    large.flush(60)
    transactional = Producer({"bootstrap.servers": address, "transactional.id": "tx"})
    transactional.init_transactions(60)
    transactional.begin_transaction()
    transactional.produce(SMALL, b"v")
    transactional.commit_transaction(60)
    consumer = Consumer(
        {"bootstrap.servers": address, "group.id": "readers", "auto.offset.reset": "earliest"}
    )
    consumer.subscribe([TOPIC])
    try:
        seen = 0

        def all_read() -> bool:
            nonlocal seen
            for message in consumer.consume(RECORDS, 0.5):
                if message.error() is not None:
                    raise KafkaException(message.error())
                seen += 1
            return seen == RECORDS

        wait_until(all_read, 60, "all records are read", 0)
        consumer.commit(asynchronous=False)
        yield
    finally:
        consumer.close()


@contextmanager
def our_broker(
    directory: Path, dialect: str, zookeeper: ZooKeeper | None = None
) -> Iterator[tuple[str, str]]:
    """Its address, and where it serves HTTP."""
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


def kinds(text: str) -> dict[str, str]:
    """The types of Kafka's families by their names."""
    lines = re.findall(r"^# TYPE (kafka_\S+) (\S+)$", text, re.MULTILINE)
    return dict(lines)


def label_names(text: str) -> dict[str, set[frozenset[str]]]:
    found: dict[str, set[frozenset[str]]] = {}
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            found.setdefault(sample.name, set()).add(frozenset(sample.labels))
    return found


@pytest.mark.parametrize("dialect", DIALECTS)
def test_what_dashboards_ask_for_is_there(dialect: str, tmp_path: Path) -> None:
    with our_broker(tmp_path, dialect) as (address, url), work(address):
        samples = samples_of(get(url, "/metrics")[1].decode())
    for selector in selectors():
        if selector.dialect == dialect and not OF_ZOOKEEPER.search(selector.text):
            assert selector.picks(samples) == selector.has_data, selector.text


@pytest.mark.skipif(not campaign.enabled(), reason="a campaign's (--campaign)")
def test_prometheus_finds_what_dashboards_ask_for(tmp_path: Path) -> None:
    found = program()
    if found is None:
        pytest.skip(f"there is no prometheus on the PATH, and {VARIABLE} names none")
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


@pytest.mark.skipif(not campaign.enabled(), reason="a campaign's (--campaign)")
def test_as_genuine_kafka_with_the_exporter(tmp_path: Path) -> None:
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
