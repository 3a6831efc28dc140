"""The log store on a disk that loses whatever POSIX lets it lose, crashed at thousands of different I/O
steps.

A random workload (idempotent appends, flushes, rolls, retention, DeleteRecords, truncation, topics made and
dropped, checkpoints, clean restarts, a disk that is full for a while) runs against a model until the power
goes, or the process is killed. The worker of the directory lags behind the loop by any number of steps. A
full disk must refuse and change nothing. What must hold for the log found afterwards:

- every record that a flush covered is there, which with flush.messages=1 is every acknowledged one;
- the log is a clean prefix of what was appended: no gap, no phantom, no byte changed, also when the power
goes again
  during the recovery;
- recovering a second time finds exactly the same and cuts nothing;
- a producer that retries its last batch is told that it is a duplicate, and may go on with the next;
- leader epochs and look-ups by offset and time agree with the records;
- what was told to be deleted stays deleted: records by DeleteRecords, and topics; nothing that was noted of a
  topic counts for another of its name.
"""

from __future__ import annotations

import contextlib
import random
from dataclasses import dataclass, field
from uuid import UUID

import pytest

from kafka_compat.storage.config import LogConfig
from kafka_compat.storage.directories.log_dirs import LogDirs
from kafka_compat.storage.errors import DiskFull, NotSettled
from kafka_compat.storage.log.log import Log
from kafka_compat.storage.records.batch import read_header
from kafka_compat.storage.records.records import Record, build_batch
from kafka_compat.testing.simulation.filesystem import Crash, SimulatedFilesystem
from tests.storage.stepped_worker import SteppedWorker
from tests.support import campaign
from tests.support.steps import result_of

CRASHES_EVERYDAY = 600
CRASHES_CAMPAIGN = 10_000
CRASHES_PER_DISK = 5
PRODUCER_IDS = (1000, 1001, 1002)
DIRECTORY = "/data"

Key = tuple[str, int]


@dataclass
class Batch:
    """An appended batch, as it stands in the log."""

    first_offset: int
    last_offset: int
    content: bytes
    producer_id: int
    sequence: int
    leader_epoch: int
    timestamps: list[int]


@dataclass
class Partition:
    """What the model knows of one partition."""

    topic_id: UUID
    batches: list[Batch] = field(default_factory=list)
    flushed_end: int = -1
    """Offset up to which everything must survive; -1 while not even the partition must."""
    start: int = 0
    """Records below may be gone."""
    deleted_below: int = 0
    """The greatest start so far: should records below come back, their leader epoch is not known any more."""
    may_be_gone: bool = False
    """It is being dropped."""
    uncut: tuple[list[Batch], int] | None = None
    """What it held before a truncation that is not on disk yet, and its start: a crash may bring it back."""
    acknowledged_start: int = 0
    """Up to where records were told to be deleted."""
    high_watermark: int = 0
    """The greatest that was noted."""


