"""The latest record of each key is found exactly once, whatever the sizes of reads and pages."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from kafka_compat.search.latest import LatestPerKey
from kafka_compat.search.matching import EVERY, IS, Match, Needle
from kafka_compat.search.search import Bounds, Search
from tests.search.partitions import FakePartition, expected, serve


@given(
    seed=st.integers(0, 1 << 32),
    count=st.integers(0, 60),
    partition_count=st.integers(1, 4),
    match=st.sampled_from([EVERY, Match(key=Needle(IS, b"red"))]),
    limit=st.sampled_from([1, 2, 3, 50]),
    max_bytes=st.sampled_from([1, 400, 2000, 1 << 20]),
)
def test_pages_contain_the_latest_record_of_each_key_once(
    seed: int, count: int, partition_count: int, match: Match, limit: int, max_bytes: int
) -> None:
    partitions = [FakePartition(number, seed, count=count) for number in range(partition_count)]
    wanted = {
        (each.partition, each.record.key): each.offset
        for each in expected(partitions, match)
        if each.record.key is not None
    }
    left = {each.number: (each.start, each.end) for each in partitions}
    found: list[tuple[tuple[int, bytes | None], int]] = []
    while True:
        latest = LatestPerKey(skip=len(found))
        search = Search(left, match, newest=True, limit=limit, kept_bytes=1 << 20, accepts=latest)
        serve(search, partitions, max_bytes)
        found += [((each.partition, each.key), each.offset) for each in search.found]
        if search.cursor is None:
            break
        assert len(search.found) == limit
    assert dict(found) == wanted and len(found) == len(wanted)


def test_truncated_keys_are_compared_as_a_whole() -> None:
    (partition,) = [FakePartition(0, 1, count=40)]
    wanted = {each.record.key for each in partition.records} - {None}
    span = {0: (partition.start, partition.end)}
    search = Search(span, EVERY, newest=True, limit=50, kept_bytes=1, accepts=LatestPerKey())
    serve(search, [partition], 1 << 20)
    assert len(search.found) == len(wanted) > 2


def test_a_request_reads_only_part_of_a_large_topic() -> None:
    partition = FakePartition(0, 1, count=2000)
    span = {0: (partition.start, partition.end)}
    bounds = Bounds(1 << 60, 200)
    search = Search(span, EVERY, newest=True, limit=50, bounds=bounds, kept_bytes=1, accepts=LatestPerKey())
    serve(search, [partition], 1000)
    assert search.cursor is not None and search.records_seen < 500
