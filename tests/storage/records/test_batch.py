"""Batch headers: fields, in-place changes, and the CRC."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kafka.record.default_records import DefaultRecordBatch

from kafka_compat.storage.errors import CorruptRecord
from kafka_compat.storage.records.batch import (
    CRC_START,
    HEADER,
    HEADER_SIZE,
    add_sequence,
    crc_ok,
    read_header,
    stamp,
    stamped,
)
from kafka_compat.storage.records.kinds import CompressionType, TimestampType
from kafka_compat.storage.records.records import Record, build_batch


def batch_of_two(**settings: object) -> bytearray:
    records = [Record(timestamp=1000, key=b"a", value=b"1"), Record(timestamp=1700, value=b"2")]
    return bytearray(build_batch(records, **settings))  # type: ignore[arg-type]


def test_the_header_contains_the_values_given_to_the_builder() -> None:
    batch = batch_of_two(
        base_offset=40,
        compression=CompressionType.GZIP,
        producer_id=77,
        producer_epoch=3,
        base_sequence=2**31 - 1,
        transactional=True,
        timestamp_type=TimestampType.LOG_APPEND_TIME,
        leader_epoch=5,
    )
    header = read_header(batch)
    assert header.size_bytes == len(batch)
    assert (header.base_offset, header.last_offset, header.next_offset) == (40, 41, 42)
    assert (header.partition_leader_epoch, header.magic, header.record_count) == (5, 2, 2)
    assert (header.base_timestamp, header.max_timestamp) == (1000, 1700)
    assert header.compression is CompressionType.GZIP
    assert header.timestamp_type is TimestampType.LOG_APPEND_TIME
    assert (header.is_transactional, header.is_control, header.has_producer_id) == (True, False, True)
    assert (header.base_sequence, header.last_sequence) == (2**31 - 1, 0)


def test_the_header_matches_what_kafka_python_reads() -> None:
    batch = batch_of_two(base_offset=9, producer_id=5, producer_epoch=1, base_sequence=100)
    header, theirs = read_header(batch), DefaultRecordBatch(bytes(batch))
    assert header.base_offset == theirs.base_offset
    assert header.crc == theirs.crc
    assert header.attributes == theirs.attributes
    assert header.last_offset_delta == theirs.last_offset_delta
    assert header.base_timestamp == theirs.first_timestamp
    assert header.max_timestamp == theirs.max_timestamp
    assert header.producer_id == theirs.producer_id
    assert header.producer_epoch == theirs.producer_epoch
    assert header.base_sequence == theirs.base_sequence
    assert header.record_count == theirs.records_count


def test_stamping_keeps_the_crc_valid_and_changes_one_batch() -> None:
    first, second = batch_of_two(), batch_of_two()
    both = bytearray(first + second)
    length = read_header(both, len(first)).batch_length
    stamp(both, len(first), 123_456_789_012, length, leader_epoch=8)
    assert both[: len(first)] == first
    header = read_header(both, len(first))
    assert (header.base_offset, header.partition_leader_epoch) == (123_456_789_012, 8)
    assert crc_ok(both, len(first), header)


@given(st.integers(-(2**63), 2**63 - 1), st.integers(-(2**31), 2**31 - 1), st.sampled_from(CompressionType))
def test_a_batch_is_stamped_in_a_copy_as_in_place(
    offset: int, leader_epoch: int, compression: CompressionType
) -> None:
    batch = batch_of_two(compression=compression, producer_id=7, producer_epoch=1, base_sequence=2)
    before = bytes(batch)
    header = read_header(before)
    copy = stamped(header, before[CRC_START:], offset, leader_epoch)
    stamp(batch, 0, offset, header.batch_length, leader_epoch)
    assert copy == batch
    assert before[:8] == bytes(8)


@given(st.binary(min_size=HEADER_SIZE, max_size=HEADER_SIZE), st.integers(0, 20))
def test_headers_have_the_same_fields_in_bytes_and_views(content: bytes, position: int) -> None:
    header = bytearray(content)
    header[16] = 2
    buffer = bytes(position) + bytes(header)
    for found in (read_header(buffer, position), read_header(memoryview(buffer), position)):
        assert tuple(found.fields().values()) == HEADER.unpack(header)


@given(st.data())
@settings(deadline=None)
def test_every_changed_byte_after_the_crc_is_detected(data: st.DataObject) -> None:
    batch = batch_of_two()
    position = data.draw(st.integers(21, len(batch) - 1))
    batch[position] ^= data.draw(st.integers(1, 255))
    assert not crc_ok(batch, 0, read_header(batch))


def test_the_crc_of_a_truncated_batch_is_invalid() -> None:
    batch = batch_of_two()
    assert not crc_ok(batch[:-1], 0, read_header(batch))


@pytest.mark.parametrize("size", [0, 17, HEADER_SIZE - 1])
def test_a_truncated_header_is_rejected(size: int) -> None:
    with pytest.raises(CorruptRecord):
        read_header(batch_of_two()[:size])


def test_sequences_wrap_to_zero() -> None:
    assert add_sequence(2**31 - 2, 1) == 2**31 - 1
    assert add_sequence(2**31 - 1, 1) == 0
    assert add_sequence(0, -1) == 2**31 - 1