class Workload:
    """The log store under test beside the model of what it must keep."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.disk = SimulatedFilesystem(self.random)
        self.disk.now_ms = 1_000_000
        self.disk.mkdir(DIRECTORY)
        self.disk.sync_directory("/")
        self.partitions: dict[Key, Partition] = {}
        self.abandoned: dict[Key, Partition] = {}
        """Not made for want of space; a crash may bring back the empty folder."""
        self.dropping: dict[Key, Partition] = {}
        """Dropped, and not told to be."""
        self.lags = self.random.random() < 0.7
        self.worker: SteppedWorker | None = None
        self.leader_epoch = 0
        self.noted_high_watermarks: dict[Key, int] = {}
        self.config = LogConfig(
            segment_bytes=self.random.choice((1_000, 2_000, 6_000)),
            index_interval_bytes=self.random.choice((0, 300)),
            retention_ms=-1,
            retention_bytes=self.random.choice((-1, 4_000)),
            file_delete_delay_ms=0,
            flush_messages=1,
        )
        self.dirs = self.new_dirs()

    def now_ms(self) -> int:
        return self.disk.now_ms

    monotonic_ms = now_ms

    def new_dirs(self) -> LogDirs:
        return LogDirs(
            [DIRECTORY],
            broker_id=1,
            cluster_id="simulated",
            clock=self,
            config_for=lambda _: self.config,
            filesystem=self.disk,
            new_worker=self.new_worker if self.lags else None,
        )

    def new_worker(self, _: str) -> SteppedWorker:
        self.worker = SteppedWorker()
        return self.worker

    def lag(self) -> None:
        """Let the worker do something, and the loop hear of some of it."""
        if self.worker is not None:
            for _ in range(self.random.choice((0, 0, 1, 1, 2, 5, 30))):
                self.worker.step() if self.random.random() < 0.6 else self.worker.hear()

    def catch_up(self) -> None:
        if self.worker is not None:
            self.worker.drain()

    # --- the workload

    def run_until_crash(self, steps_max: int) -> None:
        """Work until the power goes, after `steps_max` I/O steps at the latest."""
        self.disk.crash_at = self.disk.steps + self.random.randint(1, steps_max)
        try:
            self.load()
            while True:
                self.act()
        except Crash:
            pass

    def load(self) -> None:
        self.dirs = self.new_dirs()
        report = self.dirs.load()
        assert not report.offline
        self.noted_high_watermarks = report.high_watermarks
        self.leader_epoch += 1

    def act(self) -> None:
        self.disk.now_ms += self.random.randint(0, 50)
        self.lag()
        key = self.random.choice(sorted(self.dirs.logs)) if self.dirs.logs else ("", 0)
        if self.random.random() < 0.02:
            self.disk.room_bytes = self.random.randint(0, 4_000)
        actions = [self.append] * 30 + [self.flush] * 12 + [self.retention] * 2 + [self.delete_records] * 2
        actions += [self.truncate] * 2 + [self.truncate_fully, self.drop, self.checkpoint, self.restart]
        action = self.create if len(self.dirs.logs) < 2 else self.random.choice(actions)
        try:
            action(key)
        except DiskFull:
            # Whatever was refused, all is as before, and goes on once there is space.
            assert not self.dirs.offline
            self.disk.room_bytes = None
            self.check_all()
        if self.random.random() < 0.05:
            self.disk.room_bytes = None
            self.dirs.tick(self.disk.now_ms)

    def create(self, _: Key) -> None:
        key = (self.random.choice("ab"), self.random.randint(0, 2))
        if key not in self.dirs.logs and not self.dirs.is_ready(key):
            with pytest.raises(NotSettled):
                self.dirs.create(*key, UUID(int=1))
            self.disk.room_bytes = None
            self.catch_up()
            self.dirs.tick(self.disk.now_ms)
            self.catch_up()
        if key not in self.dirs.logs:
            assert key not in self.dropping
            topic_id = UUID(int=self.random.getrandbits(128))
            self.partitions[key] = Partition(topic_id)
            self.abandoned.pop(key, None)
            try:
                self.dirs.create(*key, topic_id)
            except DiskFull:
                self.partitions[key].may_be_gone = True
                self.abandoned[key] = self.partitions.pop(key)
                raise

    def append(self, key: Key) -> None:
        partition, log = self.partitions[key], self.dirs.logs[key]
        if log.is_settling:
            with pytest.raises(NotSettled):
                log.append_as_leader(memoryview(self.build(-1, -1, [1])), leader_epoch=1, now_ms=1)
            return
        for _ in range(self.random.randint(1, 4)):
            producer_id = self.random.choice(PRODUCER_IDS)
            sequence = self.next_sequence(partition, log, producer_id)
            timestamps = [
                self.disk.now_ms - self.random.randint(0, 100) for _ in range(self.random.randint(1, 4))
            ]
            content = memoryview(bytearray(self.build(producer_id, sequence, timestamps)))
            batch = Batch(-1, -1, b"", producer_id, sequence, self.leader_epoch, timestamps)
            # In the model before it is in the log: a crash in the middle may keep it or not.
            batch.first_offset = log.log_end_offset
            batch.last_offset = batch.first_offset + len(timestamps) - 1
            stamped = bytearray(content)
            stamped[0:8] = batch.first_offset.to_bytes(8, "big")
            stamped[12:16] = self.leader_epoch.to_bytes(4, "big")
            batch.content = bytes(stamped)
            partition.batches.append(batch)
            try:
                info = log.append_as_leader(content, leader_epoch=self.leader_epoch, now_ms=self.disk.now_ms)
            except DiskFull:
                partition.batches.pop()
                raise
            assert not info.duplicate
            assert (info.first_offset, info.last_offset) == (batch.first_offset, batch.last_offset)

    def build(self, producer_id: int, sequence: int, timestamps: list[int]) -> bytes:
        records = [
            Record(timestamp=timestamp, value=self.random.randbytes(self.random.randint(0, 200)))
            for timestamp in timestamps
        ]
        return build_batch(records, producer_id=producer_id, producer_epoch=0, base_sequence=sequence)

    @staticmethod
    def next_sequence(partition: Partition, log: Log, producer_id: int) -> int:
        for batch in reversed(partition.batches):
            if batch.producer_id == producer_id:
                return batch.sequence + len(batch.timestamps)
        # Its records are deleted, or it wrote none here: the log may remember, and need not.
        entry = log.producers.entries.get(producer_id)
        return entry.last_sequence + 1 if entry is not None else 0

    def flush(self, key: Key) -> None:
        partition, log = self.partitions[key], self.dirs.logs[key]
        end, truncations = log.log_end_offset, log.truncation_count

        def flushed(error: Exception | None) -> None:
            if error is None and log.truncation_count == truncations and not log.closed and not was_settling:
                assert log.flushed_end_offset >= end
                partition.flushed_end = max(partition.flushed_end, end)

        was_settling = log.is_settling
        log.disk.worker.submit(log.flush, flushed, urgent=True)

    def retention(self, key: Key) -> None:
        partition, log = self.partitions[key], self.dirs.logs[key]
        if self.config.retention_bytes < 0:
            return
        before = partition.start
        # What may go is known only afterwards; a crash in the middle is allowed the same.
        partition.start = log.log_end_offset
        try:
            log.apply_retention(self.disk.now_ms, high_watermark=log.log_end_offset)
        finally:
            if not self.disk.crashed:
                partition.start = max(before, log.log_start_offset)

    def delete_records(self, key: Key) -> None:
        partition, log = self.partitions[key], self.dirs.logs[key]
        offset = self.random.randint(log.log_start_offset, log.log_end_offset)
        partition.start = max(partition.start, offset)
        if partition.uncut is not None:
            # A log that comes back uncut comes back with this start, whatever is cut later.
            batches, start = partition.uncut
            partition.uncut = batches, max(start, offset)
        log.advance_log_start_offset(offset)
        truncations = log.truncation_count

        def stored(error: Exception | None) -> None:
            if error is None and log.truncation_count == truncations:
                partition.acknowledged_start = max(partition.acknowledged_start, offset)

        self.dirs.store_log_starts(DIRECTORY, stored)
        log.apply_retention(self.disk.now_ms, high_watermark=0)

    def truncate(self, key: Key) -> None:
        partition, log = self.partitions[key], self.dirs.logs[key]
        low = max(log.log_start_offset, log.log_end_offset - 20)
        offset = self.random.randint(low, log.log_end_offset)
        kept = [batch for batch in partition.batches if batch.last_offset < offset]
        partition.flushed_end = min(partition.flushed_end, kept[-1].last_offset + 1 if kept else 0)
        self.begin_to_cut(partition)
        log.truncate_to(offset)
        log.truncations.when_none(lambda: self.cut(partition))
        partition.batches = kept
        assert (
            log.log_end_offset == partition.batches[-1].last_offset + 1
            if partition.batches
            else log.log_end_offset <= offset
        )
        partition.start = min(partition.start, log.log_end_offset)
        partition.flushed_end = min(partition.flushed_end, log.log_end_offset)

    def truncate_fully(self, key: Key) -> None:
        partition, log = self.partitions[key], self.dirs.logs[key]
        offset = log.log_end_offset + self.random.randint(0, 5)
        partition.flushed_end = min(partition.flushed_end, 0)
        self.begin_to_cut(partition)
        before, partition.start = partition.start, offset
        log.truncate_fully_and_start_at(offset)
        log.truncations.when_none(lambda: self.cut(partition))
        assert before <= offset
        partition.batches = []

    @staticmethod
    def begin_to_cut(partition: Partition) -> None:
        partition.acknowledged_start = 0
        if partition.uncut is None:
            partition.uncut = partition.batches, partition.start

    @staticmethod
    def cut(partition: Partition) -> None:
        # Of a log that is dropped the files are not cut any more.
        if not partition.may_be_gone:
            partition.uncut = None

    def drop(self, key: Key) -> None:
        partition = self.dropping[key] = self.partitions.pop(key)
        partition.may_be_gone = True

        def dropped(error: Exception | None) -> None:
            if error is None:
                del self.dropping[key]

        self.dirs.delete(*key, dropped)
        self.dirs.tick(self.disk.now_ms)

    def checkpoint(self, key: Key) -> None:
        self.dirs.checkpoint_recovery_points()
        for name, log in self.dirs.logs.items():
            held = self.partitions[name]
            held.high_watermark = max(held.high_watermark, log.log_end_offset)
        self.dirs.checkpoint_high_watermarks(
            {name: log.log_end_offset for name, log in self.dirs.logs.items()}
        )
        self.dirs.tick(self.disk.now_ms)

    def restart(self, key: Key) -> None:
        self.disk.room_bytes = None
        self.catch_up()
        self.dirs.tick(self.disk.now_ms)
        self.catch_up()
        self.dirs.close({})
        for name, partition in self.partitions.items():
            partition.flushed_end = max(self.dirs.logs[name].log_end_offset, 0)
        self.load()
        self.check_all()

    # --- after the crash

    def power_returns(self) -> None:
        """Recover, with the power going again now and then, and check everything twice."""
        self.disk = self.disk.after_crash() if self.random.random() < 0.7 else self.disk.after_kill()
        while self.random.random() < 0.3:
            self.disk.crash_at = self.random.randint(1, 60)
            with contextlib.suppress(Crash):
                self.new_dirs().load()
            self.disk = self.disk.after_crash()
        self.load()
        self.adopt_and_check()
        found = {key: self.state_of(log) for key, log in self.dirs.logs.items()}

        self.disk = self.disk.after_crash()
        self.dirs = self.new_dirs()
        report = self.dirs.load()
        assert report.truncated == {}
        assert {key: self.state_of(log) for key, log in self.dirs.logs.items()} == found
        self.check_producers()
        self.disk = self.disk.after_crash()

    @staticmethod
    def state_of(log: Log) -> tuple[object, ...]:
        return (
            log.topic_id,
            log.log_start_offset,
            log.log_end_offset,
            contents(log),
            log.leader_epochs.encode(),
            log.producers.encode_snapshot(),
        )

    def adopt_and_check(self) -> None:
        """Check what was found against the model, then let the model go on from there."""
        self.partitions = self.abandoned | self.dropping | self.partitions
        self.abandoned, self.dropping = {}, {}
        for key in self.dirs.logs.keys() - self.partitions.keys():
            raise AssertionError(f"{key} was dropped and came back")
        for key, partition in list(self.partitions.items()):
            log = self.dirs.logs.get(key)
            if log is None:
                assert partition.may_be_gone or partition.flushed_end < 0, f"{key} is lost"
                del self.partitions[key]
                continue
            if partition.flushed_end >= 0:
                assert log.topic_id == partition.topic_id
                assert log.log_end_offset >= partition.flushed_end, "acknowledged records are lost"
            noted = self.noted_high_watermarks.get(key, 0)
            assert noted <= partition.high_watermark, "the high watermark of another log"
            partition.high_watermark = noted
            log.assign_topic_id(partition.topic_id)
            log.flush()
            if partition.uncut is not None:
                partition.batches, start = partition.uncut
                partition.start, partition.uncut = max(start, partition.start), None
            assert log.log_start_offset <= partition.start or not partition.batches
            assert log.log_start_offset >= min(partition.acknowledged_start, log.log_end_offset)
            found = contents(log)
            expected = [batch for batch in partition.batches if batch.last_offset < log.log_end_offset]
            if found:
                expected = expected[len(expected) - len(found) :]
                assert [batch.content for batch in expected] == found, "not a clean prefix"
                assert expected[0].first_offset <= max(partition.start, log.log_start_offset)
                partition.batches = expected
            else:
                assert all(batch.last_offset < partition.start for batch in expected), "records are lost"
                partition.batches = []
            partition.deleted_below = max(partition.deleted_below, partition.start)
            partition.start = log.log_start_offset
            partition.may_be_gone = False
            # All that was recovered is durable: the next crash must not take it.
            partition.flushed_end = log.log_end_offset
        self.check_all()

    def check_all(self) -> None:
        for key, partition in self.partitions.items():
            log = self.dirs.logs[key]
            visible = [batch for batch in partition.batches if batch.last_offset >= log.log_start_offset]
            assert contents(log)[-len(visible) :] == [batch.content for batch in visible]
            for batch in visible:
                if batch.last_offset < partition.deleted_below:
                    continue
                assert log.leader_epochs.epoch_for(batch.last_offset) == batch.leader_epoch
            self.check_lookups(log, visible)

    def check_lookups(self, log: Log, batches: list[Batch]) -> None:
        records = [
            (timestamp, batch.first_offset + index)
            for batch in batches
            for index, timestamp in enumerate(batch.timestamps)
            if batch.first_offset + index >= log.log_start_offset
        ]
        if not records:
            return
        wanted, offset = self.random.choice(records)
        found = result_of(log.offset_for_timestamp(wanted))
        first = next(record for record in records if record[0] >= wanted)
        assert found is not None
        assert (found.timestamp, found.offset) == first
        part = log.read(offset, 1)
        assert part is not None
        batch = next(batch for batch in batches if batch.last_offset >= offset)
        assert part.read() == batch.content

    def check_producers(self) -> None:
        """Each producer's newest batch is known, so that its retry is no second copy."""
        for key, partition in self.partitions.items():
            log = self.dirs.logs[key]
            for producer_id in PRODUCER_IDS:
                newest = next((b for b in reversed(partition.batches) if b.producer_id == producer_id), None)
                if newest is None:
                    continue
                again = memoryview(bytearray(newest.content))
                again[0:8] = bytes(8)
                end = log.log_end_offset
                info = log.append_as_leader(again, leader_epoch=self.leader_epoch, now_ms=self.disk.now_ms)
                assert info.duplicate
                assert (info.first_offset, info.last_offset) == (newest.first_offset, newest.last_offset)
                assert log.log_end_offset == end


def contents(log: Log) -> list[bytes]:
    """The batches from the log start to the end, as they are read."""
    found = []
    offset = log.log_start_offset
    while offset < log.log_end_offset:
        part = log.read(offset, 3_000)
        assert part is not None, "a hole in the log"
        data = part.read()
        position = 0
        while position < len(data):
            header = read_header(data, position)
            found.append(data[position : position + header.size_bytes])
            position += header.size_bytes
            offset = header.next_offset
    return found


def crash_repeatedly(seed: int, crashes: int) -> None:
    workload = Workload(seed)
    for _ in range(crashes):
        workload.run_until_crash(steps_max=workload.random.choice((40, 150, 400)))
        workload.power_returns()


@pytest.mark.timeout(1800)
def test_recovery_keeps_a_prefix_of_the_log_that_includes_all_acknowledged_records() -> None:
    crashes = campaign.rounds(CRASHES_EVERYDAY, CRASHES_CAMPAIGN)
    for seed in range(crashes // CRASHES_PER_DISK):
        try:
            crash_repeatedly(seed, CRASHES_PER_DISK)
        except Exception as error:
            error.add_note(f"seed {seed}")
            raise
