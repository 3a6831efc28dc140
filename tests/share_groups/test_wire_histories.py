"""Share groups on our brokers, standalone and on ZooKeeper, behave as on Apache Kafka 4.4: the same histories
lead to the same acquired records, delivery counts, errors, start offsets and stored states.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.groups.consumer.brokers import StandaloneBroker
from tests.share_groups.brokers import ShareBrokers
from tests.share_groups.wire_histories import WIRE_SETTINGS, play_at_once
from tests.support import campaign
from tests.support.kafka_jars import NEWEST_VERSION
from tests.support.servers import GenuineKafka

SEEDS = range(500 if campaign.enabled() else 3)
AT_ONCE = 40


@pytest.fixture(scope="module")
def kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[GenuineKafka]:
    directory = tmp_path_factory.mktemp("kafka")
    running = GenuineKafka(directory, WIRE_SETTINGS, version=NEWEST_VERSION, mode="kraft")
    running.start(180)
    yield running
    running.stop()


def test_histories_of_share_groups_on_a_standalone_broker_are_the_same_as_on_apache_kafka(
    kafka: GenuineKafka, tmp_path_factory: pytest.TempPathFactory
) -> None:
    with StandaloneBroker(tmp_path_factory.mktemp("ours"), WIRE_SETTINGS) as ours:
        assert play_at_once(kafka.address, ours, SEEDS, AT_ONCE) == {}


@pytest.mark.skipif(not campaign.enabled(), reason="starts ZooKeeper and three more brokers: with --campaign")
def test_histories_of_share_groups_on_three_brokers_with_zookeeper_are_the_same_as_on_apache_kafka(
    kafka: GenuineKafka, tmp_path_factory: pytest.TempPathFactory
) -> None:
    settings = {**WIRE_SETTINGS, "offsets.topic.num.partitions": "50"}
    directory = tmp_path_factory.mktemp("ours")
    with ShareBrokers(directory, session_timeout_ms=30_000, overrides=settings) as ours:
        assert play_at_once(kafka.address, ours, SEEDS, AT_ONCE, "-z") == {}


@pytest.mark.skipif(not campaign.enabled(), reason="tests the comparison itself: with --campaign")
def test_histories_of_share_groups_on_apache_kafka_do_not_depend_on_time(kafka: GenuineKafka) -> None:
    assert play_at_once(kafka.address, kafka.address, range(60), AT_ONCE, "-t") == {}
