"""Rules of share-partitions, one by one, without I/O. Apache Kafka 4.4.0 behaves the same way."""

from collections.abc import Sequence
from typing import Any

import pytest

from kafka_compat.errors import ErrorCode
from kafka_compat.share_coordinator.persister import StateBatch
from kafka_compat.share_partitions.acquisition import Acquisition, OffsetRange
from kafka_compat.share_partitions.changes import (
    ACCEPT,
    GAP,
    REJECT,
    RELEASE,
    RENEW,
    Acknowledgement,
    Limits,
    Write,
)
from kafka_compat.share_partitions.share_partition import SharePartition

TEN = tuple(OffsetRange(first, first + 9) for first in range(0, 100, 10))
"""Ten batches of ten records."""


class Group:
    """A share-partition, and a clock."""

    def __init__(
        self, stored: Sequence[tuple[int, int, int, int]] = (), start: int = 0, **limits: Any
    ) -> None:
        self.partition = SharePartition(
            Limits(lock_duration_ms=100)._replace(**limits), start, [StateBatch(*each) for each in stored]
        )
        self.now_ms = 1

    def fetch(
        self,
        member: str = "a",
        records: int = 500,
        *,
        exact: bool = False,
        batch_size: int = 500,
        log: Sequence[OffsetRange] = TEN,
        aborted: Sequence[OffsetRange] = (),
    ) -> list[tuple[int, int, int]]:
        offset = self.partition.next_fetch_offset()
        if not self.partition.can_acquire:
            return []
        fetched = [batch for batch in log if batch.last >= offset]
        found = Acquisition(
            self.partition,
            member,
            is_exact=exact,
            max_records=records,
            batch_size=batch_size,
            now_ms=self.now_ms,
        ).run(offset, fetched, aborted)
        return [(each.first, each.last, each.delivery_count) for each in found]

    def begin(self, first: int, last: int, *types: int, member: str = "a") -> Write:
        found = self.partition.acknowledge(member, [Acknowledgement(first, last, types)], self.now_ms)
        assert isinstance(found, Write), found
        return found

    def ack(self, first: int, last: int, *types: int, member: str = "a") -> None:
        self.partition.written(self.begin(first, last, *types, member=member), True, self.now_ms)

    def error(self, first: int, last: int, *types: int, member: str = "a") -> ErrorCode:
        found = self.partition.acknowledge(member, [Acknowledgement(first, last, types)], self.now_ms)
        assert isinstance(found, ErrorCode), found
        return found

    def later(self, ms: int) -> Write | None:
        self.now_ms += ms
        return self.partition.expire(self.now_ms)

    def expire(self) -> None:
        write = self.later(100)
        assert write is not None
        self.partition.written(write, True, self.now_ms)

    @property
    def state(self) -> list[tuple[int, int, int, int]]:
        """The runs in flight: first, last, state, delivery count."""
        return [
            (run.first, run.last, run.state, run.delivery_count)
            for batch in self.partition.batches
            for run in batch.runs
        ]


def test_a_soft_limit_ends_at_the_end_of_a_batch() -> None:
    group = Group()
    assert group.fetch(records=3) == [(0, 9, 1)]
    assert group.fetch(records=11) == [(10, 29, 1)]


def test_an_exact_limit_divides_a_batch() -> None:
    group = Group()
    assert group.fetch(records=3, exact=True) == [(0, 2, 1)]
    assert group.fetch("b", records=4, exact=True) == [(3, 6, 1)]
    assert group.fetch("b", records=500, exact=True) == [(7, 9, 1), (10, 99, 1)]


def test_ranges_of_batch_size_end_where_batches_end() -> None:
    assert Group().fetch(records=50, batch_size=15) == [(0, 19, 1), (20, 39, 1), (40, 49, 1)]


def test_no_more_than_the_maximum_are_in_flight_but_released_records_are_acquired() -> None:
    group = Group(max_record_locks=20)
    assert group.fetch() == [(0, 19, 1)]
    assert group.fetch() == []
    group.ack(5, 6, RELEASE)
    assert group.fetch("b") == [(5, 6, 2)]
    group.ack(0, 4, ACCEPT)
    assert group.fetch() == [(20, 29, 1)]


