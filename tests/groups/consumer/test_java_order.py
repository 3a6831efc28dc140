"""The iteration order of hash tables, compared with Java's HashMap and Kafka's TimelineHashMap."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from typing import Any
from uuid import UUID

import pytest

from kafka_compat.groups.consumer.java_order import (
    HashTable,
    TimelineOrder,
    copy_capacity,
    int_order,
    sorted_strings,
    string_hash,
    string_order,
    utf16_key,
    uuid_hash,
    uuid_key,
    uuid_order,
)
from kafka_compat.storage.directories.checkpoints import encode_topic_id
from tests.oracle.consumer_group_oracle import ConsumerGroupOracle
from tests.support.campaign import rounds

Events = list[tuple[str, Any]]

_HASH: dict[str, Callable[[Any], int]] = {"int": lambda n: n, "uuid": uuid_hash, "string": string_hash}
_RANK: dict[str, Callable[[Any], Any]] = {"int": lambda n: n, "uuid": uuid_key, "string": utf16_key}
_TEXT: dict[str, Callable[[Any], str]] = {"int": str, "uuid": encode_topic_id, "string": str}
_ORDER: dict[str, Callable[[Sequence[Any], int], list[Any]]] = {
    "int": int_order,
    "uuid": uuid_order,
    "string": string_order,
}


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("", 0),
        ("hello", 99162322),
        ("Aa", 2112),
        ("BB", 2112),
        ("polygenelubricants", -(1 << 31)),
        ("é", 233),
    ],
)
def test_hash_codes_of_strings_match_javas(text: str, code: int) -> None:
    assert string_hash(text) == code


def test_surrogates_count_as_two_characters() -> None:
    assert string_hash("😀") == 0xD83D * 31 + 0xDE00


def test_hash_codes_of_topic_ids_match_kafkas() -> None:
    # The two halves of the ID are 0x0000000100000002 and 0x0000000300000004.
    assert uuid_hash(UUID(int=0x0000000100000002_0000000300000004)) == (1 ^ 2 ^ 3 ^ 4)
    assert uuid_hash(UUID(int=0x80000000 << 96)) == -(1 << 31)


def test_strings_are_sorted_by_utf16_code_unit() -> None:
    assert sorted_strings(["\ue000", "😀", "b", "a"]) == ["a", "b", "😀", "\ue000"]


def test_copies_have_at_least_sixteen_bins() -> None:
    assert [copy_capacity(size) for size in (0, 11, 12, 23, 24)] == [16, 16, 32, 32, 64]


def test_tables_iterate_like_javas(kafka: ConsumerGroupOracle) -> None:
    """Random keys of which many are in the same bin, so that some bins become trees."""
    for seed in range(rounds(600, 20_000)):
        chance = random.Random(seed)
        kind = chance.choice(("int", "uuid", "string"))
        keys = _random_keys(chance, kind)
        capacity = chance.choice((0, 1, 2, 5, 16, 17, 64, 100))
        events = _random_events(chance, keys)
        answer = kafka.ask(
            kind="table",
            keys=kind,
            capacity=capacity,
            events=[(name, key if kind == "int" else _TEXT[kind](key)) for name, key in events],
        )
        ranked = sorted(keys, key=_RANK[kind])
        ranks = {key: rank for rank, key in enumerate(ranked)}
        table = HashTable(capacity)
        for name, key in events:
            if name == "put":
                table.put(ranks[key], _HASH[kind](key))
            elif name == "computeIfAbsent":
                table.compute_if_absent(ranks[key], _HASH[kind](key))
            else:
                table.remove(ranks[key])
        assert [_TEXT[kind](ranked[rank]) for rank in table.ordered_keys()] == answer, seed
        if all(name == "put" for name, _ in events):
            distinct = list(dict.fromkeys(key for _, key in events))
            assert [_TEXT[kind](key) for key in _ORDER[kind](distinct, capacity)] == answer, seed


def test_timeline_tables_iterate_like_kafkas(kafka: ConsumerGroupOracle) -> None:
    for seed in range(rounds(200, 5_000)):
        chance = random.Random(seed)
        events = [
            (name, key)
            for name, key in _random_events(chance, _random_keys(chance, "string"))
            if name != "computeIfAbsent"
        ]
        order = TimelineOrder()
        for name, key in events:
            if name == "put":
                order.put(key)
            else:
                order.remove(key)
        keys = order.ordered_keys()
        assert keys == kafka.ask(kind="timeline", events=events), seed
        assert len(keys) == len(order)


def _random_keys(chance: random.Random, kind: str) -> list[Any]:
    count = chance.choice((3, 10, 30, 200, 600))
    stride = chance.choice((1, 1, 16, 32, 64, 100, 128, 1 << 16, 65537 * 64))
    if kind == "int":
        return [index * stride for index in range(count) if index * stride < 1 << 31]
    if kind == "uuid":
        # The sign bits matter for the order of keys within a tree.
        ids = [UUID(int=index * stride | chance.getrandbits(1) << 127) for index in range(count)]
        return list(dict.fromkeys(ids))
    # Strings of these pairs have the same hash code.
    texts = ("".join(chance.choices(("Aa", "BB", "é一", "😀"), k=chance.randint(0, 9))) for _ in range(count))
    return list(dict.fromkeys(texts))


def _random_events(chance: random.Random, keys: list[Any]) -> Events:
    removals = chance.choice((0.0, 0.1, 0.4))
    lookups = chance.choice((0.0, 0.0, 0.5, 1.0))
    events: Events = []
    contained: dict[Any, None] = {}
    for _ in range(chance.choice((5, 20, 100, 2 * len(keys)))):
        if contained and chance.random() < removals:
            key = chance.choice(list(contained))
            del contained[key]
            events.append(("remove", key))
        else:
            key = chance.choice(keys)
            contained[key] = None
            events.append(("computeIfAbsent" if chance.random() < lookups else "put", key))
    return events
