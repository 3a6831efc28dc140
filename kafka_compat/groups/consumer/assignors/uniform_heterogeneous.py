"""The uniform assignor for members with different subscriptions (KIP-848).

Rules
1. A member keeps its current partitions of the topics to which it subscribes.
2. Partitions without a member are assigned topic by topic, to the subscriber with the fewest partitions.
   Topics with the most partitions per subscriber come first, then topics with the fewest subscribers, then
   the order of topic IDs decides.
3. Then the same topics in the same order are balanced: partitions move from the subscribers with the most
   partitions to those with the fewest, until the numbers differ by at most one. This is repeated for all
   topics until nothing moves, at most 16 times.
4. Members with equally many partitions are chosen in the iteration order of Java's hash tables
   (java_order.py).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from kafka_compat.groups.consumer.assignors.assignor import (
    GroupSpec,
    MemberSpec,
    TargetAssignment,
    nothing_assigned,
    partition_count,
    same_partitions,
)
from kafka_compat.groups.consumer.assignors.changed_assignment import AssignmentChanges, packed
from kafka_compat.groups.consumer.java_order import sized_capacity, string_order_in_steps, uuid_key
from kafka_compat.long_work import batched

if TYPE_CHECKING:
    from collections.abc import Mapping
    from uuid import UUID

    from kafka_compat.long_work import Steps

_MAX_ROUNDS: Final = 16
_STEP_MEMBERS: Final = 100
"""Number of members per step of long work."""
_STEP_PARTITIONS: Final = 1000


class _Topic:
    """A topic with subscribers. Members are represented by their positions in the group."""

    __slots__ = ("index", "owners", "subscribers", "topic_id")

    def __init__(self, index: int, topic_id: UUID, count: int) -> None:
        self.index = index
        self.topic_id = topic_id
        self.owners = [-1] * count
        """The member of each partition, or -1."""
        self.subscribers: list[int] = []

    def sort_key(self) -> tuple[float, int, int]:
        subscriber_count = len(self.subscribers)
        return -(len(self.owners) / subscriber_count), subscriber_count, uuid_key(self.topic_id)


class _Balancer:
    """The subscribers of one topic: which of them gets the next partition, and which loses one.

    Members with the fewest partitions form a range at the start of the sorted subscribers, which grows when
    each member of the range has got a partition. Members with the most partitions form a range at the end,
    which grows in the same way; those without partitions of the topic are moved behind this range.
    """

    __slots__ = (
        "_least_count",
        "_least_end",
        "_most_count",
        "_most_end",
        "_most_start",
        "_next_least",
        "_next_most",
        "_sizes",
        "_subscribers",
    )

    def __init__(self, subscribers: list[int], sizes: list[int]) -> None:
        """`sizes` are the numbers of partitions of all members, which change while partitions move."""
        self._sizes = sizes
        self._subscribers = sorted(subscribers, key=sizes.__getitem__)
        count = len(subscribers)
        self._least_end = 0
        self._least_count = sizes[self._subscribers[0]] - 1
        self._next_least = 0
        self._most_start = count
        self._most_end = count
        self._most_count = sizes[self._subscribers[-1]] + 1
        self._next_most = count - 1

    def imbalance(self) -> int:
        """Return the initial difference between the most and the fewest partitions of a subscriber."""
        return self._most_count - self._least_count - 2

    def is_balanced(self) -> bool:
        return self._most_count - self._least_count <= 1

    def next_least_loaded(self) -> int:
        """Return the member that gets the next partition."""
        subscribers = self._subscribers
        if self._next_least >= self._least_end:
            self._least_count += 1
            while (
                self._least_end < len(subscribers)
                and self._sizes[subscribers[self._least_end]] == self._least_count
            ):
                self._least_end += 1
            self._next_least = 0
        member = subscribers[self._next_least]
        self._next_least += 1
        return member

    def next_most_loaded(self) -> int:
        """Return the member that loses the next partition, or -1 if no member can lose one."""
        subscribers = self._subscribers
        if self._next_most < self._most_start:
            if self._most_end <= self._most_start and self._most_start > 0:
                # All members of the range were excluded. The next member may have far fewer partitions.
                self._most_count = self._sizes[subscribers[self._most_start - 1]]
            else:
                self._most_count -= 1
            while self._most_start > 0 and self._sizes[subscribers[self._most_start - 1]] == self._most_count:
                self._most_start -= 1
            self._next_most = self._most_end - 1
        if self._next_most < 0:
            return -1
        member = subscribers[self._next_most]
        self._next_most -= 1
        return member

    def exclude_most_loaded(self) -> None:
        """Exclude the last result of `next_most_loaded`, because it has no partitions of the topic."""
        subscribers = self._subscribers
        at = self._next_most + 1
        last = self._most_end - 1
        subscribers[at], subscribers[last] = subscribers[last], subscribers[at]
        self._most_end = last


class _Group:
    """The members of a group by position, their topics, and the changes to their assignments."""

    __slots__ = ("_partition_counts", "_subscriptions", "changes", "dropped", "sizes", "specs", "topics")

    def __init__(self, specs: list[MemberSpec], partition_counts: Mapping[UUID, int]) -> None:
        self.specs = specs
        self.sizes = [0] * len(specs)
        self.topics: dict[int, _Topic] = {}
        self.changes: dict[int, list[int]] = {}
        """Packed partitions that members get, and complements of those that they lose."""
        self.dropped: dict[int, list[UUID]] = {}
        """Topics to which the members no longer subscribe."""
        self._partition_counts = partition_counts
        self._subscriptions: dict[int, dict[int, _Topic]] = {}
        """The topics of each set of subscriptions, by the identity of the tuple of topic IDs."""

    def subscribe(self, member: int) -> None:
        for topic in self._subscribed(member).values():
            topic.subscribers.append(member)

    def keep_current(self, member: int) -> None:
        """Let the member keep its partitions of the topics to which it subscribes."""
        assignment = self.specs[member].assignment
        if not assignment:
            return
        subscribed = self._subscribed(member)
        for topic_id, partitions in assignment.items():
            topic = subscribed.get(topic_id.int)
            if topic is None:
                self.dropped.setdefault(member, []).append(topic_id)
                continue
            self.sizes[member] += len(partitions)
            owners = topic.owners
            for partition in partitions:
                owners[partition] = member

    def assign(self, topic: _Topic, partition: int, member: int) -> None:
        number = packed(topic.index, partition)
        owner = topic.owners[partition]
        if owner >= 0:
            self.changes.setdefault(owner, []).append(~number)
            self.sizes[owner] -= 1
        self.changes.setdefault(member, []).append(number)
        self.sizes[member] += 1
        topic.owners[partition] = member

    def _subscribed(self, member: int) -> dict[int, _Topic]:
        topic_ids = self.specs[member].subscribed_topic_ids
        subscribed = self._subscriptions.get(id(topic_ids))
        if subscribed is None:
            subscribed = {topic_id.int: self._topic(topic_id) for topic_id in topic_ids}
            self._subscriptions[id(topic_ids)] = subscribed
        return subscribed

    def _topic(self, topic_id: UUID) -> _Topic:
        topic = self.topics.get(topic_id.int)
        if topic is None:
            count = partition_count(topic_id, self._partition_counts)
            topic = self.topics[topic_id.int] = _Topic(len(self.topics), topic_id, count)
        return topic


def assign_heterogeneous(group: GroupSpec, partition_counts: Mapping[UUID, int]) -> Steps[TargetAssignment]:
    """Do the work of Kafka's UniformHeterogeneousAssignmentBuilder."""
    member_ids = yield from string_order_in_steps(list(group.members))
    members = _Group([group.members[member_id] for member_id in member_ids], partition_counts)
    for batch in batched(range(len(member_ids)), _STEP_MEMBERS):
        for member in batch:
            members.subscribe(member)
        yield None
    topics = list(members.topics.values())
    if not topics:
        return nothing_assigned(group, member_ids)
    for batch in batched(range(len(member_ids)), _STEP_MEMBERS):
        for member in batch:
            members.keep_current(member)
        yield None
    ordered = sorted(topics, key=_Topic.sort_key)
    yield from _assign_remaining(members, ordered)
    yield from _balance(members, [topic for topic in ordered if len(topic.subscribers) > 1])
    changes = AssignmentChanges(
        [topic.topic_id for topic in topics],
        [sized_capacity(-(-len(topic.owners) // len(topic.subscribers))) for topic in topics],
    )
    target: TargetAssignment = {
        member_id: spec.assignment for member_id, spec in zip(member_ids, members.specs, strict=True)
    }
    for batch in batched(members.changes.keys() | members.dropped.keys(), _STEP_MEMBERS):
        for member in batch:
            current = members.specs[member].assignment
            dropped = members.dropped.get(member, [])
            assignment = changes.applied(current, dropped, members.changes.get(member, []))
            if not same_partitions(assignment, current):
                target[member_ids[member]] = assignment
        yield None
    return target


def _assign_remaining(members: _Group, topics: list[_Topic]) -> Steps[None]:
    for topic in topics:
        unassigned = [partition for partition, owner in enumerate(topic.owners) if owner < 0]
        if not unassigned:
            continue
        balancer = _Balancer(topic.subscribers, members.sizes)
        for batch in batched(unassigned, _STEP_PARTITIONS):
            for partition in batch:
                members.assign(topic, partition, balancer.next_least_loaded())
            yield None


def _balance(members: _Group, topics: list[_Topic]) -> Steps[None]:
    last_balanced = -1
    for _ in range(_MAX_ROUNDS):
        for position, topic in enumerate(topics):
            if position == last_balanced:
                return
            moved_count = yield from _balance_topic(members, topic)
            if moved_count or last_balanced < 0:
                last_balanced = position


def _balance_topic(members: _Group, topic: _Topic) -> Steps[int]:
    """Balance the subscribers of one topic, and return the number of partitions that moved."""
    balancer = _Balancer(topic.subscribers, members.sizes)
    yield None
    if balancer.imbalance() <= 1:
        return 0
    owned: dict[int, list[int]] = {}
    for partition, owner in enumerate(topic.owners):
        owned.setdefault(owner, []).append(partition)
    moved_count = 0
    while not balancer.is_balanced():
        member = balancer.next_most_loaded()
        while member >= 0 and not owned.get(member):
            balancer.exclude_most_loaded()
            member = balancer.next_most_loaded()
        if member < 0:
            break
        partition = owned[member].pop()
        least_loaded = balancer.next_least_loaded()
        if balancer.is_balanced():
            break
        members.assign(topic, partition, least_loaded)
        moved_count += 1
        if not moved_count % _STEP_PARTITIONS:
            yield None
    return moved_count
