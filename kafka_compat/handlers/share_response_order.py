"""The order of partitions in responses to ShareFetch and ShareAcknowledge, and of acknowledgements.

Kafka collects partitions in Scala's hash tables, so their order depends on topic IDs, topic names and
partition numbers, and not on the request.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Final, TypeVar

from kafka_compat.groups.consumer.java_order import string_hash, uuid_hash
from kafka_compat.long_work import Steps, batched
from kafka_compat.share_partitions.share_session import TopicIdPartition

if TYPE_CHECKING:
    from uuid import UUID

Key = TypeVar("Key")
Value = TypeVar("Value")

_32_BITS: Final = 0xFFFFFFFF
_CAPACITY: Final = 16
_SMALL_MAP: Final = 4
"""Number of keys up to which an immutable map keeps the order in which they were added."""
_TRIE_BITS: Final = 5
_ORDERED_MAX: Final = 10_000
"""Number of partitions up to which they have Kafka's order. No consumer has more in one session."""


def in_kafka_order(
    items: dict[TopicIdPartition, Value], name_of: Callable[[TopicIdPartition], str | None]
) -> Steps[dict[TopicIdPartition, Value]]:
    """Return the partitions in the order in which Kafka sends them. `name_of` returns the name of a topic.
    More than 10,000 partitions keep their order, and `items` is returned, because a copy would take long.
    """
    if len(items) > _ORDERED_MAX:
        return items
    hashes = yield from _hashes(items, name_of)
    ordered = yield from _mutable_order(items, hashes.__getitem__)
    if len(ordered) > _SMALL_MAP:
        improved: list[tuple[int, TopicIdPartition]] = []
        for some in batched(ordered):
            improved += ((_improved(hashes[key]), key) for key in some)
            yield None
        ordered = yield from _immutable_order(improved, 0)
    return (yield from _in_order(items, ordered))


def in_order_of_acknowledgement(
    items: dict[TopicIdPartition, Value], name_of: Callable[[TopicIdPartition], str | None]
) -> Steps[dict[TopicIdPartition, Value]]:
    """Return the partitions of a request in the order in which Kafka processes their acknowledgements. More
    than 10,000 partitions keep their order, and `items` is returned.
    """
    if len(items) > _ORDERED_MAX:
        return items
    hashes = yield from _hashes(items, name_of)
    ordered = yield from _mutable_order(items, hashes.__getitem__)
    return (yield from _in_order(items, ordered))


def in_order_of_additions(keys: Sequence[TopicIdPartition]) -> Steps[Sequence[TopicIdPartition]]:
    """Return the order of partitions that have been acknowledged, but were not fetched: by topic ID, and then
    by number. More than 10,000 partitions keep their order.
    """
    if len(keys) > _ORDERED_MAX:
        return keys
    topics: dict[UUID, list[int]] = {}
    for some in batched(keys):
        for topic_id, number in some:
            topics.setdefault(topic_id, []).append(number)
        yield None
    ordered: list[TopicIdPartition] = []
    for topic_id in (yield from _mutable_order(topics, uuid_hash)):
        numbers = yield from _mutable_order(topics[topic_id], lambda number: number)
        for some_numbers in batched(numbers):
            ordered += (TopicIdPartition(topic_id, number) for number in some_numbers)
            yield None
    return ordered


def _in_order(
    items: dict[TopicIdPartition, Value], keys: Sequence[TopicIdPartition]
) -> Steps[dict[TopicIdPartition, Value]]:
    ordered: dict[TopicIdPartition, Value] = {}
    for some in batched(keys):
        ordered.update((key, items[key]) for key in some)
        yield None
    return ordered


def _hashes(
    keys: Iterable[TopicIdPartition], name_of: Callable[[TopicIdPartition], str | None]
) -> Steps[dict[TopicIdPartition, int]]:
    hashes: dict[TopicIdPartition, int] = {}
    for some in batched(keys):
        hashes.update((key, _hash(key, name_of(key))) for key in some)
        yield None
    return hashes


def _hash(key: TopicIdPartition, name: str | None) -> int:
    """Return the hash code of Kafka's TopicIdPartition, as 32 bits."""
    of_partition = 31 * (31 + key.partition) + (0 if name is None else string_hash(name))
    return (31 * (31 + uuid_hash(key.topic_id)) + of_partition) & _32_BITS


def _mutable_order(keys: Iterable[Key], hash_of: Callable[[Key], int]) -> Steps[list[Key]]:
    """Return different keys in the order of Scala's mutable HashMap: by slot, and then by hash code."""
    spread: list[tuple[int, Key]] = []
    for some in batched(keys):
        for key in some:
            code = hash_of(key) & _32_BITS
            spread.append((code ^ code >> 16, key))
        yield None
    capacity = _CAPACITY
    while len(spread) >= capacity * 3 // 4:
        capacity *= 2
    # A sort of _ORDERED_MAX keys takes a few ms.
    spread.sort(key=lambda each: (each[0] & capacity - 1, _signed(each[0])))
    yield None
    return [key for _, key in spread]


def _immutable_order(keys: list[tuple[int, Key]], shift: int) -> Steps[list[Key]]:
    """Return keys with improved hash codes in the order of Scala's immutable HashMap: a trie, whose nodes
    have their single keys before their children.
    """
    if shift > 32:
        return [key for _, key in keys]
    slots: dict[int, list[tuple[int, Key]]] = {}
    for each in keys:
        slots.setdefault(each[0] >> shift & (1 << _TRIE_BITS) - 1, []).append(each)
    yield None
    ordered = [slots[slot][0][1] for slot in sorted(slots) if len(slots[slot]) == 1]
    for slot in sorted(slots):
        if len(slots[slot]) > 1:
            ordered += yield from _immutable_order(slots[slot], shift + _TRIE_BITS)
    return ordered


def _improved(code: int) -> int:
    code = (code + ~(code << 9)) & _32_BITS
    code ^= code >> 14
    code = (code + (code << 4)) & _32_BITS
    return code ^ code >> 10


def _signed(code: int) -> int:
    return code if code < 0x80000000 else code - 0x100000000
