"""The sparse indexes: lookups, Kafka's file formats, and index files that Apache Kafka leaves after a
kill.
"""

from __future__ import annotations

import struct

import pytest

from kafka_compat.storage.errors import CorruptFile
from kafka_compat.storage.segments.offset_index import OffsetIndex
from kafka_compat.storage.segments.time_index import TimeIndex

PREALLOCATED_BYTES = 10 * 1024 * 1024


def offset_index() -> OffsetIndex:
    index = OffsetIndex(100)
    index.append(119, 5000)
    index.append(139, 10000)
    index.append(159, 15360)
    return index


def test_offset_lookups_return_a_position_at_or_before_the_batch() -> None:
    index = offset_index()
    assert index.position_at_or_before(100) == 0
    assert index.position_at_or_before(118) == 0
    assert index.position_at_or_before(119) == 5000
    assert index.position_at_or_before(140) == 10000
    assert index.position_at_or_before(10**9) == 15360


def test_the_last_batch_boundary_at_or_before_a_position_is_found() -> None:
    index = offset_index()
    assert index.last_position_up_to(4999) == 0
    assert index.last_position_up_to(10000) == 10000
    assert index.last_position_up_to(10**9) == 15360


def test_offset_index_has_kafkas_format() -> None:
    content = offset_index().encode()
    assert content == struct.pack(">6i", 19, 5000, 39, 10000, 59, 15360)
    assert OffsetIndex.decode(100, content, 20000).encode() == content


def test_offset_index_ignores_the_zeros_that_kafka_preallocates() -> None:
    content = offset_index().encode()
    found = OffsetIndex.decode(100, content.ljust(PREALLOCATED_BYTES, b"\0"), 20000)
    assert found.encode() == content
    assert len(OffsetIndex.decode(100, bytes(PREALLOCATED_BYTES), 20000)) == 0


@pytest.mark.parametrize(
    ("fields", "log_size_bytes"),
    [
        ((19, 5000, 9, 9000), 10000),
        ((19, 5000, 39, 4000), 10000),
        ((19, 5000, 39, 10000), 10000),
        ((0, 500), 10000),
    ],
)
def test_an_inconsistent_offset_index_is_corrupt(fields: tuple[int, ...], log_size_bytes: int) -> None:
    content = struct.pack(f">{len(fields)}i", *fields)
    with pytest.raises(CorruptFile):
        OffsetIndex.decode(100, content, log_size_bytes)


def test_offset_index_truncation_drops_later_batches() -> None:
    index = offset_index()
    index.truncate(15360)
    assert len(index) == 2
    index.truncate(10001)
    assert len(index) == 2
    index.truncate(0)
    assert len(index) == 0


def time_index() -> TimeIndex:
    index = TimeIndex(100)
    index.maybe_append(1_000, 109)
    index.maybe_append(1_000, 119)
    index.maybe_append(2_000, 129)
    index.maybe_append(1_500, 139)
    index.maybe_append(3_000, 149)
    return index


def test_time_index_keeps_only_ascending_timestamps() -> None:
    assert len(time_index()) == 3
    last = time_index().last
    assert last is not None
    assert (last.timestamp, last.offset) == (3_000, 149)


def test_a_timestamp_lookup_never_skips_a_matching_record() -> None:
    index = time_index()
    assert index.offset_before(500) == 100
    assert index.offset_before(1_000) == 100
    assert index.offset_before(1_001) == 109
    assert index.offset_before(3_000) == 129
    assert index.offset_before(9_000) == 149


def test_time_index_has_kafkas_format() -> None:
    content = time_index().encode()
    assert content == struct.pack(">qiqiqi", 1_000, 9, 2_000, 29, 3_000, 49)
    assert TimeIndex.decode(100, content.ljust(PREALLOCATED_BYTES, b"\0")).encode() == content


def test_time_index_can_be_extended_after_reading() -> None:
    index = TimeIndex.decode(100, time_index().encode())
    index.maybe_append(2_999, 159)
    index.maybe_append(3_001, 169)
    assert len(index) == 4


def test_time_index_truncation_drops_later_offsets() -> None:
    index = time_index()
    index.truncate(149)
    assert index.last_timestamp == 2_000
    index.maybe_append(2_500, 149)
    assert len(index) == 3
    index.truncate(100)
    assert index.last is None


def test_time_index_with_descending_entries_is_corrupt() -> None:
    with pytest.raises(CorruptFile):
        TimeIndex.decode(100, struct.pack(">qiqi", 2_000, 9, 1_000, 29))
    with pytest.raises(CorruptFile):
        TimeIndex.decode(100, struct.pack(">qiqi", 1_000, 29, 2_000, 9))
