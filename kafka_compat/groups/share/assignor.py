"""The simple assignor (KIP-932): each share-partition has as many members as needed to occupy all members.

Members keep their partitions where possible. Ties are broken as in Kafka, by the iteration order of Java's
hash tables.
"""

from collections.abc import Iterable
from math import ceil
from typing import TYPE_CHECKING, NamedTuple

from kafka_compat.groups.consumer.assignors.changed_assignment import partition_order, topic_order
from kafka_compat.groups.consumer.java_order import (
    DEFAULT_CAPACITY,
    HashTable,
    copy_capacity,
    int_order,
    string_order,
    table_capacity,
    uuid_hash,
    uuid_key,
    uuid_order,
)

if TYPE_CHECKING:
    from collections.abc import Mapping
    from uuid import UUID

    from kafka_compat.groups.consumer.assignors.assignor import Assignment, TargetAssignment
    from kafka_compat.long_work import Steps

    Assignable = Mapping[UUID, frozenset[int]]
    """Maps topic IDs to the partitions that may be assigned."""

_32_BITS = 0xFFFFFFFF
_STEP_MEMBERS = 50
"""Number of members per step of long work."""


class SimpleMember(NamedTuple):
    """A member as the assignor sees it: its existing topics, in the iteration order of Kafka's sets, and its
    current target assignment.
    """

    topic_ids: "tuple[UUID, ...]"
    assignment: "Assignment"


def assign(
    members: "Mapping[str, SimpleMember]",
    is_homogeneous: bool,
    partition_counts: "Mapping[UUID, int]",
    assignable: "Assignable",
) -> "Steps[TargetAssignment]":
    """Assign the partitions, in steps. `members` have the iteration order of Kafka's TimelineHashMap. If
    `is_homogeneous`, the subscription of the first member counts for all.
    """
    member_ids = string_order(list(members))
    yield None
    if not member_ids:
        return {}
    builder = _Builder([members[each] for each in member_ids])
    if is_homogeneous:
        yield from builder.assign_homogeneous(partition_counts, assignable)
    else:
        yield from builder.assign_heterogeneous(partition_counts, assignable)
    return {member_id: builder.result(index) for index, member_id in enumerate(member_ids)}


class _Copy:
    """A copy of a member's assignment, which changes."""

    def __init__(self, assignment: "Assignment") -> None:
        self._topics = HashTable(max(len(assignment), 1))
        self._ids: dict[int, UUID] = {}
        self._partitions: dict[UUID, HashTable] = {}
        self._contents: dict[UUID, set[int]] = {}
        for topic_id in topic_order(assignment):
            stored = assignment[topic_id]
            table = HashTable(copy_capacity(len(stored)))
            for partition in partition_order(stored):
                table.put(partition, partition)
            self._topics.put(uuid_key(topic_id), uuid_hash(topic_id))
            self._ids[uuid_key(topic_id)] = topic_id
            self._partitions[topic_id] = table
            self._contents[topic_id] = set(stored)

    def add(self, topic_id: "UUID", partition: int) -> None:
        self._topics.compute_if_absent(uuid_key(topic_id), uuid_hash(topic_id))
        self._ids[uuid_key(topic_id)] = topic_id
        table = self._partitions.setdefault(topic_id, HashTable(DEFAULT_CAPACITY))
        table.put(partition, partition)
        self._contents.setdefault(topic_id, set()).add(partition)

    def discard(self, topic_id: "UUID", partition: int) -> bool:
        """Remove a partition, and return whether the copy contained it. The topic stays, even if empty."""
        contents = self._contents.get(topic_id)
        if contents is None or partition not in contents:
            return False
        contents.remove(partition)
        self._partitions[topic_id].remove(partition)
        return True

    def remove_topic(self, topic_id: "UUID") -> None:
        if self._partitions.pop(topic_id, None) is not None:
            del self._contents[topic_id]
            self._topics.remove(uuid_key(topic_id))

    def result(self) -> "Assignment":
        ids = (self._ids[key] for key in self._topics.ordered_keys())
        return {topic_id: tuple(self._partitions[topic_id].ordered_keys()) for topic_id in ids}


