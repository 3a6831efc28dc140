"""The uniform assignor for members with the same subscriptions (KIP-848).

Rules
1. Each member has a quota: the number of partitions divided by the number of members. The remainder of this
   division is distributed, one partition each, to members whose current partitions exceed their quota, and
   then to the last members.
2. A member keeps its current partitions up to its quota.
3. The other partitions are assigned to the members below their quotas, one member after the other: first
   partitions that no member has, then those that other members lose.
4. Members, topics and partitions are visited in the iteration order of Java's hash tables (java_order.py).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from kafka_compat.groups.consumer.assignors.assignor import (
    Assignment,
    GroupSpec,
    PartitionAssignorError,
    TargetAssignment,
    nothing_assigned,
    partition_count,
)
from kafka_compat.groups.consumer.assignors.changed_assignment import (
    AssignmentChanges,
    packed,
    partition_order,
    topic_order,
)
from kafka_compat.groups.consumer.java_order import (
    DEFAULT_CAPACITY,
    copy_capacity,
    string_order_in_steps,
    uuid_order,
)
from kafka_compat.long_work import batched

if TYPE_CHECKING:
    from collections.abc import Mapping
    from uuid import UUID

    from kafka_compat.long_work import Steps

_STEP_MEMBERS: Final = 200
"""Number of members per step of long work."""


class _Topics:
    """The subscribed topics, and which of their partitions have members."""

    __slots__ = ("ids", "indexes", "is_assigned", "partition_count")

    def __init__(self, topic_ids: list[UUID], partition_counts: Mapping[UUID, int]) -> None:
        self.ids = topic_ids
        self.indexes = {topic_id.int: index for index, topic_id in enumerate(topic_ids)}
        self.is_assigned: list[list[bool]] = []
        self.partition_count = 0
        for topic_id in topic_ids:
            count = partition_count(topic_id, partition_counts)
            self.is_assigned.append([False] * count)
            self.partition_count += count

    def keep(self, assignment: Assignment) -> int:
        """Record the partitions of a member. Return the number of those in subscribed topics, or -1 if others
        exist.
        """
        kept = 0
        has_others = False
        for topic_id, partitions in assignment.items():
            index = self.indexes.get(topic_id.int)
            if index is None:
                has_others = True
                continue
            is_assigned = self.is_assigned[index]
            for partition in partitions:
                if partition < len(is_assigned):
                    is_assigned[partition] = True
            kept += len(partitions)
        return -1 if has_others else kept

    def unassigned(self) -> list[int]:
        """Return the packed partitions that no member has."""
        return [
            packed(index, partition)
            for index, is_assigned in enumerate(self.is_assigned)
            for partition, assigned in enumerate(is_assigned)
            if not assigned
        ]


def assign_homogeneous(group: GroupSpec, partition_counts: Mapping[UUID, int]) -> Steps[TargetAssignment]:
    """Do the work of Kafka's UniformHomogeneousAssignmentBuilder."""
    member_ids = yield from string_order_in_steps(list(group.members))
    if not member_ids:
        return {}
    first = group.members[member_ids[0]]
    topic_ids = uuid_order(first.subscribed_topic_ids, copy_capacity(first.subscribed_name_count))
    if not topic_ids:
        return nothing_assigned(group, member_ids)
    topics = _Topics(topic_ids, partition_counts)
    assignments = [group.members[member_id].assignment for member_id in member_ids]
    kept_counts: list[int] = []
    for batch in batched(assignments, _STEP_MEMBERS):
        kept_counts += [topics.keep(assignment) for assignment in batch]
        yield None
    quotas = _Quotas(topics, member_ids, assignments, kept_counts)
    while quotas.visit_next(_STEP_MEMBERS):
        yield None
    quotas.assign_remaining()
    changes = AssignmentChanges(topic_ids, [DEFAULT_CAPACITY] * len(topic_ids))
    target: TargetAssignment = dict(zip(member_ids, assignments, strict=True))
    yield None
    for changed_ids in batched(quotas.changes, _STEP_MEMBERS):
        for member_id in changed_ids:
            dropped = quotas.dropped.get(member_id, [])
            target[member_id] = changes.applied(target[member_id], dropped, quotas.changes[member_id])
        yield None
    return target


class _Quotas:
    """The quotas of the members, which are visited one after the other."""

    __slots__ = (
        "_assignments",
        "_extra_count",
        "_kept_counts",
        "_member_ids",
        "_minimum",
        "_topics",
        "_unassigned",
        "_unfilled",
        "_visited_count",
        "changes",
        "dropped",
    )

    def __init__(
        self, topics: _Topics, member_ids: list[str], assignments: list[Assignment], kept_counts: list[int]
    ) -> None:
        """`kept_counts` are the results of `_Topics.keep` for the assignments of the members."""
        self._topics = topics
        self._member_ids = member_ids
        self._assignments = assignments
        self._kept_counts = kept_counts
        self._minimum, self._extra_count = divmod(topics.partition_count, len(member_ids))
        self._unassigned = topics.unassigned()
        self._unfilled: list[tuple[str, int]] = []
        self._visited_count = 0
        self.changes: dict[str, list[int]] = {}
        """Packed partitions that changed members get, and complements of those that they lose."""
        self.dropped: dict[str, list[UUID]] = {}
        """Topics to which the members no longer subscribe."""

    def visit_next(self, count: int) -> bool:
        """Let the next members keep their partitions up to their quotas. Return False if there are none."""
        start = self._visited_count
        member_count = len(self._member_ids)
        if start == member_count:
            return False
        for index in range(start, min(start + count, member_count)):
            has_extra = self._extra_count > 0
            quota = self._minimum + 1 if has_extra else self._minimum
            kept_count = self._kept_counts[index]
            if 0 <= kept_count <= quota:
                quota -= kept_count
            else:
                quota = self._revoke(self._member_ids[index], self._assignments[index], quota)
            if quota > 0 and has_extra and member_count - index > self._extra_count:
                quota -= 1
                has_extra = False
            if quota > 0:
                self._unfilled.append((self._member_ids[index], quota))
            if has_extra:
                self._extra_count -= 1
        self._visited_count = min(start + count, member_count)
        return True

    def _revoke(self, member_id: str, current: Assignment, quota: int) -> int:
        """Revoke unsubscribed topics, and partitions above the quota. Return the unused part of the quota."""
        dropped: list[UUID] = []
        revoked: list[int] = []
        for topic_id in topic_order(current):
            partitions = current[topic_id]
            index = self._topics.indexes.get(topic_id.int)
            if index is None:
                dropped.append(topic_id)
            elif len(partitions) <= quota:
                quota -= len(partitions)
            else:
                revoked += [packed(index, partition) for partition in partition_order(partitions)[quota:]]
                quota = 0
        self.dropped[member_id] = dropped
        self.changes[member_id] = [~number for number in revoked]
        self._unassigned += revoked
        return quota

    def assign_remaining(self) -> None:
        """Assign the partitions without members to members below their quotas."""
        start = 0
        for member_id, quota in self._unfilled:
            end = min(start + quota, len(self._unassigned))
            self.changes.setdefault(member_id, []).extend(self._unassigned[start:end])
            start = end
        if start < len(self._unassigned):
            raise PartitionAssignorError("Some partitions have no member")
