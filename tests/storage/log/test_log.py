"""One log: append, read, roll, lookups, retention, truncation, and disk failures."""

from __future__ import annotations

import os
import random
import threading
from pathlib import Path

import pytest

from kafka_compat.storage.config import LogConfig
from kafka_compat.storage.errors import (
    CorruptRecord,
    DiskFull,
    LogDirFailure,
    OffsetOutOfRange,
    RecordListTooLarge,
)
from kafka_compat.storage.records.batch import read_header
from kafka_compat.storage.records.kinds import ControlRecordType
from kafka_compat.storage.records.records import EndTransactionMarker, build_marker
from kafka_compat.testing.simulation.filesystem import SimulatedFilesystem
from tests.storage.log_support import START_MS, Harness, append, batch, offsets
from tests.support.steps import result_of

BATCH_BYTES = len(batch(10))
TEN = LogConfig(segment_bytes=10 * BATCH_BYTES, index_interval_bytes=0)
"""A segment holds ten batches of ten records, and every batch has an index entry."""


def filled(harness: Harness, batches: int) -> None:
    for _ in range(batches):
        append(harness.log(), batch(10))


def test_append_writes_offsets_and_epoch_into_the_given_buffer(tmp_path: Path) -> None:
    log = Harness(tmp_path).log()
    append(log, batch(3), leader_epoch=4)
    data = batch(2)
    info = append(log, data, leader_epoch=5)
    assert (info.first_offset, info.last_offset, info.log_append_time, info.duplicate) == (3, 4, -1, False)
    header = read_header(data)
    assert (header.base_offset, header.partition_leader_epoch) == (3, 5)
    assert log.log_end_offset == 5
    assert log.read(0, 1 << 20).read()[-len(data) :] == bytes(data)  # type: ignore[union-attr]
    assert log.end_offset_for_epoch(4) == (4, 3)
    assert log.leader_epochs.latest_epoch == 5


def test_log_append_time_replaces_the_producers_timestamps(tmp_path: Path) -> None:
    log = Harness(tmp_path, config=LogConfig(message_timestamp_type="LogAppendTime")).log()
    info = append(log, batch(2, timestamps=[5, 6]), now_ms=START_MS + 9)
    assert info.log_append_time == START_MS + 9
    found = result_of(log.offset_for_timestamp(START_MS))
    assert found is not None
    assert (found.timestamp, found.offset) == (START_MS + 9, 0)


def test_a_retry_returns_the_first_offset_and_is_not_stored(tmp_path: Path) -> None:
    harness = Harness(tmp_path)
    log = harness.log()
    append(log, batch(3, producer_id=7, sequence=0))
    append(log, batch(2, producer_id=7, sequence=3))
    info = append(log, batch(2, producer_id=7, sequence=3))
    assert (info.first_offset, info.last_offset, info.duplicate) == (3, 4, True)
    assert log.log_end_offset == 5
    harness.dirs.close()
    harness.reopen()
    assert append(harness.log(), batch(2, producer_id=7, sequence=3)).duplicate
    harness.crash()
    assert append(harness.log(), batch(2, producer_id=7, sequence=3)).duplicate
    assert not append(harness.log(), batch(1, producer_id=7, sequence=5)).duplicate


def test_a_follower_stores_its_leaders_batches_unless_they_are_corrupt(tmp_path: Path) -> None:
    leader = Harness(tmp_path / "leader").log()
    append(leader, batch(3), leader_epoch=1)
    append(leader, batch(2), leader_epoch=2)
    part = leader.read(0, 1 << 20)
    assert part is not None
    content = part.read()
    follower = Harness(tmp_path / "follower").log()
    broken = bytearray(content)
    broken[-1] ^= 1
    with pytest.raises(CorruptRecord):
        follower.append_as_follower(memoryview(broken))
    assert follower.log_end_offset == 0
    info = follower.append_as_follower(memoryview(content))
    assert (info.first_offset, info.last_offset) == (0, 4)
    assert follower.leader_epochs.entries == leader.leader_epochs.entries
    with pytest.raises(CorruptRecord):
        follower.append_as_follower(memoryview(content))


def test_a_batch_larger_than_a_segment_is_rejected(tmp_path: Path) -> None:
    log = Harness(tmp_path, config=LogConfig(segment_bytes=500)).log()
    with pytest.raises(RecordListTooLarge):
        append(log, batch(1, size_bytes=600))
    assert log.log_end_offset == 0