class _Shares:
    """The members of each partition, and the partitions of each member. Partitions are numbers with a hash
    code. `capacity` is the number of bins of the table of partitions.
    """

    def __init__(self, capacity: int, hashes: "Iterable[tuple[int, int]]" = ()) -> None:
        self._table = HashTable(capacity)
        self._hashes: dict[int, int] = dict(hashes)
        self.members: dict[int, dict[int, None]] = {}
        self.partitions: dict[int, HashTable] = {}

    def know(self, partition: int, hash_code: int) -> None:
        """Add a partition that may have no members."""
        self._hashes[partition] = hash_code
        self._table.compute_if_absent(partition, hash_code)
        self.members.setdefault(partition, {})

    def share(self, partition: int, hash_code: int, member: int) -> None:
        self.know(partition, hash_code)
        self.members[partition][member] = None
        self.own(partition, member)

    def own(self, partition: int, member: int) -> None:
        self.partitions.setdefault(member, HashTable(DEFAULT_CAPACITY)).put(
            partition, self._hashes[partition]
        )

    def count(self, member: int) -> int:
        table = self.partitions.get(member)
        return 0 if table is None else len(table)

    def ordered_partitions(self) -> list[int]:
        return self._table.ordered_keys()

    def ordered_members(self, partition: int) -> list[int]:
        return int_order(list(self.members[partition]), DEFAULT_CAPACITY)


