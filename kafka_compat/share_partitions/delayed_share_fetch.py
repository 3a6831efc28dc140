"""One ShareFetch request, from its first look at the share-partitions to the acquired records.

Rules
1. The records of all share-partitions that may be acquired are counted in bytes. If there are `min_bytes`, or
   a log cannot be read, records are acquired, in the order of the session. Otherwise, the request waits
   until records are committed or released, or an acquisition lock expires, at most for `max_wait_ms`.
2. The maximum size of the response is divided equally among these share-partitions. The first one with
   records returns at least one batch, however large.
3. Share-partitions come in the order of the session, which begins with a different one in each request. Those
   whose position in the log must be looked up come last, and the first of them may return a large batch, too.
   If the request has waited for `max_wait_ms`, this makes no difference.
4. `max_records` applies to all share-partitions together.
5. Share-partitions whose state is being read are waited for. Errors are in the response, but do not end the
   wait, unless all share-partitions have errors when the request arrives. A state that cannot be read is no
   such error: the request then waits for `max_wait_ms`, because clients repeat it at once.
6. If there are many share-partitions, the request yields to the event loop between them.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

from kafka_compat.error_mapping import code_of
from kafka_compat.errors import ErrorCode
from kafka_compat.share_partitions.acquisition import AcquiredRange, Acquisition
from kafka_compat.share_partitions.fetched_records import FetchedRecords
from kafka_compat.storage.errors import OffsetOutOfRange, StorageError
from kafka_compat.storage.segments.file_slice import FileSlice

if TYPE_CHECKING:
    from kafka_compat.long_work import LongWork, Steps
    from kafka_compat.replication.partition import Partition
    from kafka_compat.share_partitions.counts import GroupCounts
    from kafka_compat.share_partitions.led_share_partition import LedSharePartition
    from kafka_compat.share_partitions.share_partition import SharePartition
    from kafka_compat.share_partitions.share_session import TopicIdPartition
    from kafka_compat.storage.segments.txn_index import AbortedTransaction

_AT_ONCE: Final = 4
"""Number of share-partitions up to which a request is processed without yielding to the event loop."""
_EVERY_BYTE: Final = 1 << 40


class ShareFetchParams(NamedTuple):
    """What a ShareFetch request asks for. `is_exact` makes `max_records` exact (KIP-1206)."""

    group_id: str
    member_id: str
    max_wait_ms: int
    min_bytes: int
    max_bytes: int
    max_records: int
    batch_size: int
    is_exact: bool
    is_committed_only: bool


class FetchedPartition(NamedTuple):
    """The result of one share-partition."""

    code: ErrorCode
    records: FileSlice | None = None
    acquired: Sequence[AcquiredRange] = ()
    replica: Partition | None = None


Results = dict["TopicIdPartition", FetchedPartition]
Target = tuple["TopicIdPartition", "LedSharePartition"]


class _Candidate(NamedTuple):
    target: Target
    is_known: bool
    """Whether the position in the log is known from an earlier look."""
    available_bytes: int
    """Size of the records from `offset` on, as far as one segment contains them."""
    code: ErrorCode


class DelayedShareFetch:
    """One request. `start` calls `done` with the results, at once or later, unless `cancel` is called."""

    def __init__(
        self,
        params: ShareFetchParams,
        targets: Sequence[Target],
        errors: Results,
        long_work: LongWork,
        now_ms: Callable[[], int],
        done: Callable[[Results], None],
        counts: GroupCounts,
    ) -> None:
        """`errors` are results that are already known."""
        self._counts = counts
        self._began_ms = now_ms()
        self._params = params
        self._targets = targets
        self._errors = errors
        self._long_work = long_work
        self._now_ms = now_ms
        self._done: Callable[[Results], None] | None = done
        self._timer: asyncio.TimerHandle | None = None
        self._is_running = False
        self._runs_again = False
        self._has_expired = False

    def start(self) -> None:
        if not self._targets and not self._has_unreadable_state():
            self._complete(self._errors)
            return
        self.wake()
        if self._done is not None:
            wait_s = max(self._params.max_wait_ms, 0) / 1000
            self._timer = asyncio.get_running_loop().call_later(wait_s, self._expire)
            for _, led in self._targets:
                led.add_waiter(self)

    def _has_unreadable_state(self) -> bool:
        # SharePartitionManager.get_or_load returns this code only for a state that cannot be read.
        return any(each.code == ErrorCode.UNKNOWN_SERVER_ERROR for each in self._errors.values())

    @property
    def is_over(self) -> bool:
        return self._done is None

    def cancel(self) -> None:
        """Stop, because the client has disconnected."""
        self._done = None
        self._stop_waiting()

    def _stop_waiting(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        for _, led in self._targets:
            led.remove_waiter(self)

    def _expire(self) -> None:
        self._has_expired = True
        self.wake()

    def wake(self) -> None:
        """Look at the share-partitions again."""
        if self._done is None:
            return
        self._runs_again = True
        if self._is_running:
            return
        self._is_running = True
        if len(self._targets) > _AT_ONCE:
            self._long_work.start(self._steps(), self._ran)
            return
        steps = self._steps()
        try:
            while True:
                next(steps)
        except StopIteration as stop:
            self._ran(stop.value)

    def _ran(self, results: Results | None) -> None:
        self._is_running = False
        if results is not None:
            self._complete(results)

    def _complete(self, results: Results) -> None:
        done = self._done
        self._done = None
        self._stop_waiting()
        if done is not None:
            done(results)

    def _steps(self) -> Steps[Results | None]:
        while self._runs_again and self._done is not None:
            self._runs_again = False
            candidates: list[_Candidate] = []
            for target in self._targets:
                candidate = self._candidate(target)
                if candidate is not None:
                    candidates.append(candidate)
                yield None
            if self._has_expired or (candidates and self._is_enough(candidates)):
                return (yield from self._acquire(self._in_groups(candidates)))
        return None

    def _candidate(self, target: Target) -> _Candidate | None:
        """Return how much a share-partition offers, or None if nothing can be acquired from it now."""
        _, led = target
        machine = led.refresh()
        if machine is None or not machine.can_acquire:
            return None
        offset = machine.next_fetch_offset()
        records, code = self._read(led.replica, offset, _EVERY_BYTE, True)
        is_known = led.looked_up_offset == offset
        if code == ErrorCode.NONE:
            led.looked_up_offset = offset
        return _Candidate(target, is_known, records.size_bytes if records is not None else 0, code)

    def _in_groups(self, candidates: Sequence[_Candidate]) -> list[Sequence[_Candidate]]:
        """Apply rule 3: return share-partitions that are read together, in order."""
        if self._has_expired:
            return [candidates]
        known = [each for each in candidates if each.is_known]
        return [known, [each for each in candidates if not each.is_known]]

    def _is_enough(self, candidates: Sequence[_Candidate]) -> bool:
        params = self._params
        part_bytes = max(params.max_bytes // len(candidates), 1)
        total_bytes = 0
        for each in candidates:
            if each.code != ErrorCode.NONE:
                return True
            total_bytes += min(each.available_bytes, part_bytes)
        return total_bytes >= params.min_bytes

    def _read(
        self, replica: Partition, offset: int, max_bytes: int, min_one_batch: bool
    ) -> tuple[FileSlice | None, ErrorCode]:
        if not replica.is_leader:
            return None, ErrorCode.NOT_LEADER_OR_FOLLOWER
        try:
            return replica.log.read(offset, max_bytes, self._end(replica), min_one_batch), ErrorCode.NONE
        except OffsetOutOfRange:
            return None, ErrorCode.OFFSET_OUT_OF_RANGE
        except StorageError as error:
            return None, code_of(error)

    def _end(self, replica: Partition) -> int:
        return replica.last_stable_offset if self._params.is_committed_only else replica.high_watermark

    # --- acquisition

    def _acquire(self, groups: Sequence[Sequence[_Candidate]]) -> Steps[Results]:
        params = self._params
        count = sum(map(len, groups))
        if self._targets:
            self._counts.fetch_ratio.add(100 * count // len(self._targets))
        if count:
            self._counts.acquire_ms.add(self._now_ms() - self._began_ms)
        results: Results = dict(self._errors)
        records_left = params.max_records
        part_bytes = max(params.max_bytes // max(count, 1), 1)
        bytes_left, has_records = 0, False
        for is_first, (key, led) in (
            (position == 0, each.target) for group in groups for position, each in enumerate(group)
        ):
            if is_first:
                bytes_left, has_records = params.max_bytes, False
            machine = led.machine
            if machine is not None:
                offset = machine.next_fetch_offset()
                max_bytes = min(part_bytes, bytes_left)
                records, code = self._read(led.replica, offset, max_bytes, not has_records)
                if records is not None:
                    has_records = True
                    bytes_left = max(bytes_left - records.size_bytes, 0)
                result = self._acquired(led, machine, offset, records, code, records_left, max_bytes)
                results[key] = result
                records_left -= sum(each.last - each.first + 1 for each in result.acquired)
            yield None
        for key, led in self._targets:
            if led.error != ErrorCode.NONE and key not in results:
                results[key] = FetchedPartition(led.error)
        return results

    def _acquired(
        self,
        led: LedSharePartition,
        machine: SharePartition,
        offset: int,
        records: FileSlice | None,
        code: ErrorCode,
        records_left: int,
        max_bytes: int,
    ) -> FetchedPartition:
        replica = led.replica
        if code == ErrorCode.OFFSET_OUT_OF_RANGE:
            machine.log_starts_at(replica.log.log_start_offset)
            return FetchedPartition(ErrorCode.NONE)
        if code != ErrorCode.NONE or records is None or records_left <= 0:
            return FetchedPartition(code)
        params = self._params
        limits = machine.limits
        through = max(machine.end_offset, offset) + min(records_left, limits.max_record_locks)
        try:
            aborted: Sequence[AbortedTransaction] = ()
            if params.is_committed_only:
                aborted = replica.log.aborted_transactions(offset, self._end(replica))
            fetched = FetchedRecords(records, through, aborted)
        except (StorageError, OSError) as error:
            return FetchedPartition(code_of(replica.log.unreadable(error, offset)))
        now_ms = self._now_ms()
        acquired = Acquisition(
            machine,
            params.member_id,
            is_exact=params.is_exact,
            max_records=records_left,
            batch_size=params.batch_size,
            now_ms=now_ms,
        ).run(offset, fetched.batches, fetched.aborted)
        if not acquired:
            return FetchedPartition(ErrorCode.NONE)
        for each in acquired:
            led.batch_sizes.add(each.last - each.first + 1)
        led.locked(now_ms, limits.lock_duration_ms)
        if fetched.is_single:
            part = self._with_rest(replica, offset, records, max_bytes)
        else:
            part = fetched.part(acquired[0].first, acquired[-1].last)
        return FetchedPartition(ErrorCode.NONE, part, acquired, replica)

    def _with_rest(self, replica: Partition, offset: int, records: FileSlice, max_bytes: int) -> FileSlice:
        """Return a slice with one batch and the beginning of the next one, as far as it fits in `max_bytes`.
        Kafka sends all bytes that it has read if they contain only one complete batch.
        """
        following, _ = self._read(replica, offset, _EVERY_BYTE, True)
        if following is None or following.position != records.position:
            return records
        size_bytes = max(records.size_bytes, min(max_bytes, following.size_bytes))
        return FileSlice(records.file, records.position, size_bytes)
