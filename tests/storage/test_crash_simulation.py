"""The log store on a disk that loses whatever POSIX lets it lose, crashed at thousands of different I/O
steps.

A random workload (idempotent appends, flushes, rolls, retention, DeleteRecords, truncation, topics made and
dropped, checkpoints, clean restarts, a disk that is full for a while) runs against a model until the power
goes. A full disk must refuse and change nothing. What must hold for the log
found afterwards:

- every record that a flush covered is there, which with flush.messages=1 is every acknowledged one;
- the log is a clean prefix of what was appended: no gap, no phantom, no byte changed, also when the power
goes again
  during the recovery;
- recovering a second time finds exactly the same and cuts nothing;
- a producer that retries its last batch is told that it is a duplicate, and may go on with the next;
- leader epochs and look-ups by offset and time agree with the records.
"""

from __future__ import annotations

import contextlib
import random
from dataclasses import dataclass, field
from uuid import UUID

import pytest

from storage.batch import read_header
from storage.config import LogConfig
from storage.errors import DiskFull
from storage.log import Log
from storage.log_dirs import LogDirs
from storage.records import Record, build_batch
from tests.storage.simulated_filesystem import Crash, SimulatedFilesystem
from tests.support import campaign

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
        self.leader_epoch = 0
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

    def new_dirs(self) -> LogDirs:
        return LogDirs(
            [DIRECTORY],
            broker_id=1,
            cluster_id="simulated",
            clock=self,
            config_for=lambda _: self.config,
            filesystem=self.disk,
        )

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
        self.leader_epoch += 1

    def act(self) -> None:
        self.disk.now_ms += self.random.randint(0, 50)
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

    def create(self, _: Key) -> None:
        key = (self.random.choice("ab"), self.random.randint(0, 2))
        if key not in self.dirs.logs:
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
        end = log.log_end_offset
        log.flush()
        assert log.flushed_end_offset >= end
        partition.flushed_end = end

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
        log.advance_log_start_offset(offset)
        self.dirs.checkpoint_log_start_offsets()
        log.apply_retention(self.disk.now_ms, high_watermark=0)

    def truncate(self, key: Key) -> None:
        partition, log = self.partitions[key], self.dirs.logs[key]
        low = max(log.log_start_offset, log.log_end_offset - 20)
        offset = self.random.randint(low, log.log_end_offset)
        kept = [batch for batch in partition.batches if batch.last_offset < offset]
        partition.flushed_end = min(partition.flushed_end, kept[-1].last_offset + 1 if kept else 0)
        log.truncate_to(offset)
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
        before, partition.start = partition.start, offset
        try:
            log.truncate_fully_and_start_at(offset)
        except DiskFull:
            partition.start = before
            raise
        assert before <= offset
        partition.batches = []

    def drop(self, key: Key) -> None:
        self.partitions[key].may_be_gone = True
        self.dirs.delete(*key)
        del self.partitions[key]
        self.dirs.tick(self.disk.now_ms)

    def checkpoint(self, key: Key) -> None:
        self.dirs.checkpoint_recovery_points()
        self.dirs.checkpoint_high_watermarks({key: self.dirs.logs[key].log_end_offset})
        self.dirs.tick(self.disk.now_ms)

    def restart(self, key: Key) -> None:
        self.disk.room_bytes = None
        self.dirs.close({})
        for name, partition in self.partitions.items():
            partition.flushed_end = max(self.dirs.logs[name].log_end_offset, 0)
        self.load()
        self.check_all()

    # --- after the crash

    def power_returns(self) -> None:
        """Recover, with the power going again now and then, and check everything twice."""
        self.disk = self.disk.after_crash()
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
        self.partitions = self.abandoned | self.partitions
        self.abandoned = {}
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
            log.assign_topic_id(partition.topic_id)
            log.flush()
            assert log.log_start_offset <= partition.start or not partition.batches
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
        found = log.offset_for_timestamp(wanted)
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
def test_no_acknowledged_record_is_lost_and_every_recovery_is_a_clean_prefix() -> None:
    crashes = campaign.rounds(CRASHES_EVERYDAY, CRASHES_CAMPAIGN)
    for seed in range(crashes // CRASHES_PER_DISK):
        try:
            crash_repeatedly(seed, CRASHES_PER_DISK)
        except Exception as error:
            error.add_note(f"seed {seed}")
            raise
