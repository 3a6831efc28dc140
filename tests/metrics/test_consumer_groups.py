"""Metrics of groups with the consumer protocol (KIP-848), with the names and values of Apache Kafka 4.4."""

from __future__ import annotations

from confluent_kafka import Consumer, TopicPartition
from prometheus_client.parser import text_string_to_metric_families

from kafka_compat.testing import KafkaBroker
from tests.control.clients import produce
from tests.metrics.scraping import get
from tests.support.process import wait_until

PREFIX = "kafka_server_group_coordinator_metrics_"


def scraped(broker: KafkaBroker) -> dict[tuple[str, ...], float]:
    """Return the samples of groups by name and label values. The prefix of the coordinator is omitted."""
    text = get(broker.control.url, "/metrics")[1].decode()
    return {
        (sample.name.removeprefix(PREFIX), *sample.labels.values()): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
        if sample.name.startswith((PREFIX, "kafka_consumergroup_", "kafka_coordinator_group_"))
    }


def member(broker: KafkaBroker, group: str, protocol: str, partitions: int = 2) -> Consumer:
    settings = {"group.id": group, "group.protocol": protocol, "enable.auto.commit": False, "log_level": 0}
    client = Consumer({"bootstrap.servers": broker.bootstrap_servers, **settings})
    client.subscribe(["t"])
    wait_until(lambda: client.poll(0.05) is None and len(client.assignment()) == partitions, 20, "partitions")
    return client


def test_groups_are_counted_by_protocol_and_state() -> None:
    with KafkaBroker() as broker:
        broker.create_topic("t", 2)
        produce(broker, "t", 10)
        modern, classic = member(broker, "modern", "consumer"), member(broker, "classic", "classic")
        offsets = [TopicPartition("t", partition, 4) for partition in range(2)]
        modern.commit(offsets=offsets, asynchronous=False)
        broker.control.await_group("modern", state="Stable", members=1)
        found = scraped(broker)
        assert (found["group_count", "classic"], found["group_count", "consumer"]) == (1, 1)
        assert found["classic_group_count", "Stable"] == found["consumer_group_count", "Stable"] == 1
        assert found["consumer_group_count", "Empty"] == found["consumer_group_count", "Reconciling"] == 0
        assert found["kafka_coordinator_group_groupmetadatamanager_numgroups",] == 1, "classic groups only"
        assert (found["offset_count",], found["offset_commit_count",]) == (2, 2)
        assert found["consumer_group_rebalance_count",] == 1
        assert found["group_completed_rebalance_count",] == 1
        assert found["kafka_consumergroup_members", "modern"] == 1
        assert found["kafka_consumergroup_lag_sum", "modern", "t"] == 2
        modern.close()
        classic.close()
        broker.control.await_group("modern", state="Empty", members=0)
        found = scraped(broker)
        assert found["consumer_group_count", "Empty"] == 1
        assert found["consumer_group_rebalance_count",] == 1, "the departure of a member does not count"
        assert found["kafka_consumergroup_members", "modern"] == 0