@pytest.mark.parametrize("reopened", [False, True], ids=["tail", "from the index"])
def test_reads_return_whole_batches_within_their_limits(tmp_path: Path, reopened: bool) -> None:
    harness = Harness(tmp_path, config=LogConfig(index_interval_bytes=0))
    filled(harness, 10)
    if reopened:
        harness.dirs.close()
        harness.reopen()
    log = harness.log()
    assert offsets(log, 0) == list(range(0, 100, 10))
    assert offsets(log, 37, 3 * BATCH_BYTES) == [30, 40, 50]
    assert offsets(log, 37, 3 * BATCH_BYTES - 1) == [30, 40]
    assert offsets(log, 37, 1) == [30]
    assert offsets(log, 37, 1, min_one_batch=False) == []
    assert offsets(log, 37, 0, min_one_batch=False) == []
    assert offsets(log, 99) == [90]
    assert offsets(log, 100) == []
    assert offsets(log, 20, upper_bound=50) == [20, 30, 40]
    assert offsets(log, 50, upper_bound=50) == []
    assert offsets(log, 70, upper_bound=50) == []
    for outside in (-1, 101):
        with pytest.raises(OffsetOutOfRange):
            log.read(outside, 100)


@pytest.mark.parametrize("index_interval_bytes", [0, 300, 4096])
def test_every_offset_is_found_whether_indexed_or_not(tmp_path: Path, index_interval_bytes: int) -> None:
    chance = random.Random(1)
    config = LogConfig(index_interval_bytes=index_interval_bytes, segment_bytes=20_000)
    harness = Harness(tmp_path, config=config)
    bases: list[tuple[int, int]] = []
    for _ in range(300):
        info = append(harness.log(), batch(chance.randint(1, 9), size_bytes=chance.randint(0, 90)))
        bases.append((info.first_offset, info.last_offset))
    for _ in range(2):
        log = harness.log()
        for first, last in bases:
            for offset in {first, (first + last) // 2, last}:
                assert offsets(log, offset, 1) == [first]
                assert offsets(log, offset, 1_500)[0] == first
        harness.dirs.close()
        harness.reopen()


def test_offsets_older_than_the_batches_kept_in_memory_are_found(tmp_path: Path) -> None:
    log = Harness(tmp_path).log()
    for _ in range(10_000):
        append(log, batch(1))
    for offset in (0, 1, 4_000, 5_903, 5_904, 5_905, 8_192, 9_999):
        assert offsets(log, offset, 1) == [offset]
    assert len(offsets(log, 9_990)) == 10


def test_reads_continue_in_the_next_segment(tmp_path: Path) -> None:
    harness = Harness(tmp_path, config=TEN)
    filled(harness, 25)
    log = harness.log()
    assert log.segment_count == 3
    found, offset = [], 0
    while part := offsets(log, offset):
        found += part
        offset = part[-1] + 10
    assert found == list(range(0, 250, 10))
    assert offsets(log, 90, upper_bound=100) == [90]
    assert offsets(log, 100, upper_bound=110) == [100]


def test_a_slice_stays_readable_after_its_segment_is_deleted(tmp_path: Path) -> None:
    harness = Harness(tmp_path, config=LogConfig(segment_bytes=5 * BATCH_BYTES, retention_bytes=0))
    filled(harness, 6)
    log = harness.log()
    part = log.read(0, 1 << 20)
    assert part is not None
    before = part.read()
    log.apply_retention(START_MS, log.log_end_offset)
    harness.dirs.tick(START_MS + 60_000)
    assert not list((tmp_path / "t-0").glob("*.deleted"))
    assert part.read() == before
    assert os.pread(part.fd, part.size_bytes, part.position) == before


def test_segments_roll_by_size_and_by_record_timestamps(tmp_path: Path) -> None:
    harness = Harness(tmp_path, config=LogConfig(segment_bytes=4 * BATCH_BYTES, segment_ms=1_000))
    log = harness.log()
    for age_ms in (0, 500, 1_000, 1_001, 1_002):
        append(log, batch(timestamps=[START_MS + age_ms]))
    assert [base for base, _ in log.segment_starts()] == [0, 3]
    filled(harness, 4)
    assert log.segment_count == 3
    # Late records with old timestamps must not roll the log repeatedly.
    for _ in range(5):
        append(log, batch(timestamps=[5]), now_ms=START_MS + 10_000)
    assert log.segment_count <= 4


def test_timestamp_lookups_find_the_first_record_at_or_after_the_timestamp(tmp_path: Path) -> None:
    chance = random.Random(2)
    harness = Harness(tmp_path, config=LogConfig(segment_bytes=3_000, index_interval_bytes=200))
    records: list[tuple[int, int]] = []
    now = START_MS
    for _ in range(150):
        now += chance.randint(0, 20)
        timestamps = [now - chance.randint(0, 200) for _ in range(chance.randint(1, 5))]
        info = append(harness.log(), batch(timestamps=timestamps))
        records += [(timestamp, info.first_offset + index) for index, timestamp in enumerate(timestamps)]
    for _ in range(2):
        log = harness.log()
        assert log.segment_count > 3
        for timestamp in [START_MS - 999, *(record[0] for record in chance.sample(records, 60))]:
            found = result_of(log.offset_for_timestamp(timestamp))
            assert found is not None
            assert (found.timestamp, found.offset) == next(r for r in records if r[0] >= timestamp)
        latest = max(timestamp for timestamp, _ in records)
        assert result_of(log.offset_for_timestamp(latest + 1)) is None
        found = result_of(log.max_timestamp_offset())
        assert found is not None
        assert (found.timestamp, found.offset) == next(r for r in records if r[0] == latest)
        harness.dirs.close()
        harness.reopen()


def test_open_transactions_limit_the_last_stable_offset(tmp_path: Path) -> None:
    harness = Harness(tmp_path, config=LogConfig(segment_bytes=1_000))
    log = harness.log()

    def end(marker: ControlRecordType) -> None:
        content = build_marker(
            EndTransactionMarker(marker, coordinator_epoch=0),
            producer_id=8,
            producer_epoch=0,
            timestamp=START_MS,
        )
        log.append_as_leader(memoryview(content), leader_epoch=0, now_ms=START_MS, internal=True)

    append(log, batch(2))
    append(log, batch(3, producer_id=8, sequence=0, transactional=True))
    append(log, batch(20))
    assert log.last_stable_offset(log.log_end_offset) == 2
    end(ControlRecordType.ABORT)
    assert log.last_stable_offset(log.log_end_offset) == log.log_end_offset
    filled(harness, 20)
    assert log.segment_count > 2
    for stop in ("none", "clean", "kill"):
        if stop == "clean":
            harness.dirs.close()
            harness.reopen()
        elif stop == "kill":
            harness.crash()
        log = harness.log()
        assert log.aborted_transactions(0, log.log_end_offset) == [(8, 2)]
        assert log.aborted_transactions(26, log.log_end_offset) == []


def test_coordinator_batches_are_not_deduplicated(tmp_path: Path) -> None:
    """Kafka gives every offset commit batch the sequence number 0, so none may be treated as a retry."""
    log = Harness(tmp_path).log()
    for number in range(3):
        data = batch(1, producer_id=8, sequence=0, transactional=True)
        info = log.append_as_leader(data, leader_epoch=0, now_ms=START_MS, internal=True)
        assert (info.first_offset, info.duplicate) == (number, False)


def test_retention_renames_files_and_deletes_them_after_the_delay(tmp_path: Path) -> None:
    config = LogConfig(segment_bytes=10 * BATCH_BYTES, retention_ms=1_000, file_delete_delay_ms=5_000)
    harness = Harness(tmp_path, config=config)
    filled(harness, 25)
    log = harness.log()
    now_ms = harness.clock.ms = START_MS + 1_001
    assert log.apply_retention(now_ms, high_watermark=150) == [0]
    assert log.log_start_offset == 100
    with pytest.raises(OffsetOutOfRange):
        log.read(99, 1)
    # If all segments have expired, Kafka rolls the active one and deletes them all.
    assert log.apply_retention(now_ms, high_watermark=250) == [100, 200]
    assert (log.log_start_offset, log.log_end_offset, log.size_bytes) == (250, 250, 0)
    folder = tmp_path / "t-0"
    assert len(list(folder.glob("*.log.deleted"))) == 3
    harness.dirs.tick(now_ms + 4_999)
    assert len(list(folder.glob("*.log.deleted"))) == 3
    harness.dirs.tick(now_ms + 5_000)
    assert sorted(path.name for path in folder.glob("*.log*")) == [f"{250:020d}.log"]
    assert not list(folder.glob("*.deleted"))
    append(log, batch(1))
    assert offsets(log, 250) == [250]


def test_retention_in_steps_deletes_the_same_segments(tmp_path: Path) -> None:
    config = LogConfig(segment_bytes=10 * BATCH_BYTES, retention_ms=1_000)
    harness = Harness(tmp_path, config=config)
    filled(harness, 25)
    log = harness.log()
    now_ms = START_MS + 1_001
    steps = [log.apply_retention(now_ms, high_watermark=250, at_most=2) for _ in range(3)]
    assert steps == [[0, 100], [200], []]
    assert (log.log_start_offset, log.log_end_offset, log.size_bytes) == (250, 250, 0)


def test_deleted_records_stay_hidden_after_a_restart(tmp_path: Path) -> None:
    harness = Harness(tmp_path, config=TEN)
    filled(harness, 25)
    harness.log().advance_log_start_offset(137)
    with pytest.raises(OffsetOutOfRange):
        harness.log().advance_log_start_offset(251)
    assert harness.log().apply_retention(START_MS, 250) == [0]
    harness.dirs.close()
    harness.reopen()
    log = harness.log()
    assert log.log_start_offset == 137
    assert offsets(log, 137, 1) == [130]
    with pytest.raises(OffsetOutOfRange):
        log.read(136, 1)


def test_truncation_removes_records_producer_state_and_epochs(tmp_path: Path) -> None:
    harness = Harness(tmp_path, config=TEN)
    for number in range(25):
        append(harness.log(), batch(10, producer_id=7, sequence=number * 10), leader_epoch=number // 10)
    log = harness.log()
    log.truncate_to(125)
    assert log.log_end_offset == 120, "truncation removes whole batches"
    assert log.leader_epochs.latest_epoch == 1
    assert log.segment_count == 2
    assert not append(log, batch(10, producer_id=7, sequence=120), leader_epoch=9).duplicate
    assert offsets(log, 110) == [110, 120]
    log.truncate_fully_and_start_at(500)
    assert (log.log_start_offset, log.log_end_offset, log.size_bytes) == (500, 500, 0)
    assert append(log, batch(2), leader_epoch=9).first_offset == 500
    harness.crash()
    assert offsets(harness.log(), 500) == [500]


def simulated(config: LogConfig | None = None) -> tuple[SimulatedFilesystem, Harness]:
    disk = SimulatedFilesystem(random.Random(3))
    return disk, Harness("/data", config=config, filesystem=disk)


def test_a_full_disk_does_not_leave_a_partial_batch() -> None:
    disk, harness = simulated()
    log = harness.log()
    append(log, batch(10))
    disk.room_bytes = BATCH_BYTES // 2
    with pytest.raises(DiskFull):
        append(log, batch(10))
    assert log.log_end_offset == 10
    assert disk.file_size("/data/t-0/00000000000000000000.log") == BATCH_BYTES
    assert harness.failed == []
    disk.room_bytes = None
    harness.crash()
    assert harness.report.truncated == {}
    assert offsets(harness.log(), 0) == [0]


def test_appends_continue_when_the_disk_has_space() -> None:
    disk, harness = simulated(LogConfig(segment_bytes=BATCH_BYTES))
    log = harness.log()
    append(log, batch(10))
    disk.room_bytes = 0
    with pytest.raises(DiskFull, match="new segment"):
        append(log, batch(10))
    disk.room_bytes = None
    append(log, batch(10))
    log.flush()
    harness.crash()
    assert offsets(harness.log(), 10) == [10]


def test_a_failed_sync_is_never_retried() -> None:
    disk, harness = simulated()
    log = harness.log()
    append(log, batch(10))
    log.flush()
    append(log, batch(10))
    disk.failing_syncs = True
    with pytest.raises(LogDirFailure):
        log.flush()
    assert log.flushed_end_offset == 10
    disk.failing_syncs = False
    with pytest.raises(LogDirFailure):
        log.flush()
    with pytest.raises(LogDirFailure):
        append(log, batch(10))
    assert log.flushed_end_offset == 10


def test_a_flush_is_due_after_the_flush_interval() -> None:
    _, harness = simulated(LogConfig(flush_ms=100))
    log = harness.log()
    log.flush()
    harness.clock.ms += 1_000
    assert not log.flush_due()
    log.flush()
    append(log, batch())
    assert log.flush_due()
    log.flush()
    append(log, batch())
    assert not log.flush_due()
    harness.clock.ms += 99
    assert not log.flush_due()
    harness.clock.ms += 1
    assert log.flush_due()


def test_flushes_in_a_thread_run_concurrently_with_appends_rolls_and_deletions(tmp_path: Path) -> None:
    config = LogConfig(
        segment_bytes=5 * BATCH_BYTES, retention_bytes=20 * BATCH_BYTES, file_delete_delay_ms=0
    )
    harness = Harness(tmp_path, config=config)
    log = harness.log()
    stop = threading.Event()
    errors: list[Exception] = []

    def flush_until_stopped() -> None:
        while not stop.is_set():
            try:
                log.flush()
            except Exception as error:
                errors.append(error)
                return

    flusher = threading.Thread(target=flush_until_stopped)
    flusher.start()
    for number in range(2_000):
        append(log, batch(10))
        if number % 10 == 0:
            log.apply_retention(START_MS, log.log_end_offset)
            harness.dirs.tick(START_MS)
        if number % 400 == 399:
            log.truncate_to(log.log_end_offset - 70)
    stop.set()
    flusher.join()
    assert errors == []
    log.flush()
    assert log.flushed_end_offset == log.log_end_offset == 2_000 * 10 - 5 * 70
    end_offset = log.log_end_offset
    harness.crash()
    assert harness.report.truncated == {}
    assert harness.log().log_end_offset == end_offset
    assert offsets(harness.log(), end_offset - 1) == [end_offset - 10]
