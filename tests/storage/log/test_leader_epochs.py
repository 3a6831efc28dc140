"""Leader epochs: the end offset returned for a requested epoch, and Kafka's checkpoint file."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kafka_compat.storage.errors import CorruptFile
from kafka_compat.storage.log.leader_epochs import EpochEntry, LeaderEpochs


def epochs(*entries: tuple[int, int]) -> LeaderEpochs:
    made = LeaderEpochs()
    for epoch, start_offset in entries:
        made.assign(epoch, start_offset)
    return made


def test_a_log_without_epochs_has_no_end_offset() -> None:
    assert LeaderEpochs().latest_epoch == -1
    assert LeaderEpochs().end_offset_for(0, 100) == (-1, -1)
    assert LeaderEpochs().epoch_for(0) == -1


@pytest.mark.parametrize(
    ("asked", "answer"),
    [
        (-1, (-1, -1)),
        (0, (0, 10)),  # An epoch older than all known ones ends where the first known epoch starts.
        (2, (2, 50)),
        (3, (2, 50)),  # An unused epoch: the largest known epoch below it is returned.
        (4, (4, 80)),
        (7, (7, 200)),  # The latest epoch ends at the log end offset.
        (8, (-1, -1)),  # An epoch newer than all known ones is undefined.
    ],
)
def test_the_end_offset_of_an_epoch_is_found(asked: int, answer: tuple[int, int]) -> None:
    assert epochs((2, 10), (4, 50), (7, 80)).end_offset_for(asked, 200) == answer


@pytest.mark.parametrize(("offset", "epoch"), [(9, -1), (10, 2), (49, 2), (50, 4), (1000, 7)])
def test_the_epoch_of_an_offset_is_found(offset: int, epoch: int) -> None:
    assert epochs((2, 10), (4, 50), (7, 80)).epoch_for(offset) == epoch


def test_an_epoch_that_is_not_newer_is_ignored() -> None:
    known = epochs((1, 0), (2, 10))
    assert not known.assign(2, 10)
    assert not known.assign(2, 15)
    assert known.assign(3, 20)
    assert known.latest_epoch == 3


@pytest.mark.parametrize(
    ("news", "left"),
    [
        (
            (5, 10),
            [(1, 0), (5, 10)],
        ),  # A later epoch with the same start offset replaces the earlier one, which has no records.
        ((5, 5), [(1, 0), (5, 5)]),
        ((2, 30), [(1, 0), (2, 10), (3, 20)][:2]),  # The epoch is already known and does not start earlier.
        ((2, 4), [(1, 0), (2, 4)]),
        ((0, 40), [(0, 40)]),
    ],
)
def test_entries_that_contradict_a_new_epoch_are_dropped(
    news: tuple[int, int], left: list[tuple[int, int]]
) -> None:
    known = epochs((1, 0), (2, 10), (3, 20)) if news[0] != 2 else epochs((1, 0), (2, 10))
    known.assign(*news)
    assert list(known.entries) == left


def test_truncation_from_the_end_drops_later_epochs() -> None:
    known = epochs((1, 0), (2, 10), (3, 20))
    assert not known.truncate_from_end(21)
    assert known.truncate_from_end(20)
    assert list(known.entries) == [(1, 0), (2, 10)]
    assert known.truncate_from_end(0)
    assert list(known.entries) == []


def test_truncation_from_the_start_keeps_the_epoch_of_the_start_offset() -> None:
    known = epochs((1, 0), (2, 10), (3, 20))
    assert not known.truncate_from_start(0)
    assert known.truncate_from_start(15)
    assert list(known.entries) == [(2, 15), (3, 20)]
    assert known.truncate_from_start(99)
    assert list(known.entries) == [(3, 99)]
    assert not known.truncate_from_start(5)


@given(
    st.lists(
        st.one_of(
            st.tuples(st.just("assign"), st.integers(0, 9), st.integers(0, 30)),
            st.tuples(st.just("end"), st.integers(0, 30), st.just(0)),
            st.tuples(st.just("start"), st.integers(0, 30), st.just(0)),
        )
    )
)
@settings(deadline=None)
def test_epochs_and_offsets_increase_and_are_read_back_from_the_file(
    steps: list[tuple[str, int, int]],
) -> None:
    known = LeaderEpochs()
    for kind, first, second in steps:
        before = known.entries
        if kind == "assign":
            changed = known.assign(first, second)
        elif kind == "end":
            changed = known.truncate_from_end(first)
        else:
            changed = known.truncate_from_start(first)
        assert changed == (known.entries != before)
        for earlier, later in zip(known.entries, known.entries[1:], strict=False):
            assert earlier.epoch < later.epoch
            assert earlier.start_offset < later.start_offset
    assert LeaderEpochs.decode(known.encode()).entries == known.entries


def test_the_checkpoint_file_has_kafkas_format() -> None:
    assert epochs((0, 0), (3, 120)).encode() == b"0\n2\n0 0\n3 120\n"
    assert LeaderEpochs.decode(b"0\n1\n4 9\n").entries == (EpochEntry(4, 9),)
    assert LeaderEpochs.decode(b"0\n0\n").entries == ()


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"0\n",
        b"1\n0\n",
        b"0\n2\n1 1\n",
        b"0\n1\n1\n",
        b"0\n1\nx y\n",
        b"0\n2\n1 5\n1 6\n",
        b"0\n2\n1 5\n2 5\n",
        b"0\n1\n2147483648 5\n",
        b"0\n1\n1 9223372036854775808\n",
        b"\xff",
    ],
)
def test_invalid_checkpoint_files_are_rejected(content: bytes) -> None:
    with pytest.raises(CorruptFile):
        LeaderEpochs.decode(content)


def test_negative_epochs_and_offsets_are_rejected() -> None:
    for epoch, offset in [(-1, 0), (0, -1)]:
        with pytest.raises(ValueError, match="cannot start"):
            LeaderEpochs().assign(epoch, offset)