class _Builder:
    """The members, by index, and their changing assignments."""

    def __init__(self, members: list[SimpleMember]) -> None:
        self._members = members
        self._copies: dict[int, _Copy] = {}

    def result(self, index: int) -> "Assignment":
        copy = self._copies.get(index)
        return self._members[index].assignment if copy is None else copy.result()

    def _copy(self, index: int) -> _Copy:
        copy = self._copies.get(index)
        if copy is None:
            copy = self._copies[index] = _Copy(self._members[index].assignment)
        return copy

    def assign_homogeneous(self, counts: "Mapping[UUID, int]", assignable: "Assignable") -> "Steps[None]":
        """Share the partitions of all topics among all members."""
        topic_ids = self._members[0].topic_ids
        numbers: dict[tuple[UUID, int], int] = {}
        names: list[tuple[UUID, int]] = []

        def number_of(topic_id: "UUID", partition: int) -> int:
            key = (topic_id, partition)
            number = numbers.get(key)
            if number is None:
                number = numbers[key] = len(names)
                names.append(key)
            return number

        targets = [
            (topic_id, partition)
            for topic_id in topic_ids
            for partition in range(counts[topic_id])
            if partition in assignable.get(topic_id, ())
        ]
        member_count = len(self._members)
        quotas = _quotas(member_count, len(targets))
        sharing = -(-member_count // len(targets)) if targets else 0
        shares = _Shares(_map_capacity(len(targets)))
        unfilled: set[int] = set()
        overfilled: list[int] = []
        subscribed = set(topic_ids)
        for index, member in enumerate(self._members):
            if index % _STEP_MEMBERS == 0:
                yield None
            count = 0
            for topic_id in topic_order(member.assignment):
                if topic_id not in subscribed:
                    self._copy(index).remove_topic(topic_id)
                    continue
                for partition in partition_order(member.assignment[topic_id]):
                    shares.share(number_of(topic_id, partition), _hash(topic_id, partition), index)
                    count += 1
            if count < quotas[index]:
                unfilled.add(index)
            elif count > quotas[index]:
                overfilled.append(index)
        for index in overfilled:
            yield None
            table = shares.partitions[index]
            for number in table.ordered_keys():
                if len(table) <= quotas[index]:
                    break
                self._copy(index).discard(*names[number])
                del shares.members[number][index]
                table.remove(number)
        for number in shares.ordered_partitions():
            excess = len(shares.members[number]) - sharing
            if excess <= 0:
                continue
            yield None
            for index in shares.ordered_members(number):
                if excess > 0 and self._copy(index).discard(*names[number]):
                    excess -= 1
                    del shares.members[number][index]
                    shares.partitions[index].remove(number)
                    unfilled.add(index)
        for topic_id, partition in targets:
            shares.know(number_of(topic_id, partition), _hash(topic_id, partition))
        yield from self._assign_remaining(shares, sorted(unfilled), quotas, sharing, names)

    def assign_heterogeneous(self, counts: "Mapping[UUID, int]", assignable: "Assignable") -> "Steps[None]":
        """Share the partitions of each topic among its subscribers."""
        subscribers: dict[UUID, list[int]] = {}
        for index, member in enumerate(self._members):
            for topic_id in member.topic_ids:
                subscribers.setdefault(topic_id, []).append(index)
        if not subscribers:
            # As in Kafka, partitions of deleted topics are revoked only in this case.
            self._copies = {index: _Copy({}) for index in range(len(self._members))}
        for topic_id in uuid_order(list(subscribers)):
            yield None
            targets = [each for each in range(counts[topic_id]) if each in assignable.get(topic_id, ())]
            yield from self._assign_topic(topic_id, targets, subscribers[topic_id])

    def _assign_topic(self, topic_id: "UUID", targets: list[int], subscribers: list[int]) -> "Steps[None]":
        quotas = [0] * len(self._members)
        for index, quota in zip(subscribers, _quotas(len(subscribers), len(targets)), strict=True):
            quotas[index] = quota
        sharing = -(-len(subscribers) // len(targets)) if targets else 0
        shares = _Shares(_map_capacity(len(targets)))
        for index, member in enumerate(self._members):
            for partition in partition_order(member.assignment.get(topic_id, ())):
                shares.share(partition, partition, index)
        yield None
        for index in int_order(list(shares.partitions), _map_capacity(len(subscribers))):
            table = shares.partitions[index]
            for partition in table.ordered_keys():
                if len(table) <= quotas[index]:
                    break
                self._copy(index).discard(topic_id, partition)
                del shares.members[partition][index]
                table.remove(partition)
        for partition in shares.ordered_partitions():
            excess = len(shares.members[partition]) - sharing
            if excess <= 0:
                continue
            yield None
            for index in shares.ordered_members(partition):
                if excess > 0 and self._copy(index).discard(topic_id, partition):
                    excess -= 1
                    del shares.members[partition][index]
                    shares.partitions[index].remove(partition)
        for partition in targets:
            shares.know(partition, partition)
        unfilled = sorted(index for index in subscribers if shares.count(index) < quotas[index])
        names = _Numbers(topic_id)
        yield from self._assign_remaining(shares, unfilled, quotas, sharing, names)

    def _assign_remaining(
        self,
        shares: _Shares,
        unfilled: list[int],
        quotas: list[int],
        sharing: int,
        names: "list[tuple[UUID, int]] | _Numbers",
    ) -> "Steps[None]":
        """Give partitions that too few members share to the members below their quotas, in turn."""
        if not unfilled:
            return
        position = 0
        has_assigned = False
        for number in shares.ordered_partitions():
            members = shares.members[number]
            remaining = sharing - len(members)
            if remaining > 0:
                yield None
            while remaining > 0 and unfilled:
                if position == len(unfilled):
                    if not has_assigned:
                        break
                    position = 0
                    has_assigned = False
                index = unfilled[position]
                position += 1
                if index in members:
                    continue
                self._copy(index).add(*names[number])
                shares.own(number, index)
                remaining -= 1
                has_assigned = True
                if shares.count(index) >= quotas[index]:
                    position -= 1
                    del unfilled[position]
            if not unfilled:
                return


class _Numbers:
    """The partitions of one topic: the number of a partition is its index."""

    def __init__(self, topic_id: "UUID") -> None:
        self._topic_id = topic_id

    def __getitem__(self, number: int) -> "tuple[UUID, int]":
        return self._topic_id, number


def _quotas(member_count: int, partition_count: int) -> list[int]:
    """Return how many partitions each member should have, so that all have nearly the same number."""
    if not partition_count or not member_count:
        return [0] * member_count
    sharing = -(-member_count // partition_count)
    precise = float(sharing * partition_count) / member_count
    return [ceil(precise * (index + 1)) - ceil(precise * index) for index in range(member_count)]


def _hash(topic_id: "UUID", partition: int) -> int:
    """Return the hash code of Kafka's TopicIdPartition, a signed number of 32 bits."""
    number = (31 * uuid_hash(topic_id) + partition) & _32_BITS
    return number if number < 0x80000000 else number - 0x100000000


def _map_capacity(size: int) -> int:
    """Return the number of bins of a table that the assignor creates for `size` keys."""
    return table_capacity(int((size + 1) / 0.75 + 1))
