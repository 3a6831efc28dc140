"""A model of a share-partition that keeps one entry per offset. `SharePartition` is compared with it after
random events.

It knows what must be true of every record, but not which records an acquisition chooses.
"""

from collections.abc import Iterator, Sequence
from random import Random

from kafka_compat.errors import ErrorCode
from kafka_compat.share_partitions.acquisition import AcquiredRange, Acquisition, OffsetRange
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
from kafka_compat.share_partitions.in_flight import ACKNOWLEDGED, ACQUIRED, ARCHIVED, AVAILABLE
from kafka_compat.share_partitions.share_partition import SharePartition

MEMBERS = ("a", "b", "c")


class Entry:
    """One record: its state, and the state to which a pending change returns."""

    def __init__(self) -> None:
        self.state = AVAILABLE
        self.count = 0
        self.member = ""
        self.deadline_ms = 0
        self.before: tuple[int, str] | None = None
        self.written_by: Write | None = None


class Run:
    """A share-partition under random events, and its model."""

    def __init__(self, seed: int) -> None:
        self.random = Random(seed)
        self.limits = Limits(
            lock_duration_ms=100,
            delivery_count_limit=self.random.choice((2, 3, 5, 6)),
            max_record_locks=self.random.choice((20, 100)),
        )
        self.partition = SharePartition(self.limits, 0)
        self.entries: dict[int, Entry] = {}
        self.log: list[OffsetRange] = []
        self.log_start = self.log_end = 0
        self.now_ms = 1
        self.writes: list[Write] = []
        self.deliveries = 0

    def step(self) -> None:
        """Apply one random event, and check the result."""
        name = self.random.choices(
            ("produce", "fetch", "acknowledge", "write", "end_session", "wait", "delete", "compact"),
            (3, 6, 6, 4, 1, 1, 0.2, 0.1),
        )[0]
        getattr(self, name)()
        self.check()

    def produce(self) -> None:
        first = self.log_end
        self.log_end += self.random.choice((1, 1, 3, 10))
        self.log.append(OffsetRange(first, self.log_end - 1))

    def fetch(self) -> None:
        partition = self.partition
        offset = partition.next_fetch_offset()
        if offset < self.log_start:
            self._move_log_start(self.log_start)
            return
        if not partition.can_acquire:
            return
        at = next((i for i, batch in enumerate(self.log) if batch.last >= offset), None)
        if at is None:
            return
        fetched = self.log[at : at + self.random.choice((1, 2, 5, 50))]
        member = self.random.choice(MEMBERS)
        is_exact = self.random.random() < 0.5
        max_records = self.random.choice((1, 2, 5, 50))
        aborted = [batch for batch in fetched if self.random.random() < 0.05]
        acquired = Acquisition(
            partition,
            member,
            is_exact=is_exact,
            max_records=max_records,
            batch_size=self.random.choice((1, 4, 100)),
            now_ms=self.now_ms,
        ).run(offset, fetched, aborted)
        self._acquired(acquired, member, aborted)
        if is_exact:
            assert sum(each.last - each.first + 1 for each in acquired) <= max_records

    def _acquired(
        self, acquired: Sequence[AcquiredRange], member: str, aborted: Sequence[OffsetRange]
    ) -> None:
        # Records that were archived without being returned: aborted ones, and ones that the log has lost.
        for offset, state in self._states():
            if offset < self.partition.start_offset:
                continue
            entry = self.entries.setdefault(offset, Entry())
            if state[0] != ARCHIVED or entry.state == ARCHIVED:
                continue
            lost = not any(batch.first <= offset <= batch.last for batch in self.log)
            is_aborted = any(batch.first <= offset <= batch.last for batch in aborted)
            if lost or is_aborted:
                assert entry.state == AVAILABLE or is_aborted
                entry.count = state[1]
                self._archive(entry)
        for first, last, delivery_count in acquired:
            for offset in range(first, last + 1):
                entry = self.entries.setdefault(offset, Entry())
                assert entry.state == AVAILABLE, f"{offset} is acquired by two members"
                assert entry.before is None, f"{offset} is changing"
                entry.count += 1
                assert entry.count == delivery_count
                assert entry.count <= self.limits.delivery_count_limit
                entry.state, entry.member = ACQUIRED, member
                entry.deadline_ms = self.now_ms + self.limits.lock_duration_ms
                self.deliveries += 1

    @staticmethod
    def _archive(entry: Entry) -> None:
        entry.state, entry.member, entry.deadline_ms = ARCHIVED, "", 0
        if entry.before is not None:
            entry.before = (ARCHIVED, "")

    def acknowledge(self) -> None:
        member = self.random.choice(MEMBERS)
        end = self.partition.end_offset
        first = self.random.randint(max(self.partition.start_offset - 2, 0), end)
        last = min(first + self.random.choice((0, 1, 4, 9)), end + 1)
        owned = [offset for offset, entry in self.entries.items() if self._is_owned(entry, member)]
        if owned and self.random.random() < 0.9:
            first = last = self.random.choice(owned)
            while last - first < 12 and last + 1 in owned:
                last += 1
        kinds = (GAP, ACCEPT, ACCEPT, RELEASE, RELEASE, REJECT, RENEW)
        count = 1 if self.random.random() < 0.5 else last - first + 1
        types = [self.random.choice(kinds) for _ in range(count)]
        result = self.partition.acknowledge(member, [Acknowledgement(first, last, types)], self.now_ms)
        if last < self.partition.start_offset:
            assert isinstance(result, Write)
            assert not result.batches
            return
        offsets = [offset for offset in range(first, last + 1) if offset >= self.partition.start_offset]
        is_allowed = all(
            offset in self.entries and self._is_owned(self.entries[offset], member) for offset in offsets
        )
        if not isinstance(result, Write):
            assert not is_allowed
            assert result in (ErrorCode.INVALID_RECORD_STATE, ErrorCode.INVALID_REQUEST)
            # Renewals before the first invalid offset have taken effect.
            for offset, state in self._states():
                if offset in offsets:
                    self.entries[offset].deadline_ms = state[3]
            return
        assert is_allowed
        for offset in offsets:
            kind = types[0] if len(types) == 1 else types[offset - first]
            entry = self.entries[offset]
            if kind == RENEW:
                entry.deadline_ms = self.now_ms + self.limits.lock_duration_ms
            else:
                self._change(entry, kind, result)
        self.writes.append(result)

    @staticmethod
    def _is_owned(entry: Entry, member: str) -> bool:
        return entry.state == ACQUIRED and entry.member == member and entry.before is None

    def _change(self, entry: Entry, kind: int, write: Write) -> None:
        entry.before = (entry.state, entry.member)
        entry.written_by = write
        if kind == ACCEPT:
            entry.state = ACKNOWLEDGED
        elif kind == RELEASE and entry.count < self.limits.delivery_count_limit:
            entry.state = AVAILABLE
        else:
            entry.state = ARCHIVED
        entry.member = ""

    def write(self) -> None:
        if not self.writes:
            return
        write = self.writes.pop(self.random.randrange(len(self.writes)))
        is_stored = self.random.random() < 0.8
        for offset, entry in self.entries.items():
            if entry.written_by is not write or entry.before is None:
                continue
            if not is_stored and entry.before[0] != ARCHIVED:
                if 0 < entry.deadline_ms <= self.now_ms:
                    is_last = entry.count >= self.limits.delivery_count_limit
                    is_deleted = offset < self.partition.start_offset
                    entry.state, entry.member = ARCHIVED if is_last or is_deleted else AVAILABLE, ""
                else:
                    entry.state, entry.member = entry.before
            if is_stored or entry.state != ACQUIRED:
                entry.deadline_ms = 0
            entry.before = entry.written_by = None
        self.partition.written(write, is_stored, self.now_ms)

    def end_session(self) -> None:
        member = self.random.choice(MEMBERS)
        write = self.partition.release_acquired(member)
        for offset, entry in self.entries.items():
            if self._is_owned(entry, member):
                self._change(entry, RELEASE if offset >= self.partition.start_offset else GAP, write)
        self.writes.append(write)

    def wait(self) -> None:
        self.now_ms += self.random.choice((1, 30, 120))
        write = self.partition.expire(self.now_ms)
        for offset, entry in self.entries.items():
            if entry.state == ACQUIRED and 0 < entry.deadline_ms <= self.now_ms:
                is_last = entry.count >= self.limits.delivery_count_limit
                entry.state = ARCHIVED if is_last or offset < self.partition.start_offset else AVAILABLE
                entry.member, entry.deadline_ms = "", 0
        if write is not None:
            assert write.batches
            self.partition.written(write, self.random.random() < 0.9, self.now_ms)

    def delete(self) -> None:
        """Delete the oldest records. The next fetch finds out."""
        count = self.random.randint(0, len(self.log))
        if count:
            self.log_start = self.log[count - 1].last + 1
            del self.log[:count]

    def compact(self) -> None:
        """Remove a batch in the middle of the log."""
        if len(self.log) > 2:
            del self.log[self.random.randrange(1, len(self.log) - 1)]

    def _move_log_start(self, offset: int) -> None:
        self.partition.log_starts_at(offset)
        for each, entry in self.entries.items():
            if each < offset and entry.state == AVAILABLE:
                self._archive(entry)

    # --- checks

    def _states(self) -> Iterator[tuple[int, tuple[int, int, str, int, bool]]]:
        for batch in self.partition.batches:
            for run in batch.runs:
                state = (run.state, run.delivery_count, run.member, run.deadline_ms, run.pending is not None)
                for offset in range(run.first, run.last + 1):
                    yield offset, state

    def check(self) -> None:
        """Compare all records in flight with the model."""
        partition = self.partition
        previous = -1
        complete = 0
        for batch in partition.batches:
            assert batch.first > previous
            assert batch.is_split or len(batch.runs) == 1
            at = batch.first
            for run in batch.runs:
                assert run.first == at <= run.last
                at = run.last + 1
            assert at == batch.last + 1
            previous = batch.last
        assert partition.firsts == [batch.first for batch in partition.batches]
        for offset, state in self._states():
            entry = self.entries.setdefault(offset, Entry())
            if state[0] in (ACKNOWLEDGED, ARCHIVED) and offset >= partition.start_offset:
                complete += 1
            assert (state[0], state[2], state[4]) == (
                entry.state,
                entry.member,
                entry.before is not None,
            ), f"offset {offset}: {state}, not {vars(entry)}"
            assert state[1] == entry.count
            if state[0] == ACQUIRED:
                assert state[3] == entry.deadline_ms
        assert partition.delivery_complete_count == complete
        for offset, entry in self.entries.items():
            is_before = offset < partition.start_offset and offset >= self.log_start
            if is_before:
                assert entry.state in (ACKNOWLEDGED, ARCHIVED), f"{offset} is lost: {vars(entry)}"
        assert partition.in_flight_count <= self.limits.max_record_locks + 50
