"""Which share-partitions of a group have a state at the share coordinator (KIP-932).

The values are immutable: each change returns a new value, which is written to `__consumer_offsets`.
"""

from collections.abc import Collection, Iterable, Mapping
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from uuid import UUID

UNKNOWN_NAME = "<UNKNOWN>"
"""What Kafka stores as the name of a topic that has been deleted."""


class TopicPartitions(NamedTuple):
    """Partitions of a topic with this name."""

    name: str
    partitions: frozenset[int]


Partitions = Mapping["UUID", TopicPartitions]


class PartitionStates(NamedTuple):
    """The share-partitions whose state is being initialized, or is initialized, and the topics (with their
    names) whose states are being deleted.
    """

    initializing: Partitions = {}
    initialized: Partitions = {}
    deleting: "Mapping[UUID, str]" = {}

    def begin(self, added: Partitions) -> "PartitionStates":
        """Return the states when the initialization of these partitions begins."""
        deleting = {topic_id: name for topic_id, name in self.deleting.items() if topic_id not in added}
        return PartitionStates(combined(self.initializing, added), self.initialized, deleting)

    def complete(self, done: Partitions) -> "PartitionStates":
        """Return the states when these partitions have been initialized."""
        return PartitionStates(
            _without(self.initializing, done), combined(self.initialized, done), self.deleting
        )

    def abandon(self, failed: Partitions) -> "PartitionStates":
        """Return the states when the initialization of these partitions has failed."""
        return self._replace(initializing=_without(self.initializing, failed))

    def delete_topics(self, topics: "Mapping[UUID, str]") -> "PartitionStates":
        """Return the states when the deletion of the initialized states of these topics begins."""
        initialized = {key: value for key, value in self.initialized.items() if key not in topics}
        return PartitionStates(self.initializing, initialized, {**self.deleting, **topics})

    def deleted(self, topic_ids: "Collection[UUID]") -> "PartitionStates":
        """Return the states when the states of these topics have been deleted."""
        return self._replace(
            deleting={key: name for key, name in self.deleting.items() if key not in topic_ids}
        )

    def without_topics(self, topic_ids: "Collection[UUID]") -> "PartitionStates":
        """Return the states without topics that no longer exist."""
        return PartitionStates(
            {key: value for key, value in self.initializing.items() if key not in topic_ids},
            {key: value for key, value in self.initialized.items() if key not in topic_ids},
            {key: value for key, value in self.deleting.items() if key not in topic_ids},
        )

    def mentions_any(self, topic_ids: "Collection[UUID]") -> bool:
        """Return whether any of the topics has a state."""
        return any(
            topic_id in each
            for topic_id in topic_ids
            for each in (self.initializing, self.initialized, self.deleting)
        )

    def all_partitions(self) -> Partitions:
        """Return the partitions whose state is initialized or is being initialized."""
        return combined(self.initialized, self.initializing)

    def missing(self, topics: "Iterable[tuple[UUID, str, int]]", is_recent: bool) -> Partitions:
        """Return the partitions that have no state. `topics` contains the ID, the name and the number of
        partitions of each subscribed topic. Unless `is_recent`, initializations that have begun count as
        lost.
        """
        known = combined(self.initialized, self.initializing) if is_recent else self.initialized
        found: dict[UUID, TopicPartitions] = {}
        for topic_id, name, count in topics:
            has_state: frozenset[int] = frozenset()
            if topic_id in known:
                has_state = known[topic_id].partitions
            if not has_state or len(has_state) < count:
                found[topic_id] = TopicPartitions(name, frozenset(range(count)) - has_state)
        return found


def combined(one: Partitions, other: Partitions) -> Partitions:
    """Return the union. The names in `other` take precedence."""
    result = dict(one)
    for topic_id, added in other.items():
        known = one.get(topic_id)
        partitions = added.partitions if known is None else known.partitions | added.partitions
        result[topic_id] = added._replace(partitions=partitions)
    return result


def _without(partitions: Partitions, removed: Partitions) -> Partitions:
    left: dict[UUID, TopicPartitions] = {}
    for topic_id, each in partitions.items():
        if topic_id not in removed:
            left[topic_id] = each
            continue
        remaining = each.partitions - removed[topic_id].partitions
        if remaining:
            left[topic_id] = each._replace(partitions=remaining)
    return left
