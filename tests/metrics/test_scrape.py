"""/metrics: topics and groups with the names of kafka_exporter, for a broker and for a cluster."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Consumer
from hypothesis import given
from hypothesis import strategies as st

from kafka_compat.metrics.family import GAUGE, Family, Labels
from kafka_compat.metrics.prometheus_text import next_piece, text_of
from kafka_compat.testing import KafkaBroker, KafkaCluster
from tests.metrics.groups import commit, produce
from tests.metrics.scraping import Scrape, get, samples_of
from tests.support.ports import free_port
from tests.support.process import wait_until
from tests.support.servers import KafkaCompatBroker
from tests.support.steps import result_of

BY_PARTITION = "kafka_topic_partition_"


@pytest.fixture(scope="module")
def broker() -> Iterator[KafkaBroker]:
    with KafkaBroker() as running:
        yield running


def test_a_scrape_contains_topics_and_groups(broker: KafkaBroker) -> None:
    broker.create_topic("flights", partitions=3)
    produce(broker.bootstrap_servers, "flights", [1_000] * 7, partition=1)
    produce(broker.bootstrap_servers, "flights", [1_000] * 2, partition=2)
    group = 'say "hé"\\now\nthere'
    commit(broker.bootstrap_servers, group, {("flights", 1): 3, ("flights", 2): 2})
    seen = Scrape(broker.control.url)
    assert seen.value("kafka_brokers") == 1
    broker_id = broker.control.brokers()[0]["broker"]
    assert seen.value("kafka_broker_info", id=broker_id, address=broker.bootstrap_servers) == 1
    assert seen.value("kafka_topic_partitions", topic="flights") == 3
    for partition, end in enumerate((0, 7, 2)):
        told = {
            name.removeprefix(BY_PARTITION): value
            for (name, labels), value in seen.samples.items()
            if name.startswith(BY_PARTITION)
            and labels == {("topic", "flights"), ("partition", str(partition))}
        }
        assert told == {
            "current_offset": end,
            "oldest_offset": 0,
            "in_sync_replica": 1,
            "leader": broker_id,
            "leader_is_preferred": 1,
            "replicas": 1,
            "under_replicated_partition": 0,
        }
    of_group = {"consumergroup": group, "topic": "flights"}
    for partition, (offset, lag) in enumerate([(-1, -1), (3, 4), (2, 0)]):
        of_partition = {**of_group, "partition": partition}
        assert seen.value("kafka_consumergroup_current_offset", **of_partition) == offset
        assert seen.value("kafka_consumergroup_lag", **of_partition) == lag
    assert seen.value("kafka_consumergroup_lag_seconds", **of_group, partition=0) is None
    # Like kafka_exporter, the sum of offsets includes -1 for a missing offset; the sum of lags does not.
    assert seen.value("kafka_consumergroup_current_offset_sum", **of_group) == 4
    assert seen.value("kafka_consumergroup_lag_sum", **of_group) == 4
    assert seen.value("kafka_consumergroup_members", consumergroup=group) == 0


def test_public_metrics_do_not_include_partitions(broker: KafkaBroker) -> None:
    broker.create_topic("counted", partitions=4)
    for partition in range(3):
        produce(broker.bootstrap_servers, "counted", [1_000] * 5, partition=partition)
    commit(broker.bootstrap_servers, "counting", {("counted", 0): 1, ("counted", 1): 5})
    all_of_it, few = Scrape(broker.control.url), Scrape(broker.control.url, "/public_metrics")
    assert not any("partition" in dict(labels) for _, labels in few.samples)
    without = {key for key in all_of_it.samples if "partition" not in dict(key[1])}
    assert set(few.samples) <= without
    # Among the APIs, only those that read or write records are included.
    left_out = {dict(labels)["request"] for _, labels in without - set(few.samples)}
    assert {"Metadata", "OffsetCommit"} <= left_out and not left_out & {"Produce", "Fetch", "FetchConsumer"}
    assert few.value("kafka_topic_current_offset_sum", topic="counted") == 15
    assert few.value("kafka_topic_oldest_offset_sum", topic="counted") == 0
    assert few.value("kafka_topic_under_replicated_partitions", topic="counted") == 0
    assert few.value("kafka_topic_leaderless_partitions", topic="counted") == 0
    assert few.value("kafka_consumergroup_lag_sum", consumergroup="counting", topic="counted") == 4
    assert few.value("kafka_consumergroup_lag_seconds_max", consumergroup="counting") is not None


def test_a_scrape_contains_group_members_but_not_deleted_topics(broker: KafkaBroker) -> None:
    broker.create_topic("going")
    produce(broker.bootstrap_servers, "going", [1_000])
    consumer = Consumer({"bootstrap.servers": broker.bootstrap_servers, "group.id": "readers"})
    consumer.subscribe(["going"])
    try:
        broker.control.await_group("readers", state="Stable", members=1)
        assert Scrape(broker.control.url).value("kafka_consumergroup_members", consumergroup="readers") == 1
    finally:
        consumer.close()
    commit(broker.bootstrap_servers, "gone", {("going", 0): 1})
    broker.reset()
    seen = Scrape(broker.control.url)
    assert not any(dict(labels).keys() & {"topic", "consumergroup"} for _, labels in seen.samples)
    assert seen.value("kafka_server_replicamanager_partitioncount") == 0


def test_a_cluster_in_one_process_is_scraped_as_a_single_target() -> None:
    with KafkaCluster(3) as cluster:
        cluster.create_topic("t", partitions=6)
        for partition in range(6):
            produce(cluster.bootstrap_servers, "t", [1_000] * (partition + 1), partition=partition)
        commit(cluster.bootstrap_servers, "g", {("t", partition): 1 for partition in range(6)})
        seen = Scrape(cluster.control.url)
        assert seen.value("kafka_brokers") == 3
        for partition in range(6):
            at = {"topic": "t", "partition": partition}
            told = cluster.control.partition("t", partition)
            assert seen.value(f"{BY_PARTITION}leader", **at) == told["leader"]
            assert seen.value(f"{BY_PARTITION}in_sync_replica", **at) == len(told["isr"]) == 3
            assert seen.value(f"{BY_PARTITION}current_offset", **at) == partition + 1
            assert seen.value("kafka_consumergroup_lag", consumergroup="g", **at) == partition
        follower = next(each for each in told["replicas"] if each != told["leader"])
        cluster.control.shrink_isr("t", 5, broker=follower)

        def shrunk() -> bool:
            seen = Scrape(cluster.control.url)
            return seen.value(f"{BY_PARTITION}under_replicated_partition", topic="t", partition=5) == 1

        wait_until(shrunk, 20, "the shrunk ISR", 0.05)
        seen = Scrape(cluster.control.url, "/public_metrics")
        assert seen.value("kafka_topic_under_replicated_partitions", topic="t") == 1


def test_scraping_requires_the_token(tmp_path: Path) -> None:
    port = free_port()
    settings = {
        "kafka.compat.http.listener": f"http://0.0.0.0:{port}",
        "kafka.compat.http.token": "a secret token",
    }
    broker = KafkaCompatBroker(tmp_path, settings)
    broker.start()
    try:
        url = f"http://127.0.0.1:{port}"
        for path in ("/metrics", "/public_metrics"):
            assert get(url, path)[0] == 401
            assert get(url, path, Authorization="Bearer a secret token")[0] == 200
    finally:
        broker.stop()


@given(
    st.dictionaries(
        st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\r"), max_size=12),
        st.one_of(st.integers(-1, 2**53), st.floats(0, 1e9)),
        max_size=20,
    )
)
def test_labels_with_any_content_are_unchanged_after_parsing(values: dict[str, float]) -> None:
    samples = [(Labels.of({"group": label, "partition": "0"}), value) for label, value in values.items()]
    text = result_of(next_piece(text_of([Family("kafka_x", GAUGE, "Some help", samples)]))).decode()
    expected = {
        ("kafka_x", frozenset([("group", label), ("partition", "0")])): value
        for label, value in values.items()
    }
    assert samples_of(text) == expected
