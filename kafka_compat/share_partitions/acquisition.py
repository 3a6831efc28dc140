"""Acquisition of fetched records by a member of a share group (KIP-932, KIP-1206).

Rules
1. Acquired are the available records in flight that were fetched, and records after the end offset.
2. Without an exact limit, `max_records` ends new acquisitions only at the end of a record batch, and whole
   batches in flight are acquired as a whole. With an exact limit, batches are divided.
3. New records become one batch in flight, or several of at least `batch_size` offsets, which end where record
   batches end. With an exact limit, they are always one.
4. No more than `max_record_locks` offsets are in flight. If the limit is reached, records in flight that have
   become available are still acquired.
5. From the delivery count n = max(2, limit / 2) on, a fetch gets only a part of a batch in flight: its size
   divided by 2 for each delivery from n on, at least one record. If the limit is greater than 2, the last
   attempt of a record is alone: a record that makes consumers fail then does not affect other records.
6. With read_committed, records of aborted transactions are archived as soon as they are acquired. They may be
   acquired by nobody, and are not stored.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from typing import NamedTuple

from kafka_compat.share_partitions.in_flight import (
    ACQUIRED,
    AVAILABLE,
    InFlightBatch,
    Run,
)
from kafka_compat.share_partitions.share_partition import SharePartition

_THROTTLE_FROM_MIN = 2


class OffsetRange(NamedTuple):
    """The offsets of a fetched record batch."""

    first: int
    last: int


class AcquiredRange(NamedTuple):
    first: int
    last: int
    delivery_count: int


class Acquisition:
    """One acquisition of records that were fetched from a share-partition."""

    def __init__(
        self,
        share_partition: SharePartition,
        member: str,
        *,
        is_exact: bool,
        max_records: int,
        batch_size: int,
        now_ms: int,
    ) -> None:
        self._partition = share_partition
        self._member = member
        self._is_exact = is_exact
        self._max_records = max_records
        self._batch_size = batch_size
        limits = share_partition.limits
        self._deadline_ms = now_ms + limits.lock_duration_ms
        self._delivery_limit = limits.delivery_count_limit
        self._throttle_from = max(_THROTTLE_FROM_MIN, (self._delivery_limit + 1) // 2)
        self._fetched: Sequence[OffsetRange] = ()
        self._first = 0
        """First offset of the fetched records."""
        self._last = 0
        """Last offset that may be acquired."""

    def run(
        self, fetch_offset: int, fetched: Sequence[OffsetRange], aborted: Sequence[OffsetRange] = ()
    ) -> list[AcquiredRange]:
        """Acquire from the record batches that were fetched from `fetch_offset`. `aborted` are those of
        aborted transactions.
        """
        partition = self._partition
        if self._max_records <= 0 or not fetched or fetched[-1].last < partition.start_offset:
            return []
        self._fetched = fetched
        self._last = fetched[-1].last
        if not self._limit_locks(fetch_offset):
            return []
        first = self._first = fetched[0].first
        self._archive_compacted(fetch_offset, first)
        at = partition.floor(first)
        if at < 0:
            first = max(first, partition.start_offset)
        elif partition.batches[at].last >= first:
            first = partition.firsts[at]
        in_flight = partition.slice(min(self._first, first), self._last)
        if in_flight:
            acquired = self._acquire_overlap(first, in_flight)
            if acquired:
                self._move_gap(acquired[-1].last + 1)
        else:
            acquired, _ = self._acquire_new(first, self._last, self._max_records)
        return self._without_aborted(acquired, aborted) if aborted and acquired else acquired

    def _limit_locks(self, fetch_offset: int) -> bool:
        """Apply rule 4. Return whether any record may be acquired."""
        partition = self._partition
        room = partition.limits.max_record_locks - partition.in_flight_count
        if room <= 0 and fetch_offset <= partition.end_offset:
            room = partition.end_offset - fetch_offset + 1
            self._last = min(self._last, partition.end_offset)
        self._max_records = min(self._max_records, room)
        return self._max_records > 0

    def _archive_compacted(self, fetch_offset: int, first: int) -> None:
        """Archive available records that the log no longer contains, because it was compacted."""
        partition = self._partition
        if not partition.batches or fetch_offset >= first:
            return
        at = partition.floor(fetch_offset)
        key = fetch_offset
        if at >= 0 and partition.batches[at].last >= fetch_offset:
            key = partition.firsts[at]
        stale = partition.slice(key, first - 1)
        if stale and partition.archive(fetch_offset, first - 1, stale, AVAILABLE, counts=True):
            partition.may_be_available = True

    # --- records in flight

    def _acquire_overlap(self, first: int, in_flight: Sequence[InFlightBatch]) -> list[AcquiredRange]:
        partition = self._partition
        acquired: list[AcquiredRange] = []
        max_records = self._max_records
        count = 0
        gap = first
        for batch in in_flight:
            if count >= max_records:
                break
            if partition.has_gap:
                if gap < batch.first:
                    new, new_count = self._acquire_new(gap, batch.first - 1, max_records - count)
                    acquired += new
                    count += new_count
                gap = batch.last + 1
                if count >= max_records:
                    break
            is_throttled = self._is_throttled(batch)
            if is_throttled and count > 0:
                return acquired
            if (
                batch.is_split
                or is_throttled
                or not batch.covers(self._first, self._last)
                or (self._is_exact and len(batch) > max_records - count)
            ):
                if not batch.is_split:
                    if not batch.runs[0].is_available:
                        continue
                    batch.is_split = True
                part_count = self._acquire_part(batch, max_records - count, acquired)
                count += part_count
                if is_throttled and part_count > 0:
                    return acquired
            elif batch.runs[0].is_available:
                run = batch.runs[0]
                run.acquire(self._member, self._deadline_ms)
                acquired.append(AcquiredRange(batch.first, batch.last, run.delivery_count))
                count += len(batch)
        end = in_flight[-1].last
        if count < max_records and end < self._last:
            acquired += self._acquire_new(end + 1, self._last, max_records - count)[0]
        return acquired

    def _is_throttled(self, batch: InFlightBatch) -> bool:
        throttle_from = self._throttle_from
        return any(
            run.is_available and run.delivery_count >= throttle_from
            for run in batch.within(self._first, self._last)
        )

    def _acquire_part(self, batch: InFlightBatch, room: int, acquired: list[AcquiredRange]) -> int:
        """Acquire the available records of a split batch, add them to `acquired`, and return their number."""
        count = 0
        throttled_to = -1
        limit = self._delivery_limit
        found: list[AcquiredRange] = []
        for run in list(batch.within(self._first, self._last)):
            if not run.is_available:
                continue
            first, last = max(run.first, self._first), min(run.last, self._last)
            deliveries = run.delivery_count
            is_last_attempt = limit > 2 and deliveries == limit - 1
            if is_last_attempt:
                if count > 0:
                    break
                last = first
            if deliveries >= self._throttle_from and throttled_to < 0:
                throttled_to = max(1, len(batch) >> (deliveries - self._throttle_from + 1))
            if self._is_exact and count < room:
                last = min(last, first + room - count - 1)
            if throttled_to > count:
                last = min(last, first + throttled_to - count - 1)
            for part in batch.cut(first, last):
                part.acquire(self._member, self._deadline_ms)
            count += last - first + 1
            _add(found, AcquiredRange(first, last, deliveries + 1))
            if is_last_attempt or (self._is_exact and count == room) or count == throttled_to:
                break
        acquired += found
        batch.compact()
        return count

    # --- new records

    def _acquire_new(self, first: int, last: int, max_records: int) -> tuple[list[AcquiredRange], int]:
        """Acquire records of [first, last] that are not in flight. Return them, and their number."""
        partition = self._partition
        if not partition.batches:
            first = max(first, partition.end_offset)
        if first > last:
            return [], 0
        limit = last
        if max_records < last - first + 1:
            last = self._end_of_batch(first + max_records - 1)
            if partition.has_gap:
                last = min(last, limit)
        acquired = self._create(first, last, max_records)
        if partition.firsts[0] == first:
            partition.start_offset = first
        partition.end_offset = max(partition.end_offset, last)
        if self._is_exact:
            last = acquired[0].last
        self._move_gap(last + 1)
        return acquired, last - first + 1

    def _end_of_batch(self, offset: int) -> int:
        """Return the last offset of the fetched batch with `offset`, or `offset` if there is none."""
        at = bisect_right(self._fetched, offset, key=lambda batch: batch.first) - 1
        return max(offset, self._fetched[at].last) if at >= 0 else offset

    def _create(self, first: int, last: int, max_records: int) -> list[AcquiredRange]:
        partition = self._partition
        if self._is_exact:
            exact_last = min(last, first + max_records - 1)
            batch = self._insert(first, last)
            if exact_last < last:
                batch.is_split = True
                batch.cut(first, exact_last)
                rest = batch.runs[1]
                batch.runs[1] = Run(rest.first, rest.last, AVAILABLE, 0)
                partition.may_be_available = True
            return [AcquiredRange(first, exact_last, 1)]
        acquired: list[AcquiredRange] = []
        begin = first
        if last - first + 1 > self._batch_size:
            for fetched in self._fetched:
                if fetched.first > last:
                    break
                if fetched.first - begin >= self._batch_size:
                    acquired.append(AcquiredRange(begin, fetched.first - 1, 1))
                    begin = fetched.first
        acquired.append(AcquiredRange(begin, last, 1))
        for each in acquired:
            self._insert(each.first, each.last)
        return acquired

    def _insert(self, first: int, last: int) -> InFlightBatch:
        batch = InFlightBatch(Run(first, last, ACQUIRED, 1, self._member, self._deadline_ms))
        self._partition.insert(batch)
        return batch

    def _move_gap(self, offset: int) -> None:
        """Note that the gaps before `offset` have been acquired."""
        partition = self._partition
        if partition.has_gap and offset <= partition.gap_end:
            partition.gap_start = offset
        else:
            partition.gap_start = partition.gap_end = -1

    # --- aborted transactions

    def _without_aborted(
        self, acquired: list[AcquiredRange], aborted: Sequence[OffsetRange]
    ) -> list[AcquiredRange]:
        """Archive the records of aborted transactions, and return the remaining ranges."""
        partition = self._partition
        for batch in aborted:
            at = max(partition.floor(batch.first), 0)
            end = bisect_right(partition.firsts, batch.last)
            found = partition.batches[at:end]
            partition.archive(batch.first, batch.last, found, ACQUIRED, counts=True)
        kept: list[AcquiredRange] = []
        for first, last, delivery_count in acquired:
            begin = first
            at = max(bisect_right(aborted, first, key=lambda batch: batch.first) - 1, 0)
            while begin <= last and at < len(aborted) and aborted[at].first <= last:
                if aborted[at].last >= begin:
                    if aborted[at].first > begin:
                        kept.append(AcquiredRange(begin, aborted[at].first - 1, delivery_count))
                    begin = aborted[at].last + 1
                at += 1
            if begin <= last:
                kept.append(AcquiredRange(begin, last, delivery_count))
        return kept


def _add(ranges: list[AcquiredRange], added: AcquiredRange) -> None:
    """Append a range, or extend the last one if it ends just before and has the same delivery count."""
    if ranges and ranges[-1].last + 1 == added.first and ranges[-1].delivery_count == added.delivery_count:
        ranges[-1] = ranges[-1]._replace(last=added.last)
    else:
        ranges.append(added)
