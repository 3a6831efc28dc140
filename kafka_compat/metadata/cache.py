"""Metadata cache of this broker, for handlers to read without waiting.

The values are immutable, so a reader may keep them. All changes are made with `MetadataCache.change`, which
publishes them to the subscribers of the feed.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from kafka_compat.metadata.described import BrokerMetadata, PartitionMetadata, TopicMetadata
from kafka_compat.metadata.feed import MetadataDelta, MetadataFeed
from kafka_compat.metadata.topic_names import collision_key, may_collide

if TYPE_CHECKING:
    from uuid import UUID

__all__ = [
    "NO_LEADER",
    "BrokerMetadata",
    "MetadataCache",
    "MetadataChange",
    "PartitionMetadata",
    "TopicMetadata",
]

NO_LEADER: Final = -1


class MetadataCache:
    """Topics by name and by ID, brokers by ID, the controller, and the finalized features."""

    def __init__(self, cluster_id: str, local_id: int) -> None:
        self.cluster_id = cluster_id
        self.local_id = local_id
        self.feed = MetadataFeed()
        self.generation = 0
        """Number of changes to the values in the cache."""
        self.topic_encoders: dict[int, Any] = {}
        """Maps each version of the Metadata API to its TopicEncoder. A change of the live brokers replaces
        this object, because leaders and offline replicas depend on which brokers are alive.
        """
        self.controller_id = -1
        self.serves_for_controller = False
        """Whether every broker accepts the requests that are meant for the controller, as in Apache Kafka's
        quorums. Responses then name this broker as the controller.
        """
        self.topics: dict[str, TopicMetadata] = {}
        self.brokers: dict[int, BrokerMetadata] = {}
        self.finalized_features_epoch = -1
        """The epoch of the finalized features in ApiVersions, or -1 if they are unknown."""
        self.feature_levels: Mapping[str, int] = {}
        """The finalized level of each supported feature. 0: the feature is disabled."""
        self._names: dict[UUID, str] = {}
        self._by_collision_key: dict[str, str] = {}

    @property
    def controller_for_clients(self) -> int:
        """The ID of the controller in responses. It is this broker if any broker will do, because librdkafka
        waits until its request times out for a controller whose process has ended.
        """
        is_own = self.serves_for_controller and self.controller_id >= 0 and self.local_id in self.brokers
        return self.local_id if is_own else self.controller_id

    def reachable_leader(self, partition: PartitionMetadata) -> int | None:
        """Return the leader's ID, or None if the leader is not registered. Metadata responses omit such
        leaders, because kafka-python never recovers from a leader that is not in the list of brokers.
        """
        return partition.leader if partition.leader in self.brokers else None

    def offline_replicas(self, partition: PartitionMetadata) -> list[int]:
        """Return the replicas whose broker is offline or whose disk has failed."""
        away = partition.offline
        return [replica for replica in partition.replicas if replica not in self.brokers or replica in away]

    def topic_name(self, topic_id: "UUID") -> str | None:
        return self._names.get(topic_id)

    def colliding(self, name: str) -> str | None:
        """Return a different topic whose metric names collide with those of `name`, or None."""
        return self._by_collision_key.get(collision_key(name)) if may_collide(name) else None

    def partition(self, topic: str, partition: int) -> PartitionMetadata | None:
        known = self.topics.get(topic)
        if known is None or not 0 <= partition < len(known.partitions):
            return None
        return known.partitions[partition]

    def feature_level(self, feature: str) -> int:
        """Return the finalized level of a feature, or 0 if it is disabled or not known yet."""
        return self.feature_levels.get(feature, 0)

    def change(self) -> "MetadataChange":
        """Start a change. Readers see each change immediately; subscribers see it when it is published."""
        return MetadataChange(self)

    def put_topic(self, topic: TopicMetadata) -> None:
        """Add or replace a topic, and publish the change."""
        change = self.change()
        change.put_topic(topic)
        change.publish()

    def _put(self, topic: TopicMetadata) -> TopicMetadata | None:
        old = self._remove(topic.name)
        self.topics[topic.name] = topic
        self._names[topic.topic_id] = topic.name
        if may_collide(topic.name):
            self._by_collision_key[collision_key(topic.name)] = topic.name
        return old

    def _remove(self, name: str) -> TopicMetadata | None:
        self.generation += 1
        for encoder in self.topic_encoders.values():
            encoder.topics.pop(name, None)
        old = self.topics.pop(name, None)
        if old is not None:
            self._names.pop(old.topic_id, None)
            self._by_collision_key.pop(collision_key(name), None)
        return old


class MetadataChange:
    """Changes to the cache that are published together."""

    def __init__(self, cache: MetadataCache) -> None:
        self._cache = cache
        self._delta = MetadataDelta()

    def put_topic(self, topic: TopicMetadata) -> None:
        """Add or replace a topic."""
        delta = self._delta
        old = self._cache._put(topic)
        if old is None or old.topic_id != topic.topic_id:
            if old is not None:
                delta.deleted.append(old)
            delta.created.append(topic)
            return
        known = len(old.partitions)
        if len(topic.partitions) > known:
            delta.grown.append(topic)
        for partition in topic.partitions[:known]:
            before = old.partitions[partition.partition]
            if before is not partition and before != partition:
                delta.partitions.append((topic.name, partition))

    def remove_topic(self, name: str) -> None:
        """Remove a topic, if it exists."""
        old = self._cache._remove(name)
        if old is not None:
            self._delta.deleted.append(old)

    def report_deleted(self, topic: TopicMetadata) -> None:
        """Report a deleted topic that is not in the cache, because a crash interrupted its deletion."""
        self._delta.deleted.append(topic)

    def set_brokers(self, brokers: dict[int, BrokerMetadata]) -> None:
        """Replace the set of live brokers."""
        known, delta = self._cache.brokers, self._delta
        delta.removed_broker_ids.update(known.keys() - brokers.keys())
        delta.broker_ids.update(each for each, broker in brokers.items() if known.get(each) != broker)
        if known.keys() != brokers.keys():
            self._cache.topic_encoders = {}
        known.clear()
        known.update(brokers)
        self._cache.generation += 1

    def set_controller(self, controller_id: int) -> None:
        if controller_id != self._cache.controller_id:
            self._cache.controller_id = controller_id
            self._cache.generation += 1
            self._delta.controller_changed = True

    def set_features(self, epoch: int, levels: Mapping[str, int]) -> None:
        """Set the finalized levels of all supported features, and the epoch that ApiVersions reports."""
        if epoch != self._cache.finalized_features_epoch or levels != self._cache.feature_levels:
            self._cache.finalized_features_epoch = epoch
            self._cache.feature_levels = levels
            self._cache.generation += 1
            self._delta.features_changed = True

    def publish(self) -> None:
        """Publish all changes as one delta, unless there are none."""
        if not self._delta.is_empty:
            self._cache.feed.publish(self._delta)
        self._delta = MetadataDelta()
