"""Power loss during a cleaning or the swap of its segments, on a simulated disk that loses all data that
POSIX allows it to lose.
"""

from __future__ import annotations

import contextlib
import random

import pytest

from kafka_compat.storage.config import LogConfig
from kafka_compat.storage.directories.log_dirs import LogDirs
from kafka_compat.storage.log.log import Log
from kafka_compat.storage.records.kinds import ControlRecordType
from kafka_compat.storage.records.records import EndTransactionMarker, Record, build_batch, build_marker
from kafka_compat.testing.simulation.filesystem import Crash, SimulatedFilesystem
from tests.storage.cleaning_support import clean, records
from tests.storage.log_support import START_MS, TOPIC_ID
from tests.support import campaign

DIRECTORY = "/data"
KEYS = 12


class World:
    """A compacted log on a simulated disk, and the records that must survive every crash."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.disk = SimulatedFilesystem(self.random)
        self.disk.now_ms = START_MS
        self.disk.mkdir(DIRECTORY)
        self.disk.sync_directory("/")
        self.config = LogConfig(
            cleanup_policy=frozenset({"compact"}),
            segment_bytes=1_000,
            index_interval_bytes=0,
            file_delete_delay_ms=0,
        )
        self.stored: dict[int, tuple[bytes, bytes]] = {}
        """Every record ever committed, by offset."""
        self.sequence = 0

    def now_ms(self) -> int:
        return START_MS

    monotonic_ms = now_ms

    def open(self) -> Log:
        self.dirs = LogDirs(
            [DIRECTORY],
            broker_id=1,
            cluster_id="simulated",
            clock=self,
            config_for=lambda _: self.config,
            filesystem=self.disk,
        )
        assert self.dirs.load().truncated == {}
        return self.dirs.create("t", 0, TOPIC_ID)

    def write(self, log: Log) -> None:
        for _ in range(self.random.randint(10, 40)):
            aborted = self.random.random() < 0.2
            rows = [
                (b"key %d" % self.random.randrange(KEYS), self.random.randbytes(20))
                for _ in range(self.random.randint(1, 4))
            ]
            batch = build_batch(
                [Record(timestamp=START_MS, key=key, value=value) for key, value in rows],
                producer_id=7 if aborted else -1,
                producer_epoch=0 if aborted else -1,
                base_sequence=self.sequence if aborted else -1,
                transactional=aborted,
            )
            info = self.append(log, batch)
            if aborted:
                self.sequence += len(rows)
                marker = EndTransactionMarker(ControlRecordType.ABORT, 0)
                self.append(log, build_marker(marker, producer_id=7, producer_epoch=0, timestamp=START_MS))
            else:
                self.stored.update({info + index: row for index, row in enumerate(rows)})
        log.roll(START_MS)
        log.flush()

    @staticmethod
    def append(log: Log, batch: bytes) -> int:
        data = memoryview(bytearray(batch))
        return log.append_as_leader(data, leader_epoch=0, now_ms=START_MS, internal=True).first_offset

    def check(self, log: Log) -> None:
        last = {key: (offset, value) for offset, (key, value) in self.stored.items()}
        aborted = {entry.first_offset for entry in log.aborted_transactions(0, log.log_end_offset)}
        found = {}
        for record in records(log):
            if record.offset in self.stored:
                assert self.stored[record.offset] == (record.key, record.value)
                found[record.key] = record.offset
            else:
                assert any(first <= record.offset for first in aborted), (
                    "an aborted record is no longer marked as aborted"
                )
        assert found == {key: offset for key, (offset, _) in last.items()}
        entry = log.producers.entries.get(7)
        assert entry is None or entry.last_sequence == self.sequence - 1


def crash_in_mid_clean(seed: int) -> int:
    """Crash at random I/O steps of repeated cleanings, and return the number of crashes."""
    world = World(seed)
    crashes = 0
    log = world.open()
    for _ in range(4):
        world.write(log)
        end_offset = log.log_end_offset
        for attempt in range(1, 1_000):
            # Allow more steps before each crash, so that the cleaning eventually completes.
            world.disk.crash_at = world.disk.steps + world.random.randint(1, 80 * attempt)
            try:
                reached = clean(log, world.dirs.clean_offsets.get(("t", 0)), START_MS, filesystem=world.disk)
                log.flush()
                world.dirs.clean_offsets["t", 0] = reached
                world.dirs.checkpoint_clean_offsets()
                world.dirs.tick(START_MS)
                world.disk.crash_at = None
                break
            except Crash:
                crashes += 1
            world.disk = world.disk.after_crash()
            while world.random.random() < 0.3:
                world.disk.crash_at = world.random.randint(1, 30)
                with contextlib.suppress(Crash):
                    world.open()
                world.disk = world.disk.after_crash()
            log = world.open()
            assert log.log_end_offset == end_offset
            world.check(log)
            names = world.disk.listdir(log.directory)
            assert not [name for name in names if name.endswith((".cleaned", ".swap"))]
        world.check(log)
    return crashes


@pytest.mark.timeout(600)
def test_a_crash_during_cleaning_neither_loses_values_nor_exposes_aborted_records() -> None:
    crashes = 0
    for seed in range(campaign.rounds(15, 500)):
        try:
            crashes += crash_in_mid_clean(seed)
        except BaseException as error:
            error.add_note(f"seed {seed}")
            raise
    assert crashes > campaign.rounds(15, 500)
