"""Searches return every matching record exactly once and in order, however little each request may read."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafka_compat.search.cursor import BadCursor, Cursor, cursor_of
from kafka_compat.search.matching import CONTAINS, IS, NULL, STARTS, Match, Needle
from kafka_compat.search.scan import Wanted, scanned
from kafka_compat.search.search import Bounds, Search
from kafka_compat.storage.records.records import Record, build_batch
from tests.search.partitions import FakePartition, expected, pages

_NO_BOUNDS = Bounds(1 << 60, 1 << 60)

matches = st.one_of(
    st.just(Match()),
    st.builds(
        Match,
        st.sampled_from([None, Needle(CONTAINS, b"red"), Needle(IS, b"red"), Needle(NULL), Needle(IS, b"")]),
        st.sampled_from([None, Needle(CONTAINS, b"needle"), Needle(STARTS, b"a n"), Needle(NULL)]),
        st.sampled_from([None, None, "h", "other"]),
        st.sampled_from([None, None, Needle(IS, b"1")]),
        st.sampled_from([None, 1_000_300]),
        st.sampled_from([None, 1_000_600]),
    ),
)


@given(
    seed=st.integers(0, 1 << 32),
    count=st.integers(0, 60),
    partition_count=st.integers(1, 4),
    match=matches,
    newest=st.booleans(),
    limit=st.sampled_from([1, 3, 10, 500]),
    bounds=st.sampled_from([_NO_BOUNDS, Bounds(1, 1), Bounds(500, 20)]),
    max_bytes=st.sampled_from([1, 400, 2000, 1 << 20]),
    sorted_times=st.booleans(),
)
def test_every_record_is_found_exactly_once(
    seed: int,
    count: int,
    partition_count: int,
    match: Match,
    newest: bool,
    limit: int,
    bounds: Bounds,
    max_bytes: int,
    sorted_times: bool,
) -> None:
    partitions = [
        FakePartition(number, seed, count=count, sorted_times=sorted_times)
        for number in range(partition_count)
    ]
    found = pages(partitions, match, newest=newest, limit=limit, bounds=bounds, max_bytes=max_bytes)
    wanted = expected(partitions, match)
    times_ms = {(each.partition, each.offset): each.record.timestamp for each in wanted}
    flat = [place for page in found for place in page]
    assert sorted(flat) == sorted(times_ms)
    for number in range(partition_count):
        offsets = [offset for partition, offset in flat if partition == number]
        assert offsets == sorted(offsets, reverse=newest)
    if sorted_times and bounds is _NO_BOUNDS:
        times = [times_ms[place] for place in flat]
        assert times == sorted(times, reverse=newest)
        # A request ends only when its page is full.
        assert all(len(page) == limit for page in found[:-1])


def test_unreadable_records_are_reported_and_skipped() -> None:
    good = build_batch([Record(0, 5, b"k", b"v")], base_offset=1)
    bad = bytearray(build_batch([Record(0, 5, b"k", b"v")], base_offset=0))
    bad[-1] ^= 1
    found = scanned(bytes(bad) + good, Wanted(3, 0, 2, 10, False, Match(), 100), None)
    assert [each.offset for each in found.records] == [1] and found.next_offset == 2
    (problem,) = found.problems
    assert (problem.partition, problem.offset) == (3, 0) and "CRC" in problem.reason


def test_deleting_a_partition_does_not_end_the_search() -> None:
    search = Search({0: (0, 5), 1: (0, 5)}, Match(), newest=False, limit=10, kept_bytes=100)
    read = search.next()
    assert read is not None
    search.unreadable(read, "gone")
    read = search.next()
    assert read is not None and read.wanted.partition == 1
    search.feed(read, scanned(build_batch([Record()] * 5), read.wanted, None))
    assert search.next() is None and search.cursor is None
    assert len(search.found) == 5 and search.problems[0].reason == "gone"


def test_large_values_are_truncated() -> None:
    batch = build_batch([Record(0, 5, b"k" * 50, b"v" * 1000, [("h", b"w" * 30), ("n", None)])])
    (found,) = scanned(batch, Wanted(0, 0, 1, 10, False, Match(), 20), None).records
    assert (found.key, found.value) == (b"k" * 20, b"v" * 20)
    assert (found.key_bytes, found.value_bytes) == (50, 1000)
    assert found.headers == [("h", b"w" * 20), ("n", None)]


@given(
    st.dictionaries(
        st.integers(0, 1 << 30), st.tuples(st.integers(0, 1 << 62), st.integers(0, 1 << 62)), min_size=1
    ),
    st.integers(0, 1 << 62),
)
def test_a_cursor_is_unchanged_after_it_is_encoded_in_a_link_and_parsed(
    left: dict[int, tuple[int, int]], total: int
) -> None:
    cursor = Cursor(left, total)
    text = cursor.text()
    assert cursor_of(text) == cursor
    assert all(each.isascii() and (each.isalnum() or each in "-_") for each in text)


def test_the_cursor_of_many_partitions_fits_in_a_link() -> None:
    left = {number: (10**11 + number * 7919, 10**12 + number * 104729) for number in range(256)}
    assert len(Cursor(left, 10**15).text()) < 6000


@pytest.mark.parametrize("text", ["", "x", "%%", "eJxjYGBgAAAABAAB", "a" * 5000, "é"])
def test_an_invalid_cursor_is_rejected(text: str) -> None:
    with pytest.raises(BadCursor):
        cursor_of(text)
