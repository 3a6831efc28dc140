"""The cleaner's offset map: it stays within its memory limit and returns the same results as a dictionary."""

from __future__ import annotations

import tracemalloc

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kafka_compat.storage.compaction import offset_map as offset_map_module
from kafka_compat.storage.compaction.offset_map import OffsetMap, _Dictionary, _Slots

LIMIT_BYTES = 4 << 20
BATCH = 100


def key_at(offset: int) -> bytes:
    return b"key of some length %d" % offset


def fill(offset_map: OffsetMap | _Dictionary) -> int:
    """Put batches of keys until the map is full, and return the number of keys."""
    for start in range(0, 1 << 30, BATCH):
        offsets = range(start, start + BATCH)
        keys = [key_at(offset) for offset in offsets]
        if isinstance(offset_map, OffsetMap):
            if not offset_map.put(keys, offsets):
                return offset_map.latest_offset + 1
        elif (count := offset_map.put(keys, offsets)) < BATCH:
            return start + count
    raise AssertionError("the map never became full")


def test_a_dictionary_stays_within_its_memory_limit() -> None:
    tracemalloc.start()
    try:
        keys = fill(_Dictionary(LIMIT_BYTES))
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak <= LIMIT_BYTES
    assert keys > LIMIT_BYTES / 400


def test_the_offset_map_holds_as_many_keys_as_apache_kafkas_without_losing_any() -> None:
    tracemalloc.start()
    try:
        offset_map = OffsetMap(LIMIT_BYTES, 0.9)
        keys = fill(offset_map)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak <= LIMIT_BYTES
    assert keys == len(offset_map)
    assert LIMIT_BYTES / 24 * 0.75 < keys <= LIMIT_BYTES / 24 * 0.9
    assert [offset_map.get(key_at(offset)) for offset in range(keys)] == list(range(keys))
    assert offset_map.get(key_at(keys)) is None
    # A key that is already in the map needs no extra slot.
    assert offset_map.put([key_at(0)], [keys])
    assert offset_map.get(key_at(0)) == keys
    assert offset_map.flags(0, keys + 1) == b"\0" + b"\1" * keys


@pytest.mark.parametrize("memory_bytes", [1, 300, 2_000, 20_000])
@pytest.mark.parametrize("load_factor", [0.01, 0.9])
def test_cleaning_completes_with_any_memory_limit(memory_bytes: int, load_factor: float) -> None:
    offset_map = OffsetMap(memory_bytes, load_factor, first_offset=1000)
    keys, offsets = [key_at(offset) for offset in range(1000, 1500)], range(1000, 1500)
    offset_map.put(keys, offsets)
    assert offset_map.latest_offset >= 1000
    assert len(offset_map) == offset_map.latest_offset - 999
    known = [offset_map.get(key) for key in keys]
    assert known == [*range(1000, offset_map.latest_offset + 1), *[None] * (1500 - len(offset_map) - 1000)]
    assert offset_map.holds_all_of(1000, offset_map.latest_offset)
    assert not offset_map.holds_all_of(999, 1000)
    assert not offset_map.holds_all_of(1000, offset_map.latest_offset + 1)


@given(
    st.lists(st.lists(st.binary(max_size=40), min_size=1, max_size=20), max_size=8),
    st.sampled_from([2_000, 8_000, 1 << 20]),
)
@settings(max_examples=200, deadline=None)
def test_an_offset_map_behaves_like_a_dictionary(batches: list[list[bytes]], memory_bytes: int) -> None:
    plain: dict[bytes, int] = {}
    offset_map = OffsetMap(memory_bytes, 0.9)
    offset = 0
    for keys in batches:
        offsets = range(offset, offset + len(keys))
        if not offset_map.put(keys, offsets):
            keys = keys[: max(offset_map.latest_offset + 1 - offset, 0)]
        plain.update(zip(keys, offsets, strict=False))
        offset += len(keys)
        if offset_map.latest_offset + 1 < offset or not keys:
            break
    assert len(offset_map) == len(plain)
    assert {key: offset_map.get(key) for key in plain} == plain
    assert offset_map.get(b"a key that is longer than all that were put, and so is not there") is None
    flags = offset_map.flags(0, offset)
    assert [at for at, flag in enumerate(flags) if flag] == sorted(plain.values())


def test_a_dictionary_converted_to_slots_keeps_its_entries() -> None:
    dictionary = _Dictionary(1 << 20)
    assert dictionary.put([b"a", b"b", b"a"], [5, 6, 7]) == 3
    slots = dictionary.into_slots(1 << 20, 0.9)
    assert isinstance(slots, _Slots)
    assert len(dictionary) == 0
    assert (len(slots), slots.get(b"a"), slots.get(b"b"), slots.get(b"c")) == (2, 7, 6, None)


def test_untracked_batches_are_assumed_to_contain_tombstones(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(offset_map_module, "TOMBSTONES_MAX", 2)
    offset_map = OffsetMap(1 << 20, 0.9)
    offset_map.note_tombstones(5)
    assert [offset_map.may_hold_tombstones(base) for base in (4, 5, 6)] == [False, True, False]
    offset_map.note_tombstones(8)
    offset_map.note_tombstones(9)
    found = {base: offset_map.may_hold_tombstones(base) for base in (5, 7, 8, 9, 10)}
    assert found == {5: True, 7: False, 8: True, 9: True, 10: True}
