"""The topics of the cluster and the assignors, as consumer groups use them."""

from collections.abc import Callable, Collection, Mapping, Sequence, Set
from typing import TYPE_CHECKING, Final

from kafka_compat.groups.consumer.assignors.assignor import Assignment, Assignor, GroupSpec, MemberSpec
from kafka_compat.groups.consumer.assignors.range import RangeAssignor
from kafka_compat.groups.consumer.assignors.uniform import UniformAssignor
from kafka_compat.groups.consumer.member import Member
from kafka_compat.groups.consumer.metadata_hash import group_hash, topic_hash
from kafka_compat.groups.consumer.subscriptions import subscribed_names
from kafka_compat.long_work import batched

if TYPE_CHECKING:
    from uuid import UUID

    from kafka_compat.groups.consumer.assignors.assignor import TargetAssignment
    from kafka_compat.long_work import Steps
    from kafka_compat.metadata.cache import MetadataCache, TopicMetadata
    from kafka_compat.metadata.feed import MetadataDelta

_STEP_MEMBERS: Final = 100
"""Number of members per step of long work."""


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

    def existing(self, names: Collection[str]) -> Set[str]:
        return self._metadata.topics.keys() & names

    def metadata_hash(self, names: Set[str]) -> int:
        topics = self._metadata.topics
        return group_hash({name: self._hash(topics[name]) for name in sorted(self.existing(names))})

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

    def partition_counts(self, names: Sequence[str]) -> "dict[UUID, int]":
        """Return the number of partitions of each existing topic, in the order of `names`."""
        topics = self._metadata.topics
        return {topics[name].topic_id: len(topics[name].partitions) for name in names if name in topics}


class _Subscription:
    """The topics of members with the same subscription."""

    __slots__ = ("names", "partition_counts", "topic_ids")

    def __init__(self, names: frozenset[str], partition_counts: "dict[UUID, int]") -> None:
        """`names` also contains topics that do not exist. The order of `partition_counts` is Kafka's."""
        self.names = names
        self.partition_counts = partition_counts
        self.topic_ids = tuple(partition_counts)


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
    ) -> "Steps[TargetAssignment]":
        specs: dict[str, MemberSpec] = {}
        known: dict[tuple[tuple[str, ...], str], _Subscription] = {}
        for some in batched(members.items(), _STEP_MEMBERS):
            yield None
            for member_id, member in some:
                key = (member.topic_names, member.topic_regex)
                subscription = known.get(key)
                if subscription is None:
                    matched_names = matched(member.topic_regex)
                    subscription = yield from self._subscription(member.topic_names, matched_names)
                    known[key] = subscription
                specs[member_id] = MemberSpec(
                    member.instance_id,
                    member.rack_id,
                    subscription.topic_ids,
                    len(subscription.names),
                    targets.get(member_id, {}),
                )
        partition_counts: dict[UUID, int] = {}
        for each in known.values():
            partition_counts |= each.partition_counts
        yield None
        group = GroupSpec(specs, is_homogeneous)
        return (yield from self._assignors[assignor].assign(group, partition_counts))

    def _subscription(
        self, topic_names: tuple[str, ...], matched_names: frozenset[str]
    ) -> "Steps[_Subscription]":
        all_names = matched_names.union(topic_names)
        yield None
        ordered = subscribed_names(topic_names, sorted(matched_names), self._topics.existing)
        yield None
        return _Subscription(all_names, self._topics.partition_counts(ordered))
