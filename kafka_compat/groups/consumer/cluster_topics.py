"""The topics of the cluster and the assignors, as consumer groups use them."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from kafka_compat.groups.consumer.assignors.assignor import Assignment, Assignor, GroupSpec, MemberSpec
from kafka_compat.groups.consumer.assignors.range import RangeAssignor
from kafka_compat.groups.consumer.assignors.uniform import UniformAssignor
from kafka_compat.groups.consumer.member import Member
from kafka_compat.groups.consumer.metadata_hash import group_hash, topic_hash
from kafka_compat.groups.consumer.subscriptions import subscribed_names

if TYPE_CHECKING:
    from uuid import UUID

    from kafka_compat.groups.consumer.assignors.assignor import TargetAssignment
    from kafka_compat.metadata.cache import MetadataCache, TopicMetadata
    from kafka_compat.metadata.feed import MetadataDelta


class ClusterTopics:
    """The topics in a metadata cache."""

    def __init__(self, metadata: "MetadataCache") -> None:
        self._metadata = metadata
        self.new_topics_version = metadata.feed.version
        """The version of the metadata in which the last topic was created."""
        self._hashes: dict[str, tuple[TopicMetadata, int]] = {}
        """The hash of each topic, and the topic for which it was computed."""

    @property
    def version(self) -> int:
        return self._metadata.feed.version

    @property
    def names(self) -> list[str]:
        """The names of all topics."""
        return list(self._metadata.topics)

    def topic_id(self, name: str) -> "UUID | None":
        topic = self._metadata.topics.get(name)
        return None if topic is None else topic.topic_id

    def topic_name(self, topic_id: "UUID") -> str | None:
        return self._metadata.topic_name(topic_id)

    def metadata_hash(self, names: Sequence[str]) -> int:
        hashes: dict[str, int] = {}
        for name in names:
            topic = self._metadata.topics.get(name)
            if topic is not None:
                hashes[name] = self._hash(topic)
        return group_hash(hashes)

    def _hash(self, topic: "TopicMetadata") -> int:
        known = self._hashes.get(topic.name)
        if known is not None and known[0] is topic:
            return known[1]
        brokers = self._metadata.brokers
        racks = [
            {
                rack
                for replica in partition.replicas
                if replica in brokers
                for rack in (brokers[replica].rack,)
                if rack
            }
            for partition in topic.partitions
        ]
        computed = topic_hash(topic.topic_id, topic.name, racks)
        self._hashes[topic.name] = (topic, computed)
        return computed

    def on_metadata(self, delta: "MetadataDelta") -> None:
        """Note created topics, and forget deleted ones."""
        if delta.created:
            self.new_topics_version = delta.version
        for topic in delta.deleted:
            self._hashes.pop(topic.name, None)

    def partition_counts(self, names: Iterable[str]) -> "dict[UUID, int]":
        topics = self._metadata.topics
        return {topics[name].topic_id: len(topics[name].partitions) for name in names if name in topics}


class ServerAssignors:
    """The assignors of a broker."""

    def __init__(self, topics: ClusterTopics) -> None:
        self._assignors: dict[str, Assignor] = {
            each.name: each for each in (UniformAssignor(), RangeAssignor())
        }
        self._topics = topics

    def assign(
        self,
        assignor: str,
        members: Mapping[str, Member],
        targets: Mapping[str, Assignment],
        matched: Callable[[str], frozenset[str]],
        is_homogeneous: bool,
    ) -> "TargetAssignment":
        specs: dict[str, MemberSpec] = {}
        subscribed: set[str] = set()
        for member_id, member in members.items():
            names = subscribed_names(member.topic_names, sorted(matched(member.topic_regex)))
            subscribed.update(names)
            topic_ids = map(self._topics.topic_id, names)
            specs[member_id] = MemberSpec(
                member.instance_id,
                member.rack_id,
                tuple(topic_id for topic_id in topic_ids if topic_id is not None),
                len(names),
                targets.get(member_id, {}),
            )
        group = GroupSpec(specs, is_homogeneous)
        steps = self._assignors[assignor].assign(group, self._topics.partition_counts(subscribed))
        while True:
            try:
                next(steps)
            except StopIteration as stop:
                target: TargetAssignment = stop.value
                return target
