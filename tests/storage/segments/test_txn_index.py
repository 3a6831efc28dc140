"""The index of aborted transactions: Kafka's file format, and the lookups for read_committed fetches."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kafka_compat.storage.errors import CorruptFile
from kafka_compat.storage.filesystem import RealFilesystem
from kafka_compat.storage.segments.txn_index import (
    AbortedTransaction,
    AbortedTxn,
    TransactionIndex,
    decode,
    encode,
)

ENTRIES = [
    AbortedTxn(producer_id=1, first_offset=0, last_offset=10, last_stable_offset=2),
    AbortedTxn(producer_id=2, first_offset=2, last_offset=20, last_stable_offset=21),
    AbortedTxn(producer_id=1, first_offset=25, last_offset=30, last_stable_offset=28),
    AbortedTxn(producer_id=3, first_offset=28, last_offset=40, last_stable_offset=41),
]


@pytest.fixture
def index(tmp_path: Path) -> TransactionIndex:
    index = TransactionIndex(RealFilesystem(), str(tmp_path / "0.txnindex"))
    for entry in ENTRIES:
        index.append(entry)
    return index


def reopened(tmp_path: Path) -> TransactionIndex:
    return TransactionIndex(RealFilesystem(), str(tmp_path / "0.txnindex"))


def test_the_file_has_kafkas_format(tmp_path: Path, index: TransactionIndex) -> None:
    content = (tmp_path / "0.txnindex").read_bytes()
    assert content == b"".join(struct.pack(">hqqqq", 0, *entry) for entry in ENTRIES)
    assert len(content) == 34 * len(ENTRIES) == 34 * len(reopened(tmp_path))


def test_the_file_is_created_with_the_first_entry(tmp_path: Path) -> None:
    index = reopened(tmp_path)
    assert index.collect(0, 100) == ([], False)
    assert len(index) == 0
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("fetch_offset", "upper_bound", "producers", "complete"),
    [
        (0, 100, [1, 2, 1, 3], False),
        (0, 5, [1, 2], True),
        (0, 2, [1], True),
        (11, 21, [2], True),
        (11, 25, [2], True),
        (21, 25, [], True),
        (21, 29, [1, 3], True),
        (31, 42, [3], False),
        (41, 42, [], False),
    ],
)
def test_a_lookup_finds_the_aborted_transactions_in_the_fetched_range(
    tmp_path: Path,
    index: TransactionIndex,
    fetch_offset: int,
    upper_bound: int,
    producers: list[int],
    complete: bool,
) -> None:
    for either in (index, reopened(tmp_path)):
        found, ended = either.collect(fetch_offset, upper_bound)
        assert [aborted.producer_id for aborted in found] == producers
        assert ended is complete


@given(
    lengths=st.lists(st.integers(1, 9), min_size=1, max_size=20),
    fetch_offset=st.integers(0, 100),
    size=st.integers(1, 60),
)
@settings(deadline=None)
def test_every_aborted_record_in_the_fetched_range_is_covered_by_an_index_entry(
    tmp_path_factory: pytest.TempPathFactory, lengths: list[int], fetch_offset: int, size: int
) -> None:
    index = TransactionIndex(RealFilesystem(), str(tmp_path_factory.mktemp("index") / "0.txnindex"))
    offset = 0
    aborted: dict[int, AbortedTransaction] = {}
    for producer_id, length in enumerate(lengths):
        index.append(AbortedTxn(producer_id, offset, offset + length, offset + length + 1))
        aborted |= {
            inside: AbortedTransaction(producer_id, offset) for inside in range(offset, offset + length)
        }
        offset += length + 1
    found, _ = index.collect(fetch_offset, fetch_offset + size)
    needed = {aborted[inside] for inside in range(fetch_offset, fetch_offset + size) if inside in aborted}
    assert needed <= set(found)


@pytest.mark.parametrize(("offset", "left"), [(100, 4), (40, 3), (39, 3), (20, 1), (0, 0)])
def test_truncation_drops_later_entries_from_memory_and_file(
    tmp_path: Path, index: TransactionIndex, offset: int, left: int
) -> None:
    index.truncate_to(offset)
    index.store()
    assert len(index) == len(reopened(tmp_path)) == left
    if left < len(ENTRIES):
        index.append(ENTRIES[left])
        assert decode((tmp_path / "0.txnindex").read_bytes()) == ENTRIES[: left + 1]


def test_reset_discards_an_unreadable_file(tmp_path: Path, index: TransactionIndex) -> None:
    with (tmp_path / "0.txnindex").open("ab") as file:
        file.write(b"torn")
    broken = reopened(tmp_path)
    with pytest.raises(CorruptFile):
        broken.collect(0, 1)
    broken.reset()
    broken.append(ENTRIES[0])
    assert decode((tmp_path / "0.txnindex").read_bytes()) == ENTRIES[:1]


def test_out_of_order_entries_are_rejected(index: TransactionIndex) -> None:
    with pytest.raises(ValueError, match="ends before"):
        index.append(ENTRIES[0])


@pytest.mark.parametrize(
    "content",
    [
        encode(ENTRIES)[:-1],
        struct.pack(">hqqqq", 1, *ENTRIES[0]),
        encode(ENTRIES[::-1]),
        encode([AbortedTxn(1, 10, 5, 6)]),
    ],
    ids=["torn", "unknown version", "out of order", "ends before it begins"],
)
def test_invalid_index_files_are_rejected(content: bytes) -> None:
    with pytest.raises(CorruptFile):
        decode(content)


def test_an_index_that_belongs_to_another_segment_is_rejected(index: TransactionIndex) -> None:
    index.check(10)
    with pytest.raises(CorruptFile):
        index.check(11)