def test_released_records_are_acquired_with_the_next_count() -> None:
    group = Group()
    group.fetch(records=1)
    group.ack(0, 9, RELEASE)
    assert group.fetch("b", records=1) == [(0, 9, 2)]


def test_the_last_attempts_get_fewer_records_and_the_last_one_a_single_record() -> None:
    group = Group(delivery_count_limit=5)
    log = [OffsetRange(0, 99)]
    assert group.fetch(log=log) == [(0, 99, 1)]
    group.ack(0, 99, RELEASE)
    assert group.fetch(log=log) == [(0, 99, 2)]
    group.ack(0, 99, RELEASE)
    assert group.fetch(log=log) == [(0, 99, 3)]
    group.ack(0, 99, RELEASE)
    assert group.fetch(log=log) == [(0, 49, 4)]
    group.ack(0, 49, RELEASE)
    assert group.fetch(log=log) == [(0, 0, 5)]
    assert group.fetch(log=log) == [(1, 1, 5)]
    group.ack(0, 0, RELEASE)
    assert group.state[0][2] != 0
    assert group.partition.start_offset == 1


@pytest.mark.parametrize(("kind", "state"), [(GAP, 4), (ACCEPT, 2), (RELEASE, 0), (REJECT, 4)])
def test_an_acknowledgement_changes_the_state_when_it_is_stored(kind: int, state: int) -> None:
    group = Group()
    group.fetch(records=1)
    write = group.begin(3, 5, kind)
    assert write.batches == [StateBatch(3, 5, state, 1)]
    assert group.fetch("b", records=1, log=TEN[:1]) == []
    group.partition.written(write, True, group.now_ms)
    assert group.state == [(0, 2, 1, 1), (3, 5, state, 1), (6, 9, 1, 1)]


def test_a_change_that_is_not_stored_is_rolled_back() -> None:
    group = Group()
    group.fetch(records=1)
    write = group.begin(0, 9, ACCEPT)
    group.partition.written(write, False, group.now_ms)
    assert group.state == [(0, 9, 1, 1)]
    assert group.partition.delivery_complete_count == 0
    group.ack(0, 9, ACCEPT)
    assert group.partition.start_offset == 10


def test_a_rollback_after_the_lock_has_expired_releases_the_records() -> None:
    group = Group()
    group.fetch(records=1)
    write = group.begin(0, 9, ACCEPT)
    assert group.later(100) is None
    group.partition.written(write, False, group.now_ms)
    assert group.state == [(0, 9, 0, 1)]


def test_one_invalid_offset_makes_the_whole_acknowledgement_fail() -> None:
    group = Group()
    group.fetch(records=1)
    group.fetch("b", records=1)
    assert group.error(5, 15, ACCEPT) == ErrorCode.INVALID_RECORD_STATE
    assert group.error(5, 5, ACCEPT, member="b") == ErrorCode.INVALID_RECORD_STATE
    assert group.error(15, 25, ACCEPT, member="b") == ErrorCode.INVALID_REQUEST
    assert group.error(20, 25, ACCEPT) == ErrorCode.INVALID_REQUEST
    assert group.state == [(0, 9, 1, 1), (10, 19, 1, 1)]


def test_records_before_the_start_offset_may_be_acknowledged_again() -> None:
    group = Group()
    group.fetch(records=1)
    group.ack(0, 4, ACCEPT)
    assert group.partition.start_offset == 5
    assert group.begin(0, 4, ACCEPT).batches == []
    assert group.begin(0, 9, ACCEPT).batches == [StateBatch(5, 9, 2, 1)]


def test_an_acknowledgement_may_contain_one_type_for_each_offset() -> None:
    group = Group()
    group.fetch(records=1)
    group.ack(0, 9, ACCEPT, ACCEPT, RELEASE, RELEASE, REJECT, GAP, RENEW, RENEW, ACCEPT, ACCEPT)
    assert group.state == [
        (0, 1, 2, 1),
        (2, 3, 0, 1),
        (4, 5, 4, 1),
        (6, 7, 1, 1),
        (8, 9, 2, 1),
    ]
    assert group.partition.start_offset == 2
    assert group.partition.delivery_complete_count == 4


