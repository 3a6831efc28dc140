"""The range assignor: consecutive partitions of each topic for each member (KIP-848).

The members are sorted: static members by instance ID, then dynamic members by member ID. Topics with equal
numbers of partitions and equal subscribers are co-partitioned. The current assignment has no influence.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from kafka_compat.groups.consumer.assignors.assignor import (
    GroupSpec,
    PartitionAssignorError,
    TargetAssignment,
    same_partitions,
)
from kafka_compat.groups.consumer.java_order import (
    sized_capacity,
    string_order_in_steps,
    utf16_key,
    uuid_order,
)
from kafka_compat.long_work import batched

if TYPE_CHECKING:
    from collections.abc import Mapping
    from uuid import UUID

    from kafka_compat.long_work import Steps

_STEP_MEMBERS: Final = 100
"""Number of members per step of long work."""


class _Topic:
    """A topic whose partitions are assigned to one subscriber after another."""

    __slots__ = ("_extra", "_partition_count", "_quota", "_start", "subscriber_count", "topic_id")

    def __init__(self, topic_id: UUID, partition_count: int) -> None:
        self.topic_id = topic_id
        self.subscriber_count = 0
        self._partition_count = partition_count
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
        topics: dict[int, _Topic] = {}
        subscriptions: dict[str, list[_Topic]] = {}
        for batch in batched(member_ids, _STEP_MEMBERS):
            for member_id in batch:
                if group.is_homogeneous and subscriptions:
                    subscribed = subscriptions[member_ids[0]]
                else:
                    subscribed = _subscribed(group, member_id, topics, partition_counts)
                for topic in subscribed:
                    topic.subscriber_count += 1
                subscriptions[member_id] = subscribed
            yield None
        target: TargetAssignment = {}
        topic_ids: list[UUID] = []
        ordered: list[UUID] = []
        capacity = 0
        for batch in batched(member_ids, _STEP_MEMBERS):
            for member_id in batch:
                spec = group.members[member_id]
                ranges: dict[int, tuple[int, ...]] = {}
                assigned: list[UUID] = []
                for topic in subscriptions[member_id]:
                    partitions = topic.next_range()
                    if partitions:
                        assigned.append(topic.topic_id)
                        ranges[topic.topic_id.int] = partitions
                size = len(topics) if group.is_homogeneous else spec.subscribed_name_count
                if capacity != sized_capacity(size) or assigned != topic_ids:
                    capacity = sized_capacity(size)
                    topic_ids = assigned
                    ordered = uuid_order(topic_ids, capacity)
                assignment = {topic_id: ranges[topic_id.int] for topic_id in ordered}
                current = spec.assignment
                target[member_id] = current if same_partitions(assignment, current) else assignment
            yield None
        in_record_order = yield from string_order_in_steps(list(group.members))
        return {member_id: target[member_id] for member_id in in_record_order}


def _sorted_member_ids(group: GroupSpec) -> list[str]:
    static: list[tuple[bytes, str]] = []
    dynamic: list[tuple[bytes, str]] = []
    for member_id, spec in group.members.items():
        instance_id = spec.instance_id
        if instance_id is not None:
            static.append((utf16_key(instance_id), member_id))
        else:
            dynamic.append((utf16_key(member_id), member_id))
    static.sort()
    dynamic.sort()
    return [member_id for _, member_id in static + dynamic]


def _subscribed(
    group: GroupSpec, member_id: str, topics: dict[int, _Topic], partition_counts: Mapping[UUID, int]
) -> list[_Topic]:
    subscribed: list[_Topic] = []
    for topic_id in group.members[member_id].subscribed_topic_ids:
        topic = topics.get(topic_id.int)
        if topic is None:
            partition_count = partition_counts.get(topic_id)
            if partition_count is None:
                raise PartitionAssignorError("Member is subscribed to a non-existent topic")
            topic = topics[topic_id.int] = _Topic(topic_id, partition_count)
        subscribed.append(topic)
    return subscribed
