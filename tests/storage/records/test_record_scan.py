"""The fast scan of records: it accepts and rejects the same data as reading the records one by one."""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from kafka_compat.storage.errors import InvalidRecord
from kafka_compat.storage.records import record_scan
from kafka_compat.storage.records.batch import NO_TIMESTAMP, read_header
from kafka_compat.storage.records.record_scan import scan
from kafka_compat.storage.records.records import Record, build_batch, encode_record, iter_records, join_batch
from tests.storage.damage import damage
from tests.support.campaign import rounds

Outcome = tuple[int, int, bool] | type[InvalidRecord]


def by_reading(body: bytes, count: int) -> Outcome:
    """The reference implementation: decode every record and check it."""
    header = read_header(build_batch([Record(timestamp=0)]))
    batch = join_batch(header.replace(record_count=count), body)
    try:
        records = list(iter_records(batch))
    except InvalidRecord:
        return InvalidRecord
    if [record.offset for record in records] != list(range(count)):
        return InvalidRecord
    deltas = [record.timestamp for record in records]
    return (min(deltas), max(deltas), any(record.key is None for record in records))


def by_scanning(body: bytes, count: int) -> Outcome:
    try:
        return scan(body, count)
    except InvalidRecord:
        return InvalidRecord


def record(index: int, delta: int, value_size: int, key: bytes | None, headers: int) -> bytes:
    return encode_record(index, delta, key, bytes(value_size), [("name", b"value")] * headers)


@st.composite
def runs(draw: st.DrawFn) -> tuple[bytes, int]:
    """Records as clients write them: mostly runs of records with the same layout."""
    parts: list[bytes] = []
    for _ in range(draw(st.integers(1, 4))):
        length = draw(st.sampled_from([1, 2, 7, 8, 9, 40, 70]))
        size = draw(st.sampled_from([0, 1, 50, 56, 57, 58, 100, 8200]))
        key = draw(st.none() | st.binary(max_size=3) | st.just(b"k" * 80))
        headers = draw(st.integers(0, 2))
        start = draw(st.sampled_from([0, 0, 1, -1, 60, 63, 64, -64, -65, 500, 8191, 8192, 2**40]))
        step = draw(st.sampled_from([0, 0, 1, 3, -1, 40]))
        for position in range(length):
            parts.append(record(len(parts), start + step * position, size, key, headers))
    return b"".join(parts), len(parts)


@given(runs())
@settings(deadline=None, max_examples=rounds(100, 2000))
def test_scanning_valid_records_gives_the_same_result_as_reading_them(batch: tuple[bytes, int]) -> None:
    body, count = batch
    expected = by_reading(body, count)
    assert expected is not InvalidRecord
    assert by_scanning(body, count) == expected