def test_a_renewed_lock_lasts_for_the_whole_duration_again() -> None:
    group = Group()
    group.fetch(records=1)
    group.now_ms += 60
    group.begin(0, 4, RENEW)
    write = group.later(40)
    assert write is not None
    assert write.batches == [StateBatch(5, 9, 0, 1)]
    assert group.partition.next_deadline_ms(group.now_ms) == 161


def test_renewals_may_be_disabled() -> None:
    group = Group(is_renew_enabled=False)
    group.fetch(records=1)
    assert group.error(0, 9, RENEW) == ErrorCode.INVALID_RECORD_STATE


def test_expired_locks_release_records_and_archive_them_at_the_limit() -> None:
    group = Group(delivery_count_limit=2)
    group.fetch(records=1)
    group.expire()
    assert group.state == [(0, 9, 0, 1)]
    assert group.fetch(records=1) == [(0, 9, 2)]
    group.expire()
    assert group.state == []
    assert group.partition.start_offset == 10


def test_the_end_of_a_session_releases_only_the_records_of_the_member() -> None:
    group = Group()
    group.fetch(records=1)
    group.fetch("b", records=1)
    group.partition.written(group.partition.release_acquired("a"), True, 1)
    assert group.state == [(0, 9, 0, 1), (10, 19, 1, 1)]


def test_aborted_records_are_archived() -> None:
    group = Group()
    assert group.fetch(records=25, aborted=[TEN[1]]) == [(0, 9, 1), (20, 29, 1)]
    assert group.state == [(0, 9, 1, 1), (10, 19, 4, 1), (20, 29, 1, 1)]
    group.ack(0, 9, ACCEPT)
    assert group.partition.start_offset == 20


def test_the_start_offset_follows_the_log() -> None:
    group = Group()
    group.fetch(records=30)
    group.ack(0, 9, RELEASE)
    group.ack(12, 14, ACCEPT)
    group.partition.log_starts_at(13)
    assert group.partition.start_offset == 13
    assert group.partition.delivery_complete_count == 2
    assert group.fetch("b", records=1) == [(30, 39, 1)]
    group.expire()
    assert group.fetch("b", records=1) == [(15, 29, 2)]


def test_gaps_between_stored_batches_are_acquired_again() -> None:
    group = Group([(0, 4, 0, 2), (10, 14, 2, 1), (30, 34, 0, 1)])
    assert group.partition.end_offset == 34
    assert group.fetch(records=20, log=TEN[:4]) == [(0, 4, 3), (5, 9, 1), (15, 29, 1)]
    assert group.fetch(log=TEN[:4]) == [(30, 34, 2), (35, 39, 1)]


def test_stored_records_whose_delivery_is_complete_are_skipped() -> None:
    group = Group([(0, 4, 2, 1), (5, 9, 4, 3), (10, 19, 0, 1)])
    assert group.partition.start_offset == 10
    assert group.partition.delivery_complete_count == 0


@pytest.mark.parametrize("stored", [[(5, 4, 0, 1)], [(0, 4, 0, 1), (4, 6, 0, 1)], [(-3, -1, 0, 1)]])
def test_invalid_stored_batches_are_rejected(stored: list[tuple[int, int, int, int]]) -> None:
    with pytest.raises(ValueError, match="is not after offset"):
        Group(stored)


def test_rejected_records_go_to_the_dead_letter_queue_and_are_archived_then() -> None:
    group = Group(has_dead_letters=True)
    group.fetch(records=1)
    write = group.begin(0, 9, REJECT)
    assert write.batches == [StateBatch(0, 9, 3, 1)]
    group.partition.written(write, True, 1)
    assert group.partition.start_offset == 0
    (letters,) = write.dead_letters
    archived = group.partition.dead_letters_written([letters])
    assert archived.batches == [StateBatch(0, 9, 4, 1)]
    group.partition.written(archived, True, 1)
    assert group.partition.start_offset == 10
