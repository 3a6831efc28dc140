"""The range assignor: consecutive partitions of each topic for each member (KIP-848).

The members are sorted: static members by instance ID, then dynamic members by member ID. Topics with equal
numbers of partitions and equal subscribers are co-partitioned. The current assignment has no influence.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from kafka_compat.groups.consumer.assignors.assignor import (
    GroupSpec,
    TargetAssignment,
    partition_count,
)
from kafka_compat.groups.consumer.java_order import (
    sized_capacity,
    sorted_strings,
    string_order_in_steps,
    utf16_key,
    uuid_order,
)
from kafka_compat.long_work import batched

if TYPE_CHECKING:
    from collections.abc import Mapping
    from uuid import UUID

    from kafka_compat.groups.consumer.assignors.assignor import Assignment
    from kafka_compat.long_work import Steps

_STEP_MEMBERS: Final = 100
"""Number of members per step of long work."""


class _Topic:
    """A topic whose partitions are assigned to one subscriber after another."""

    __slots__ = ("_extra", "_partition_count", "_quota", "_start", "subscriber_count", "topic_id")

    def __init__(self, topic_id: UUID, count: int) -> None:
        self.topic_id = topic_id
        self.subscriber_count = 0
        self._partition_count = count
        self._quota = -1
        self._extra = 0
        self._start = 0

    def next_range(self) -> tuple[int, ...]:
        """Return the partitions of the next subscriber."""
        if self._quota < 0:
            self._quota, self._extra = divmod(self._partition_count, self.subscriber_count)
        start = self._start
        end = start + self._quota
        if self._extra > 0:
            end += 1
            self._extra -= 1
        self._start = end
        return tuple(range(start, end))


class RangeAssignor:
    """Kafka's RangeAssignor."""

    @property
    def name(self) -> str:
        return "range"

    def assign(self, group: GroupSpec, partition_counts: Mapping[UUID, int]) -> Steps[TargetAssignment]:
        member_ids = _sorted_member_ids(group)
        yield None
        ranges = _Ranges(group, partition_counts)
        for batch in batched(member_ids, _STEP_MEMBERS):
            ranges.subscribe(batch)
            yield None
        for batch in batched(member_ids, _STEP_MEMBERS):
            ranges.assign(batch)
            yield None
        in_record_order = yield from string_order_in_steps(list(group.members))
        return {member_id: ranges.target[member_id] for member_id in in_record_order}


class _Ranges:
    """The ranges of all topics, which are assigned to one member after the other."""

    __slots__ = (
        "_capacity",
        "_group",
        "_ordered",
        "_partition_counts",
        "_subscriptions",
        "_topic_ids",
        "_topics",
        "target",
    )

    def __init__(self, group: GroupSpec, partition_counts: Mapping[UUID, int]) -> None:
        self._group = group
        self._partition_counts = partition_counts
        self._topics: dict[int, _Topic] = {}
        self._subscriptions: dict[int, list[_Topic]] = {}
        """The topics of each set of subscriptions, by the identity of the tuple of topic IDs."""
        self._topic_ids: list[UUID] = []
        """The topics of the previous member."""
        self._ordered: list[UUID] = []
        """The same topics, in the order of the previous member's record."""
        self._capacity = 0
        self.target: TargetAssignment = {}

    def subscribe(self, member_ids: list[str]) -> None:
        """Count the members as subscribers of their topics."""
        for member_id in member_ids:
            for topic in self._subscribed(member_id):
                topic.subscriber_count += 1

    def assign(self, member_ids: list[str]) -> None:
        """Assign ranges to members, after all members have been counted."""
        for member_id in member_ids:
            ranges: dict[int, tuple[int, ...]] = {}
            topic_ids: list[UUID] = []
            for topic in self._subscribed(member_id):
                partitions = topic.next_range()
                if partitions:
                    topic_ids.append(topic.topic_id)
                    ranges[topic.topic_id.int] = partitions
            spec = self._group.members[member_id]
            if _is_current(ranges, spec.assignment):
                self.target[member_id] = spec.assignment
                continue
            size = len(self._topics) if self._group.is_homogeneous else spec.subscribed_name_count
            if topic_ids != self._topic_ids or sized_capacity(size) != self._capacity:
                self._topic_ids = topic_ids
                self._capacity = sized_capacity(size)
                self._ordered = uuid_order(topic_ids, self._capacity)
            self.target[member_id] = {topic_id: ranges[topic_id.int] for topic_id in self._ordered}

    def _subscribed(self, member_id: str) -> list[_Topic]:
        topic_ids = self._group.members[member_id].subscribed_topic_ids
        subscribed = self._subscriptions.get(id(topic_ids))
        if subscribed is None:
            if self._group.is_homogeneous and self._subscriptions:
                subscribed = next(iter(self._subscriptions.values()))
            else:
                subscribed = [self._topic(topic_id) for topic_id in topic_ids]
            self._subscriptions[id(topic_ids)] = subscribed
        return subscribed

    def _topic(self, topic_id: UUID) -> _Topic:
        topic = self._topics.get(topic_id.int)
        if topic is None:
            count = partition_count(topic_id, self._partition_counts)
            topic = self._topics[topic_id.int] = _Topic(topic_id, count)
        return topic


def _sorted_member_ids(group: GroupSpec) -> list[str]:
    static: list[tuple[bytes, str]] = []
    dynamic: list[str] = []
    for member_id, spec in group.members.items():
        instance_id = spec.instance_id
        if instance_id is not None:
            static.append((utf16_key(instance_id), member_id))
        else:
            dynamic.append(member_id)
    static.sort()
    return [member_id for _, member_id in static] + sorted_strings(dynamic)


def _is_current(ranges: dict[int, tuple[int, ...]], current: Assignment) -> bool:
    if len(ranges) != len(current):
        return False
    for topic_id, partitions in current.items():
        assigned = ranges.get(topic_id.int)
        if assigned is None or len(assigned) != len(partitions):
            return False
        if assigned != partitions and set(assigned) != set(partitions):
            return False
    return True
