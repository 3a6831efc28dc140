"""The metrics that kafka_exporter reports for this project's brokers: the brokers export the same samples,
with the same labels, values, types and help texts. The campaign also compares them with Apache Kafka with the
same contents.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from confluent_kafka import Consumer, TopicPartition
from confluent_kafka.admin import AdminClient
from prometheus_client.parser import text_string_to_metric_families

from kafka_compat.testing import KafkaBroker, KafkaCluster
from tests.metrics.exporter import kafka_exporter
from tests.metrics.groups import commit, create_topic, produce, transaction
from tests.metrics.kafka_exporter import FAMILIES, of_kafka
from tests.metrics.scraping import Samples, get
from tests.support import campaign
from tests.support.process import wait_until
from tests.support.servers import GenuineKafka

PREFIX = "seen-"
ODD = f'{PREFIX}say "hé"\\now'


@contextmanager
def content(address: str) -> Iterator[None]:
    """Create topics and groups of many kinds, including a group with a member and an open transaction."""
    now_ms = int(time.time() * 1000)
    plain, empty, mixed = (PREFIX + name for name in ("plain", "empty", "mixed"))
    for topic, partitions in ((plain, 3), (empty, 2), (mixed, 1)):
        create_topic(address, topic, partitions)
    for partition, count in enumerate((7, 0, 4)):
        produce(address, plain, [now_ms] * count, partition=partition)
    for end in ("commit", "abort"):
        transaction(address, mixed, [now_ms] * 2, end=end)
    transaction(address, mixed, [now_ms] * 3, end="open")
    admin = AdminClient({"bootstrap.servers": address})
    for future in admin.delete_records([TopicPartition(plain, 0, 5)]).values():
        future.result(30)
    commit(address, f"{PREFIX}behind", {(plain, 0): 2, (mixed, 0): 1})
    commit(address, ODD, {(plain, 0): 7, (plain, 2): 0, (empty, 1): 0})
    member = Consumer(
        {
            "bootstrap.servers": address,
            "group.id": f"{PREFIX}with a member",
            "enable.auto.commit": False,
            "auto.offset.reset": "earliest",
        }
    )
    member.subscribe([plain])
    try:
        deadline_s = time.monotonic() + 60
        while len(member.assignment()) < 3:
            member.poll(0.1)
            assert time.monotonic() < deadline_s
        wanted = [TopicPartition(plain, 2, 3)]
        member.commit(offsets=wanted, asynchronous=False)
        yield
    finally:
        member.close()


def exported(address: str, folder: Path) -> str:
    """Return the metrics of kafka_exporter."""
    with kafka_exporter(address, folder / "kafka_exporter.log") as url:
        found = [""]

        def has_groups() -> bool:
            found[0] = get(url, "/metrics")[1].decode()
            return f'kafka_consumergroup_lag{{consumergroup="{PREFIX}behind"' in found[0]

        wait_until(has_groups, 30, "kafka_exporter's metrics of groups", 0.2)
        return found[0]


def meanings(text: str) -> dict[str, tuple[str, str]]:
    """Map each family to its type and help."""
    return {
        family.name: (family.type, family.documentation) for family in text_string_to_metric_families(text)
    }


@pytest.mark.parametrize("kind", [KafkaBroker, KafkaCluster])
def test_our_metrics_match_those_of_kafka_exporter(kind: type[KafkaBroker], tmp_path: Path) -> None:
    with kind() as broker, content(broker.bootstrap_servers):
        theirs = exported(broker.bootstrap_servers, tmp_path)
        ours = get(broker.control.url, "/metrics")[1].decode()
    expected, found = of_kafka(theirs), of_kafka(ours)
    assert {name for name, _ in expected} == FAMILIES
    assert {key: found.get(key) for key in expected} == expected
    # The broker exports no other samples of these families.
    assert {key for key in found if key[0] in FAMILIES} == set(expected)
    for name in FAMILIES:
        assert meanings(ours)[name] == meanings(theirs)[name]


@pytest.mark.skipif(not campaign.enabled(), reason="needs --campaign")
def test_our_metrics_match_those_of_apache_kafka_with_kafka_exporter(
    genuine: GenuineKafka, tmp_path: Path
) -> None:
    def comparable(text: str) -> Samples:
        """Keep the comparable samples. Leaders are excluded, because the broker ids differ."""
        return {
            key: value
            for key, value in of_kafka(text).items()
            if any(label.startswith(PREFIX) for name, label in key[1] if name in ("topic", "consumergroup"))
            and key[0] in FAMILIES - {"kafka_topic_partition_leader"}
        }

    with content(genuine.address):
        theirs = comparable(exported(genuine.address, tmp_path))
    with KafkaBroker() as broker, content(broker.bootstrap_servers):
        ours = comparable(get(broker.control.url, "/metrics")[1].decode())
    assert len(theirs) > 60
    assert ours == theirs
