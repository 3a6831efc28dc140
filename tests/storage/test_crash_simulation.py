"""The log store on a simulated disk that loses all data that POSIX allows it to lose, with crashes at
thousands of different I/O steps.

A random workload runs against a model until the power fails or the process is killed. It consists of
idempotent appends, flushes, rolls, retention, DeleteRecords, truncation, creation and deletion of topics,
checkpoints, clean restarts, and periods with a full disk. The directory worker lags behind the event loop by
any number of steps. A full disk must reject writes and change nothing. The recovered log must satisfy the
following:

- It contains every flushed record. With flush.messages=1, these are all acknowledged records.
- It is a prefix of the appended batches, without gaps, extra or changed bytes, also if the power fails again
  during recovery.
- A second recovery finds the same log and truncates nothing.
- If a producer retries its last batch, the batch is recognized as a duplicate, and the producer can continue.
- Leader epochs and lookups by offset and time match the records.
- Deleted topics and records deleted by DeleteRecords stay deleted. Checkpoint entries for a topic never apply
  to a later topic with the same name.
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
    """An appended batch, as stored in the log."""

    first_offset: int
    last_offset: int
    content: bytes
    producer_id: int
    sequence: int
    leader_epoch: int
    timestamps: list[int]


@dataclass
class Partition:
    """The model of one partition."""

    topic_id: UUID
    batches: list[Batch] = field(default_factory=list)
    flushed_end: int = -1
    """Records below this offset must survive a crash. With -1, even the partition may be missing."""
    start: int = 0
    """Records below this offset may be deleted."""
    deleted_below: int = 0
    """The highest log start offset so far. If records below it reappear, their leader epoch is unknown."""
    may_be_gone: bool = False
    """The partition is being deleted."""
    uncut: tuple[list[Batch], int] | None = None
    """Batches and log start offset before a truncation that is not yet on disk: a crash may restore them."""
    acknowledged_start: int = 0
    """Log start offset of the last acknowledged DeleteRecords."""
    high_watermark: int = 0
    """The highest checkpointed high watermark."""


class Workload:
    """The log store under test, and the model of the data that it must keep."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.disk = SimulatedFilesystem(self.random)
        self.disk.now_ms = 1_000_000
        self.disk.mkdir(DIRECTORY)
        self.disk.sync_directory("/")
        self.partitions: dict[Key, Partition] = {}
        self.abandoned: dict[Key, Partition] = {}
        """Partitions whose creation failed because the disk was full. A crash may restore the empty
        directory.
        """
        self.dropping: dict[Key, Partition] = {}
        """Partitions whose deletion is not yet acknowledged."""
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
        """Let the worker run some steps, and deliver some of its results to the event loop."""
        if self.worker is not None:
            for _ in range(self.random.choice((0, 0, 1, 1, 2, 5, 30))):
                self.worker.step() if self.random.random() < 0.6 else self.worker.hear()

    def catch_up(self) -> None:
        if self.worker is not None:
            self.worker.drain()

    def run_until_crash(self, steps_max: int) -> None:
        """Run the workload until the crash, for at most `steps_max` I/O steps."""
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
            # A rejected operation changes nothing and succeeds once space is available.
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
            # Add the batch to the model first: after a crash during the append, the log may or may not
            # contain it.
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
        # The producer's records are deleted, or it has not written to this partition: its entry may or may
        # not exist.
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
        # The retained part is known only after the call. After a crash during the call, any log start offset
        # is valid.
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
            # If the log is recovered untruncated, it has this start offset, regardless of later truncations.
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
        # The files of a deleted log are no longer truncated.
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

    def power_returns(self) -> None:
        """Recover, with occasional power losses during recovery, and check all logs twice."""
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
        """Compare the recovered logs with the model, and continue with the recovered state as the model."""
        self.partitions = self.abandoned | self.dropping | self.partitions
        self.abandoned, self.dropping = {}, {}
        for key in self.dirs.logs.keys() - self.partitions.keys():
            raise AssertionError(f"{key} was deleted and exists again")
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
            assert noted <= partition.high_watermark, "the high watermark of a different log"
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
                assert [batch.content for batch in expected] == found, (
                    "the log is not a prefix of the appended batches"
                )
                assert expected[0].first_offset <= max(partition.start, log.log_start_offset)
                partition.batches = expected
            else:
                assert all(batch.last_offset < partition.start for batch in expected), (
                    "flushed records are lost"
                )
                partition.batches = []
            partition.deleted_below = max(partition.deleted_below, partition.start)
            partition.start = log.log_start_offset
            partition.may_be_gone = False
            # Recovered records are durable: the next crash must not lose them.
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
        """Check that each producer's last batch is known, so that a retry of it is not appended twice."""
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
    """Return the batches from the log start offset to the end, as fetches return them."""
    found = []
    offset = log.log_start_offset
    while offset < log.log_end_offset:
        part = log.read(offset, 3_000)
        assert part is not None, "the log has a gap"
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