@given(
    batch=runs(), seed=st.integers(0, 2**32), kind=st.sampled_from(["byte", "bit", "drop", "insert", "count"])
)
@settings(deadline=None, max_examples=rounds(400, 8000))
def test_scanning_damaged_records_gives_the_same_result_as_reading_them(
    batch: tuple[bytes, int], seed: int, kind: str
) -> None:
    body, count = batch
    chance = random.Random(seed)
    # Damage near the start of a record changes its structure; the remaining bytes are mostly payload.
    position = min(chance.choice([0, 0, 7, 64, len(body) // 2]) + chance.randrange(130), len(body) - 1)
    damaged = damage(body, kind, position, chance)
    if kind == "count":
        count = max(1, count + chance.choice([-1, 1]))
    assert by_scanning(damaged, count) == by_reading(damaged, count)


@pytest.mark.parametrize("headers", [0, 1])
@pytest.mark.parametrize("first_delta", [0, 100], ids=["narrow timestamps", "wide timestamps"])
def test_scanning_a_changed_uniform_batch_gives_the_same_result_as_reading_it(
    headers: int, first_delta: int
) -> None:
    count = 66  # Enough records for offset deltas of both one and two bytes.
    body = b"".join(record(index, first_delta + index // 8, 60, b"key", headers) for index in range(count))
    size = len(body) // count
    positions = [*range(2 * size), *range(40 * size, 41 * size), *range(len(body) - 2 * size, len(body))]
    for position in positions:
        for value in (0, 1, 2, 128, body[position] ^ 1, body[position] ^ 128):
            damaged = body[:position] + bytes((value,)) + body[position + 1 :]
            assert by_scanning(damaged, count) == by_reading(damaged, count), (position, value)


@given(st.binary(max_size=60), st.integers(1, 9))
@example(b"\x0c\0\0\0\1\1\0", 1)
@settings(deadline=None, max_examples=rounds(300, 10_000))
def test_scanning_random_bytes_gives_the_same_result_as_reading_them(body: bytes, count: int) -> None:
    assert by_scanning(body, count) == by_reading(body, count)


def longer_than(data: bytes) -> bytes:
    """Encode a number in more bytes than necessary, which Kafka accepts."""
    return data[:-1] + bytes((data[-1] | 128,)) + b"\0"


@pytest.mark.parametrize("uniform", [True, False])
@pytest.mark.parametrize("field", ["length", "timestamp", "offset", "key length", "value length", "headers"])
def test_scanning_overlong_varints_gives_the_same_result_as_reading_them(field: str, uniform: bool) -> None:
    parts = []
    for index in range(20):
        numbers = {
            "timestamp": b"\2",
            "offset": bytes((2 * index,)),
            "key length": b"\2",
            "value length": b"\6" if uniform or index % 2 else b"\4",
            "headers": b"\0",
        }
        if field in numbers:
            numbers[field] = longer_than(numbers[field])
        value = b"abc" if uniform or index % 2 else b"ab"
        content = b"\0" + numbers["timestamp"] + numbers["offset"] + numbers["key length"] + b"k"
        content += numbers["value length"] + value + numbers["headers"]
        length = bytes((2 * len(content),))
        parts.append((longer_than(length) if field == "length" else length) + content)
    body = b"".join(parts)
    assert by_reading(body, 20) == (1, 1, False)
    assert by_scanning(body, 20) == (1, 1, False)


@pytest.mark.parametrize("count", [64, 65, 8192, 8193, 20_000])
@pytest.mark.parametrize("varied", [True, False])
def test_the_invalid_record_is_located_in_long_batches(count: int, varied: bool) -> None:
    parts = [
        encode_record(index, index // 10, None, bytes(index % 3 if varied else 2)) for index in range(count)
    ]
    assert scan(b"".join(parts), count) == (0, (count - 1) // 10, True)
    parts[-1] = encode_record(count, 0, None, bytes(2))
    with pytest.raises(InvalidRecord) as caught:
        scan(b"".join(parts), count)
    assert caught.value.record_errors == [(count - 1, str(caught.value))]


def test_an_impossible_record_count_is_rejected() -> None:
    with pytest.raises(InvalidRecord):
        scan(encode_record(0, 0, None, None), 2**31 - 1)


def test_uniform_batches_use_the_fast_path(monkeypatch: pytest.MonkeyPatch) -> None:
    walked: list[int] = []

    def walk(data: bytes, first_index: int, stop: int, start: int) -> record_scan.Run:
        walked.append(stop - first_index)
        return plain_walk(data, first_index, stop, start)

    plain_walk: Callable[[bytes, int, int, int], record_scan.Run] = record_scan._walk
    monkeypatch.setattr(record_scan, "_walk", walk)
    body = b"".join(record(index, index // 20, 100, None, 0) for index in range(150))
    assert scan(body, 150) == (0, 7, True)
    assert sum(walked) == 0


def test_timestamps_are_found_at_any_position_in_the_batch() -> None:
    deltas = [5, NO_TIMESTAMP, 3, 63, -64, 0, 9, 9, 9, 9]
    body = b"".join(record(index, delta, 10, b"k", 0) for index, delta in enumerate(deltas))
    assert scan(body, len(deltas)) == (-64, 63, False)
