"""The two tables of a cleaning: within their memory, and no different from a plain dictionary."""

from __future__ import annotations

import tracemalloc

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from storage.offset_map import DictOffsetMap, OffsetMap, SlotOffsetMap, new_offset_map

LIMIT_BYTES = 4 << 20


def fill(offset_map: OffsetMap) -> int:
    """Put keys until there is no room for another; how many there are."""
    offset = 0
    while offset_map.put(b"key of some length %d" % offset, 1_000_000 + offset):
        offset += 1
    assert offset_map.latest_offset == 1_000_000 + offset - 1
    return offset


def test_a_dictionary_stays_within_its_memory() -> None:
    tracemalloc.start()
    try:
        keys = fill(DictOffsetMap(LIMIT_BYTES))
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak <= LIMIT_BYTES
    assert keys > LIMIT_BYTES / 400


def test_slots_hold_as_many_keys_as_genuine_kafkas() -> None:
    offset_map = new_offset_map(LIMIT_BYTES, 10_000_000, 0.9)
    keys = fill(offset_map)
    assert keys == len(offset_map) == pytest.approx(LIMIT_BYTES / 24 * 0.9, rel=0.001)
    # A key that is there already needs no room.
    assert offset_map.put(b"key of some length 0", 5_000_000)
    assert offset_map.get(b"key of some length 0") == 5_000_000
    assert offset_map.get(b"key of some length %d" % keys) == -1


def test_a_cleaning_gets_on_with_any_memory() -> None:
    for offset_map in (DictOffsetMap(1), new_offset_map(1, 1000, 0.9)):
        assert offset_map.put(b"key", 7)
        assert offset_map.get(b"key") == 7


@given(st.lists(st.tuples(st.binary(max_size=40), st.integers(0, 2**62)), max_size=60))
@settings(max_examples=200, deadline=None)
def test_both_are_as_a_dictionary(rows: list[tuple[bytes, int]]) -> None:
    plain = dict(rows)
    for offset_map in (DictOffsetMap(1 << 20), SlotOffsetMap(67, 1.0)):
        assert all(offset_map.put(key, offset) for key, offset in rows)
        assert len(offset_map) == len(plain)
        assert {key: offset_map.get(key) for key in plain} == plain
        assert offset_map.get(b"a key that is longer than all that were put, and so is not there") == -1
