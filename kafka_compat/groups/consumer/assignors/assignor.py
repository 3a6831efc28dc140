"""The interface of an assignor: the members of a group and its topics, and the target assignment.

An assignor does no I/O. It works in steps (long_work.py), because a large group takes longer than a turn of
the event loop.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple, Protocol

if TYPE_CHECKING:
    from uuid import UUID

    from kafka_compat.long_work import Steps

Assignment = dict["UUID", tuple[int, ...]]
"""Maps topic IDs to partitions, in the order of the member's record in `__consumer_offsets`."""

TargetAssignment = dict[str, Assignment]
"""Maps member IDs to assignments, in the order in which Kafka writes the records. A member whose partitions
do not change keeps its Assignment object.
"""


class MemberSpec(NamedTuple):
    """A member as an assignor sees it. Kafka's assignors ignore racks since Kafka 4.0."""

    instance_id: str | None
    rack_id: str | None
    subscribed_topic_ids: "tuple[UUID, ...]"
    """The existing topics, in the order of `subscribed_names`. To save time, let members with the same
    subscriptions share one tuple.
    """
    subscribed_name_count: int
    """Length of `subscribed_names`, including topics that do not exist. Kafka sizes hash tables with it."""
    assignment: Assignment
    """The current target assignment."""


class GroupSpec(NamedTuple):
    """The members of a group, in the iteration order of Kafka's TimelineHashMap (`TimelineOrder`)."""

    members: dict[str, MemberSpec]
    is_homogeneous: bool
    """Whether the assignor takes the subscriptions of the first member as those of all members."""


class PartitionAssignorError(Exception):
    """The assignor cannot assign the partitions."""


class Assignor(Protocol):
    """One of the assignors of `group.consumer.assignors`."""

    @property
    def name(self) -> str: ...

    def assign(self, group: GroupSpec, partition_counts: "Mapping[UUID, int]") -> "Steps[TargetAssignment]":
        """Assign every partition of the subscribed topics to one of the members that subscribe to it. The
        caller must not change `group` and `partition_counts` between the steps.

        Raises PartitionAssignorError if `partition_counts` lacks a subscribed topic.
        """


def partition_count(topic_id: "UUID", partition_counts: "Mapping[UUID, int]") -> int:
    """Return the number of partitions of a topic. Raises PartitionAssignorError if the topic is unknown."""
    count = partition_counts.get(topic_id)
    if count is None:
        raise PartitionAssignorError(f"Unknown topic {topic_id} in a subscription")
    return count


def same_partitions(one: Assignment, other: Assignment) -> bool:
    """Return whether two assignments contain the same partitions, in any order."""
    if len(one) != len(other):
        return False
    for topic_id, partitions in one.items():
        others = other.get(topic_id)
        if others is None or len(others) != len(partitions):
            return False
        if others != partitions and set(others) != set(partitions):
            return False
    return True


def nothing_assigned(group: GroupSpec, member_ids: list[str]) -> TargetAssignment:
    """Return the target assignment of a group that subscribes to no existing topic."""
    currents = {member_id: group.members[member_id].assignment for member_id in member_ids}
    return {member_id: {} if current else current for member_id, current in currents.items()}
