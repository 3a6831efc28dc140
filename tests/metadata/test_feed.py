"""The metadata feed: the contents of deltas, and the order in which subscribers receive them."""

from __future__ import annotations

import logging
from uuid import UUID

import pytest

from kafka_compat.cluster.metadata_updates import apply_update, update_of
from kafka_compat.metadata.cache import BrokerMetadata, MetadataCache, PartitionMetadata, TopicMetadata
from kafka_compat.metadata.feed import ConfigChange, MetadataDelta
from kafka_compat.protocol.messages.update_metadata import (
    UpdateMetadataBroker,
    UpdateMetadataEndpoint,
    UpdateMetadataPartitionState,
    UpdateMetadataRequest,
    UpdateMetadataTopicState,
)
from tests.metadata.support import remove_topic

ID = UUID(int=1)


def topic(name: str, *leaders: int, topic_id: UUID = ID) -> TopicMetadata:
    partitions = [PartitionMetadata(index, leader, 0, (1, 2), (1, 2)) for index, leader in enumerate(leaders)]
    return TopicMetadata(name, topic_id, tuple(partitions))


class Subscriber:
    def __init__(self, cache: MetadataCache) -> None:
        self.deltas: list[MetadataDelta] = []
        cache.feed.subscribe(self.deltas.append)

    @property
    def last(self) -> MetadataDelta:
        return self.deltas[-1]


@pytest.fixture
def cache() -> MetadataCache:
    return MetadataCache("cluster", 1)


def test_creation_growth_reassignment_and_deletion_of_a_topic_are_published(cache: MetadataCache) -> None:
    seen = Subscriber(cache)
    cache.put_topic(topic("t", 1))
    assert [each.name for each in seen.last.created] == ["t"]
    cache.put_topic(topic("t", 1, 2))
    assert (seen.last.created, [len(each.partitions) for each in seen.last.grown]) == ([], [2])
    assert seen.last.partitions == []
    cache.put_topic(topic("t", 2, 2))
    assert [(name, each.partition, each.leader) for name, each in seen.last.partitions] == [("t", 0, 2)]
    remove_topic(cache, "t")
    assert [each.name for each in seen.last.deleted] == ["t"]
    assert [delta.version for delta in seen.deltas] == [1, 2, 3, 4]
    assert cache.feed.version == 4


def test_a_topic_with_a_different_id_replaces_the_topic_with_the_same_name(cache: MetadataCache) -> None:
    cache.put_topic(topic("t", 1))
    seen = Subscriber(cache)
    cache.put_topic(topic("t", 1, topic_id=UUID(int=2)))
    assert [each.topic_id for each in seen.last.deleted] == [ID]
    assert [each.topic_id for each in seen.last.created] == [UUID(int=2)]


def test_updates_without_a_change_are_not_published(cache: MetadataCache) -> None:
    cache.put_topic(topic("t", 1))
    seen = Subscriber(cache)
    cache.put_topic(topic("t", 1))
    remove_topic(cache, "unknown")
    assert seen.deltas == []


def test_changes_to_brokers_racks_controller_and_features_are_published(cache: MetadataCache) -> None:
    seen = Subscriber(cache)
    change = cache.change()
    change.set_brokers({1: BrokerMetadata(1, {}), 2: BrokerMetadata(2, {}, "a")})
    change.set_controller(2)
    change.set_features(0, {"group.version": 1})
    change.publish()
    assert (seen.last.broker_ids, seen.last.removed_broker_ids) == ({1, 2}, set())
    assert seen.last.controller_changed
    assert seen.last.features_changed
    change = cache.change()
    change.set_brokers({2: BrokerMetadata(2, {}, "b")})
    change.publish()
    assert (seen.last.broker_ids, seen.last.removed_broker_ids) == ({2}, {1})
    assert not seen.last.controller_changed


def test_an_update_from_the_controller_is_published_as_one_delta(cache: MetadataCache) -> None:
    cache.put_topic(topic("old", 1))
    cache.put_topic(topic("t", 1))
    seen = Subscriber(cache)

    def state(name: str, number: int, leader: int) -> UpdateMetadataTopicState:
        partition = UpdateMetadataPartitionState(
            partition_index=0, leader=leader, replicas=[1, 2], isr=[1, 2], offline_replicas=[]
        )
        return UpdateMetadataTopicState(
            topic_name=name, topic_id=UUID(int=number), partition_states=[partition]
        )

    request = UpdateMetadataRequest(
        controller_id=2,
        topic_states=[state("old", 1, -2), state("t", 1, 2), state("new", 3, 1)],
        live_brokers=[
            UpdateMetadataBroker(
                id=2,
                endpoints=[UpdateMetadataEndpoint(port=1, host="h", listener="L", security_protocol=0)],
                rack="a",
            )
        ],
    )
    apply_update(cache, update_of(request))
    (delta,) = seen.deltas
    assert [each.name for each in delta.created] == ["new"]
    assert [each.name for each in delta.deleted] == ["old"]
    assert [name for name, _ in delta.partitions] == ["t"]
    assert delta.broker_ids == {2}
    assert delta.controller_changed


def test_a_subscribers_own_change_is_published_as_the_next_metadata_version(cache: MetadataCache) -> None:
    def create_second(delta: MetadataDelta) -> None:
        if delta.created and delta.created[0].name == "first":
            cache.put_topic(topic("second", 1, topic_id=UUID(int=2)))

    cache.feed.subscribe(create_second)
    seen = Subscriber(cache)
    cache.put_topic(topic("first", 1))
    assert [(each.version, each.created[0].name) for each in seen.deltas] == [(1, "first"), (2, "second")]


def test_a_failing_subscriber_does_not_prevent_other_subscribers_from_receiving_the_delta(
    cache: MetadataCache, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(_: MetadataDelta) -> None:
        raise ValueError("no")

    cache.feed.subscribe(fail)
    seen = Subscriber(cache)
    with caplog.at_level(logging.ERROR):
        cache.put_topic(topic("t", 1))
    assert len(seen.deltas) == 1
    assert "A subscriber to the metadata feed failed at version 1" in caplog.text
    cache.feed.publish_config(ConfigChange("topics/t", settings={"retention.ms": "1"}))
    assert seen.last.config_changes[0].topic == "t"
