"""Subscribers of the metadata feed: each reacts to metadata changes."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from uuid import UUID

import pytest

from kafka_compat.broker import Broker, standalone_broker
from kafka_compat.broker.entrances import Entrances
from kafka_compat.clock import SystemClock
from kafka_compat.cluster.remote_coordinators import ClusterCoordinators
from kafka_compat.cluster.remote_markers import ClusterMarkerWriter
from kafka_compat.config import BrokerConfig
from kafka_compat.control.pulse import Pulse
from kafka_compat.errors import ErrorCode
from kafka_compat.metadata.cache import BrokerMetadata, MetadataCache, PartitionMetadata, TopicMetadata
from kafka_compat.metadata.config_manager import ResourceType
from kafka_compat.metadata.feed import ConfigChange
from kafka_compat.metadata.incremental_changes import Change, Operation
from kafka_compat.metadata.topic_names import TRANSACTIONS_TOPIC
from kafka_compat.metrics.group_lag import RecordTimes
from kafka_compat.page.observed import Rates
from kafka_compat.replication.counts import Counts
from kafka_compat.transactions.marker_writer import Marker
from kafka_compat.transactions.status import ProducerIdentity
from kafka_compat.upkeep.log_cleaner import LogCleaner
from tests.cluster.embedded import EmbeddedCluster, until
from tests.metadata.support import remove_topic

LocalBroker = Broker

NO_LOCAL: Any = None
"""A dependency that these tests do not use."""


def topic(name: str, *leaders: int) -> TopicMetadata:
    partitions = [PartitionMetadata(index, leader, 0, (1, 2), (1, 2)) for index, leader in enumerate(leaders)]
    return TopicMetadata(name, UUID(int=hash(name) % 2**64), tuple(partitions))


@pytest.fixture
def cache() -> MetadataCache:
    cache = MetadataCache("cluster", 1)
    change = cache.change()
    change.set_brokers({1: BrokerMetadata(1, {}), 2: BrokerMetadata(2, {})})
    change.publish()
    return cache


@pytest.fixture
async def broker(tmp_path: Path) -> AsyncIterator[LocalBroker]:
    settings = {"listeners": "PLAINTEXT://127.0.0.1:0", "log.dirs": str(tmp_path / "data")}
    broker = standalone_broker(BrokerConfig.from_properties(settings))
    await broker.start()
    yield broker
    await broker.stop()


class NeverAnswering:
    """Peers that receive requests and never respond."""

    def __init__(self) -> None:
        self.was_asked = asyncio.Event()
        self.tasks: list[asyncio.Future[Any]] = []

    def run(self, name: str, work: Any) -> None:
        self.tasks.append(asyncio.ensure_future(work()))

    def client(self, broker_id: int) -> Any:
        return self

    async def send(self, *_: object) -> None:
        self.was_asked.set()
        await asyncio.Event().wait()

    def stop(self) -> None:
        for task in self.tasks:
            task.cancel()


@pytest.fixture
async def peers() -> AsyncIterator[NeverAnswering]:
    peers = NeverAnswering()
    yield peers
    peers.stop()


# Requests that wait for other brokers


async def test_topic_creation_waits_until_enough_brokers_have_registered(tmp_path: Path) -> None:
    cluster = EmbeddedCluster(tmp_path, count=2)
    await cluster.start_broker(1)
    try:
        topics: Any = cluster.brokers[1].services.topics
        waiting = asyncio.ensure_future(topics.until_brokers(2))
        await asyncio.sleep(0)  # the wait begins
        assert not waiting.done()
        await cluster.start_broker(2)
        await asyncio.wait_for(waiting, 10)
    finally:
        await cluster.stop()


async def test_markers_do_not_wait_for_a_broker_that_is_no_longer_leader(
    cache: MetadataCache, peers: NeverAnswering
) -> None:
    cache.put_topic(topic("t", 2))
    given: Any = peers
    outcomes: list[tuple[object, ErrorCode]] = []
    writer = ClusterMarkerWriter(NO_LOCAL, cache, given, NO_LOCAL)
    marker = Marker(ProducerIdentity(1, 0), True, 0)
    writer.write(marker, [("t", 0)], lambda partition, error: outcomes.append((partition, error)))
    await peers.was_asked.wait()
    assert outcomes == []
    cache.put_topic(topic("t", 1))
    assert outcomes == [(("t", 0), ErrorCode.NOT_LEADER_OR_FOLLOWER)]


async def test_requests_do_not_wait_for_a_broker_that_is_no_longer_coordinator(
    cache: MetadataCache, peers: NeverAnswering
) -> None:
    cache.put_topic(topic(TRANSACTIONS_TOPIC, 2))
    given: Any = peers
    answers: list[Mapping[tuple[str, int], ErrorCode]] = []
    coordinators = ClusterCoordinators(NO_LOCAL, cache, given)
    coordinators.ask("id", ProducerIdentity(1, 0), [("t", 0)], answers.append, adds=True)
    await peers.was_asked.wait()
    assert answers == []
    cache.put_topic(topic(TRANSACTIONS_TOPIC, 1))
    assert answers == [{("t", 0): ErrorCode.NOT_COORDINATOR}]


# Coordinators


async def test_offsets_of_a_deleted_topic_are_dropped_by_groups(broker: LocalBroker) -> None:
    forgotten: list[TopicMetadata] = []
    groups: Any = broker.services.groups
    groups.offsets.forget_topic = forgotten.append
    broker.services.metadata.put_topic(topic("t", 1, 1))
    remove_topic(broker.services.metadata, "t")
    assert [(topic.name, len(topic.partitions)) for topic in forgotten] == [("t", 2)]


# Settings


async def test_settings_of_a_topic_apply_to_its_logs(broker: LocalBroker) -> None:
    services: Any = broker.services
    await services.topics.create("t", partitions=1)
    change = Change("retention.ms", Operation.SET, "12345")
    await services.configs.alter_incrementally(ResourceType.TOPIC, "t", [change], False)
    assert services.replicas.get("t", 0).log.config.retention_ms == 12345
    # A change by a different broker arrives the same way.
    services.metadata.feed.publish_config(ConfigChange("topics/t", settings={"retention.ms": "54321"}))
    assert services.replicas.get("t", 0).log.config.retention_ms == 54321


async def test_broker_settings_apply_to_logs_and_connections(broker: LocalBroker) -> None:
    services: Any = broker.services
    await services.topics.create("t", partitions=1)
    changes = [
        Change("log.retention.ms", Operation.SET, "12345"),
        Change("max.connections", Operation.SET, "77"),
    ]
    await services.configs.alter_incrementally(ResourceType.BROKER, "", changes, False)
    assert services.replicas.get("t", 0).log.config.retention_ms == 12345
    assert broker.server.limits.connections_max == 77


async def test_certificates_are_checked_when_broker_settings_change(broker: LocalBroker) -> None:
    entrances = Entrances(broker.config, SystemClock(), broker.server)
    broker.services.metadata.feed.subscribe(entrances._on_metadata)
    broker.services.metadata.feed.publish_config(ConfigChange("topics/t", settings={}))
    assert not entrances._settings_changed.is_set()
    broker.services.metadata.feed.publish_config(ConfigChange("brokers/0"))
    assert entrances._settings_changed.is_set()


async def test_other_brokers_are_notified_of_stored_settings(tmp_path: Path) -> None:
    cluster = EmbeddedCluster(tmp_path, count=2)
    await cluster.start()
    try:
        assert await cluster.create_topic("t", replicas=2) == ErrorCode.NONE
        change = Change("retention.ms", Operation.SET, "12345")
        first, second = cluster.brokers.values()
        await first.services.configs.alter_incrementally(ResourceType.TOPIC, "t", [change], False)
        await until(lambda: second.overrides("t") == {"retention.ms": "12345"})
    finally:
        await cluster.stop()


@pytest.mark.interpreted("ReplicaManager is replaced in part")
async def test_partitions_are_notified_when_a_broker_is_removed(tmp_path: Path) -> None:
    cluster = EmbeddedCluster(tmp_path, count=1)
    await cluster.start()
    try:
        metadata = cluster.brokers[1].metadata
        changed: list[bool] = []
        replicas: Any = cluster.brokers[1].replicas
        replicas.peers_changed = lambda: changed.append(True)
        for brokers, expected in (((1, 2), 0), ((1,), 1)):
            change = metadata.change()
            change.set_brokers({each: BrokerMetadata(each, {}) for each in brokers})
            change.publish()
            assert len(changed) == expected
    finally:
        await cluster.stop()


# Upkeep, metrics, web console, control API


async def test_the_cleaning_of_a_deleted_topic_is_stopped(cache: MetadataCache) -> None:
    no: Any = None
    cleaner = LogCleaner(no, no, no, SimpleNamespace(clean_offsets={}), cache.feed)  # type: ignore[arg-type]
    killed: list[int] = []
    child: Any = SimpleNamespace(kill=lambda: killed.append(1))
    cleaner._running["t", 1] = child
    cache.put_topic(topic("t", 1, 1))
    remove_topic(cache, "t")
    assert killed == [1]


def test_counts_of_a_deleted_topic_are_kept_in_the_total(cache: MetadataCache) -> None:
    counts = Counts()
    cache.feed.subscribe(counts.on_metadata)
    cache.put_topic(topic("t", 1))
    counts.topic("t").records_in += 3
    remove_topic(cache, "t")
    assert "t" not in counts.topics
    assert counts.total().records_in == 3


async def test_conditions_awaited_by_the_control_api_are_checked_after_changes(cache: MetadataCache) -> None:
    pulse = Pulse()
    cache.feed.subscribe(pulse.beat)
    waiting = asyncio.ensure_future(pulse.until(lambda: "t" in cache.topics, 10_000))
    await asyncio.sleep(0)  # the wait begins
    cache.put_topic(topic("t", 1))
    assert await asyncio.wait_for(waiting, 10)


async def test_subscriptions_survive_suspending_and_resuming_the_broker(
    broker: LocalBroker,
) -> None:
    created: list[str] = []
    broker.subscribe(lambda delta: created.extend(each.name for each in delta.created))
    await broker.services.topics.create("before")
    await broker.resume(await broker.suspend())
    created.clear()
    await broker.services.topics.create("after")
    assert created == ["after"]


def test_the_web_console_drops_the_rate_of_a_deleted_topic() -> None:
    rates = Rates()
    for at_s, end in ((0.0, 0), (5.0, 50)):
        rates.add(at_s, {"t": (1, end), "u": (1, end)})
    assert rates.of("t") == 10
    rates.forget_topic("t")
    rates.add(10.0, {"t": (1, 1000), "u": (1, 100)})
    assert rates.of("t") is None
    assert rates.of("u") == 10


def test_metrics_do_not_hold_a_reference_to_the_log_of_a_deleted_topic() -> None:
    times: Any = RecordTimes()
    times._now["t", 0, 5] = times._before["t", 0, 4] = times._now["u", 0, 5] = object()
    times.forget_topic("t")
    assert (list(times._before), list(times._now)) == ([], [("u", 0, 5)])
