"""The cleaner's scan of a batch: it returns the same keys and tombstones as reading the records."""

from __future__ import annotations

import random

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from kafka_compat.storage.errors import InvalidRecord
from kafka_compat.storage.records.batch import BatchHeader, read_header
from kafka_compat.storage.records.record_keys import read_keys, timestamp_delta_at
from kafka_compat.storage.records.records import Record, build_batch, encode_record, encode_varint, iter_body
from tests.storage.damage import damage
from tests.support.campaign import rounds

Row = tuple[int, bytes | None, bytes | None, int, int]
"""Offset gap before the record, key, value, timestamp delta, number of headers."""

SIZES = st.sampled_from([0, 1, 5, 63, 64, 100, 8191, 8200])
CONTENTS = st.none() | SIZES.map(lambda size: b"x" * size) | st.binary(max_size=5)
GAPS = st.sampled_from([0, 0, 0, 1, 40, 64, 5_000])
DELTAS = st.sampled_from([0, 1, 63, 64, -1, -64, -65, 8191, 8192, 2**21, 2**40, -(2**40)])
ROWS = st.lists(st.tuples(GAPS, CONTENTS, CONTENTS, DELTAS, st.integers(0, 2)), min_size=1, max_size=80)


def header_of(count: int, last_delta: int) -> BatchHeader:
    header = read_header(build_batch([Record(timestamp=0)], base_offset=7))
    return header.replace(record_count=count, last_offset_delta=last_delta)


def body_of(rows: list[Row]) -> tuple[BatchHeader, bytes]:
    parts, delta = [], -1
    for gap, key, value, timestamp_delta, headers in rows:
        delta += 1 + gap
        parts.append(encode_record(delta, timestamp_delta, key, value, [("name", b"value")] * headers))
    return header_of(len(rows), delta), b"".join(parts)


@given(ROWS)
@settings(deadline=None, max_examples=rounds(150, 3000))
def test_keys_and_record_bounds_match_those_of_the_record_reader(rows: list[Row]) -> None:
    header, body = body_of(rows)
    records = list(iter_body(header, body))
    found = read_keys(header, body)
    assert found.keys == [record.key or b"" for record in records]
    assert [header.base_offset + delta for delta in found.offset_deltas] == [row.offset for row in records]
    assert found.keyless == [index for index, record in enumerate(records) if record.key is None]
    assert found.tombstones == [index for index, record in enumerate(records) if record.value is None]
    assert len(found.bounds) == len(records) + 1
    for index, record in enumerate(records):
        start, end = found.bounds[index : index + 2]
        assert timestamp_delta_at(body, start)[0] == record.timestamp
        alone = header.replace(record_count=1)
        assert list(iter_body(alone, body[start:end])) == [record]


@given(rows=ROWS, seed=st.integers(0, 2**32), kind=st.sampled_from(["byte", "bit", "drop", "insert", "cut"]))
@settings(deadline=None, max_examples=rounds(300, 8000))
def test_damaged_records_are_rejected_or_read_as_by_the_record_reader(
    rows: list[Row], seed: int, kind: str
) -> None:
    header, body = body_of(rows)
    chance = random.Random(seed)
    position = min(chance.choice([0, 0, 7, len(body) // 2]) + chance.randrange(40), len(body) - 1)
    body = damage(body, kind, position, chance)
    try:
        found = read_keys(header, body)
    except InvalidRecord:
        return
    try:
        records = list(iter_body(header, body))
    except InvalidRecord:
        # The scan does not examine the fields after the key.
        return
    assert found.keys == [record.key or b"" for record in records]
    assert [header.base_offset + delta for delta in found.offset_deltas] == [row.offset for row in records]
    assert found.tombstones == [index for index, record in enumerate(records) if record.value is None]


@given(st.binary(max_size=60), st.integers(1, 9))
@example(b"\x0c\0\0\0\1\1\0", 1)
@settings(deadline=None, max_examples=rounds(300, 10_000))
def test_random_bytes_are_rejected_or_read_to_the_end_of_the_batch(body: bytes, count: int) -> None:
    try:
        found = read_keys(header_of(count, count), body)
    except InvalidRecord:
        return
    assert found.bounds[0] == 0
    assert found.bounds == sorted(found.bounds)
    assert found.bounds[-1] == len(body)
    assert len(found.keys) == len(found.offset_deltas) == count


def longer_than(data: bytes) -> bytes:
    """Encode a number in more bytes than necessary, which Kafka accepts."""
    return data[:-1] + bytes((data[-1] | 128,)) + b"\0"


@pytest.mark.parametrize("times", [1, 2, 3])
@pytest.mark.parametrize("field", ["length", "timestamp", "offset", "key length", "null key", "value length"])
def test_overlong_varints_are_read_as_by_the_record_reader(field: str, times: int) -> None:
    numbers = {
        "timestamp": b"\2",
        "offset": b"\0",
        "key length": b"\1" if field == "null key" else b"\2k",
        "value length": b"\1",
    }

    def longer(name: str, encoded: bytes) -> bytes:
        if name != field and not (field == "null key" and name == "key length"):
            return encoded
        number, rest = encoded[:1], encoded[1:]
        for _ in range(times):
            number = longer_than(number)
        return number + rest

    content = b"\0" + b"".join(longer(name, encoded) for name, encoded in numbers.items()) + b"\0"
    body = longer("length", encode_varint(len(content))) + content
    found = read_keys(header_of(1, 0), body)
    (record,) = iter_body(header_of(1, 0), body)
    assert (record.key or b"", record.value, record.offset) == (found.keys[0], None, 7)
    assert (found.tombstones, bool(found.keyless)) == ([0], field == "null key")
    assert timestamp_delta_at(body, 0)[0] == 1


def test_records_out_of_order_are_rejected() -> None:
    first, second = encode_record(0, 0, b"k", b"v"), encode_record(1, 0, b"k", b"v")
    read_keys(header_of(2, 1), first + second)
    for last_delta, body in ((1, second + first), (0, first + second), (9, first + second[:-1])):
        with pytest.raises(InvalidRecord):
            read_keys(header_of(2, last_delta), body)
    before = encode_record(-1, 0, b"k", b"v")
    with pytest.raises(InvalidRecord):
        read_keys(header_of(2, 1), before + first)
