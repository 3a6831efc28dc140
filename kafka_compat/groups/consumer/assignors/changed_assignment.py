"""Changes to the assignments of members, in the order of Kafka's records.

Kafka copies the HashMap and the HashSets of a member's current assignment, removes and adds partitions one at
a time, and writes the record in the iteration order of the result. This order depends on the sizes of the
tables, and therefore on the order of the changes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from kafka_compat.groups.consumer.java_order import (
    HashTable,
    copy_capacity,
    int_order,
    short_bins_order,
    uuid_hash,
    uuid_key,
    uuid_order,
)

if TYPE_CHECKING:
    from collections.abc import Sequence
    from uuid import UUID

    from kafka_compat.groups.consumer.assignors.assignor import Assignment

_PARTITION_BITS: Final = 32
_PARTITION_MASK: Final = 0xFFFFFFFF


def packed(topic: int, partition: int) -> int:
    """Return a number that represents a partition of the topic with that index."""
    return topic << _PARTITION_BITS | partition


def topic_order(assignment: Assignment) -> list[UUID]:
    """Return the topics of a stored assignment, in the order of the HashMap that Kafka reads it into."""
    return uuid_order(list(assignment))


def partition_order(partitions: Sequence[int]) -> list[int]:
    """Return the partitions of a stored topic, in the order of the HashSet that Kafka reads them into."""
    return int_order(partitions, copy_capacity(len(partitions)))


class AssignmentChanges:
    """Computes changed assignments of one group."""

    __slots__ = ("_hashes", "_keys", "_set_capacities", "_topic_ids")

    def __init__(self, topic_ids: list[UUID], set_capacities: list[int]) -> None:
        """`topic_ids` are the subscribed topics by index, and `set_capacities` the numbers of bins of the
        HashSets that Kafka creates for their partitions.
        """
        self._topic_ids = topic_ids
        self._keys = [uuid_key(topic_id) for topic_id in topic_ids]
        self._hashes = [uuid_hash(topic_id) for topic_id in topic_ids]
        self._set_capacities = set_capacities

    def applied(self, current: Assignment, dropped: list[UUID], changes: list[int]) -> Assignment:
        """Return `current` without the dropped topics, and with the changes: packed partitions that are
        added, and complements (~) of packed partitions that are removed.
        """
        if not current and changes:
            topic = changes[0] >> _PARTITION_BITS
            if min(changes) >= 0 and min(changes) >> _PARTITION_BITS == max(changes) >> _PARTITION_BITS:
                partitions = [change & _PARTITION_MASK for change in changes]
                return {self._topic_ids[topic]: tuple(int_order(partitions, self._set_capacities[topic]))}
        if len(current) == 1 and not dropped and max(changes) < 0:
            ((topic_id, stored),) = current.items()
            ordered = short_bins_order(stored, copy_capacity(len(stored)))
            if ordered is not None:
                removed = {~change & _PARTITION_MASK for change in changes}
                left = tuple([partition for partition in ordered if partition not in removed])
                return {topic_id: left} if left else {}
        by_key: dict[int, UUID] = {}
        topics = HashTable(len(current))
        untouched: dict[int, tuple[int, ...]] = {}
        for topic_id in topic_order(current):
            key = uuid_key(topic_id)
            by_key[key] = topic_id
            untouched[key] = current[topic_id]
            topics.put(key, uuid_hash(topic_id))
        for topic_id in dropped:
            key = uuid_key(topic_id)
            topics.remove(key)
            del untouched[key]
        touched: dict[int, HashTable] = {}
        for change in changes:
            number = change if change >= 0 else ~change
            topic = number >> _PARTITION_BITS
            partition = number & _PARTITION_MASK
            key = self._keys[topic]
            if change >= 0:
                topics.compute_if_absent(key, self._hashes[topic])
            table = touched.get(key)
            if table is None:
                if key in untouched:
                    table = _copied(untouched.pop(key))
                else:
                    table = HashTable(self._set_capacities[topic])
                    by_key[key] = self._topic_ids[topic]
                touched[key] = table
            if change >= 0:
                table.put(partition, partition)
                continue
            table.remove(partition)
            if not len(table):
                topics.remove(key)
                del touched[key]
        assignment: Assignment = {}
        for key in topics.ordered_keys():
            table = touched[key] if key in touched else _copied(untouched[key])
            assignment[by_key[key]] = tuple(table.ordered_keys())
        return assignment


def _copied(partitions: tuple[int, ...]) -> HashTable:
    """Return the copy that Kafka makes of the HashSet of a stored topic."""
    table = HashTable(copy_capacity(len(partitions)))
    for partition in partition_order(partitions):
        table.put(partition, partition)
    return table
