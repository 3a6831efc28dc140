"""Compaction of a log: it keeps the last value of each key, preserves offsets, and deletes tombstones and
transaction markers once they are due.
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from unittest.mock import patch

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kafka_compat.storage.compaction import batch_cleaner as cleaner
from kafka_compat.storage.compaction import cleaner_job
from kafka_compat.storage.compaction.batch_cleaner import group_segments
from kafka_compat.storage.compaction.cleaner_job import SegmentSource
from kafka_compat.storage.config import LogConfig
from kafka_compat.storage.filesystem import RealFilesystem
from kafka_compat.storage.log import cleaning as log_cleaning
from kafka_compat.storage.log.log import Log
from kafka_compat.storage.records.kinds import CompressionType, ControlRecordType
from kafka_compat.storage.records.records import EndTransactionMarker, Record, build_batch, build_marker
from tests.storage.cleaning_support import batches, clean, clean_all, records
from tests.storage.log_support import START_MS, Harness, append
from tests.support import campaign

DELETE_RETENTION_MS = 1_000
DUE_MS = START_MS + DELETE_RETENTION_MS


def config(**changes: object) -> LogConfig:
    values: dict[str, object] = {
        "cleanup_policy": frozenset({"compact"}),
        "delete_retention_ms": DELETE_RETENTION_MS,
        "index_interval_bytes": 100,
        **changes,
    }
    return LogConfig(**values)  # type: ignore[arg-type]


@pytest.fixture
def harness(tmp_path: Path) -> Harness:
    return Harness(tmp_path / "data", config=config())


Pair = tuple[bytes | None, bytes | None]


def put(
    log: Log,
    *pairs: Pair,
    producer: tuple[int, int] | None = None,
    transactional: bool = False,
    codec: CompressionType = CompressionType.NONE,
) -> None:
    """Append one batch. `producer` is the producer id and the sequence number of the first record."""
    producer_id, sequence = producer or (-1, -1)
    batch = build_batch(
        [Record(timestamp=START_MS, key=key, value=value) for key, value in pairs],
        producer_id=producer_id,
        producer_epoch=0 if producer else -1,
        base_sequence=sequence,
        transactional=transactional,
        compression=codec,
    )
    append(log, memoryview(bytearray(batch)))


def end_transaction(log: Log, producer_id: int, kind: ControlRecordType) -> None:
    marker = EndTransactionMarker(kind, 0)
    batch = build_marker(marker, producer_id=producer_id, producer_epoch=0, timestamp=START_MS)
    log.append_as_leader(memoryview(bytearray(batch)), leader_epoch=0, now_ms=START_MS, internal=True)


def shown(log: Log) -> list[tuple[int, bytes | None, bytes | None]]:
    return [(record.offset, record.key, record.value) for record in records(log)]


def test_kafkas_worked_example_is_cleaned_as_documented(harness: Harness) -> None:
    log = harness.log()
    log.truncate_fully_and_start_at(2)
    for key, value in (
        (b"K3", b"2"),
        (b"K5", b"3"),
        (b"K3", b"4"),
        (b"K3", b"5"),
        (b"K4", b"6"),
        (b"K4", None),
        (b"K5", b"8"),
        (b"K6", b"9"),
    ):
        put(log, (key, value))
    log.roll(START_MS)
    clean(log, None, START_MS)
    kept = [(5, b"K3", b"5"), (7, b"K4", None), (8, b"K5", b"8"), (9, b"K6", b"9")]
    assert shown(log) == kept
    clean_all(log, DUE_MS - 1)
    assert shown(log) == kept
    clean_all(log, DUE_MS)
    assert shown(log) == [(5, b"K3", b"5"), (8, b"K5", b"8"), (9, b"K6", b"9")]
    assert log.log_start_offset == 2
    assert log.log_end_offset == 10


def test_the_active_segment_is_not_cleaned(harness: Harness) -> None:
    log = harness.log()
    put(log, (b"k", b"1"))
    put(log, (b"k", b"2"))
    before = list(batches(log))
    assert clean(log, None, START_MS) == 0
    assert list(batches(log)) == before
    log.roll(START_MS)
    put(log, (b"k", b"3"))
    assert clean(log, None, START_MS) == 2
    assert shown(log) == [(1, b"k", b"2"), (2, b"k", b"3")]


def test_a_cleaned_batch_keeps_its_offset_range_and_the_timestamps_of_its_remaining_records(
    harness: Harness,
) -> None:
    log = harness.log()
    rows = [
        Record(timestamp=START_MS + at, key=key, value=b"v", headers=[("h", b"x")])
        for at, key in ((5, b"a"), (7, b"b"), (9, b"a"))
    ]
    for codec in (CompressionType.NONE, CompressionType.GZIP):
        append(log, memoryview(bytearray(build_batch(rows, compression=codec))))
    put(log, (b"b", b"new"))
    log.roll(START_MS)
    clean(log, None, START_MS)
    ((header, _), (last, _)) = batches(log)
    assert (header.base_offset, header.last_offset, header.record_count) == (3, 5, 1)
    assert header.compression is CompressionType.GZIP
    assert header.max_timestamp == START_MS + 9
    assert records(log)[0] == Record(5, START_MS + 9, b"a", b"v", [("h", b"x")])
    assert last.base_offset == 6
    log.segments.all[0].rebuild_indexes()


def test_a_delete_horizon_changes_the_base_timestamp_but_not_record_timestamps(harness: Harness) -> None:
    log = harness.log()
    put(log, (b"a", None), (b"b", b"v"))
    log.roll(START_MS)
    clean(log, None, START_MS)
    ((header, _),) = batches(log)
    assert header.delete_horizon_ms == DUE_MS
    assert [record.timestamp for record in records(log)] == [START_MS, START_MS]
    clean_all(log, START_MS + 500)
    ((header, _),) = batches(log)
    assert header.delete_horizon_ms == DUE_MS, "the delete horizon must be set by the first cleaning"


def test_the_last_batch_of_each_producer_is_kept_even_if_empty(harness: Harness) -> None:
    log = harness.log()
    put(log, (b"k", b"1"), producer=(7, 0))
    put(log, (b"k", b"2"), (b"k", b"3"), producer=(7, 1))
    put(log, (b"k", b"4"), producer=(8, 0))
    put(log, (b"k", b"5"))
    log.roll(START_MS)
    clean(log, None, START_MS)
    assert shown(log) == [(4, b"k", b"5")]
    empty = [header for header, _ in batches(log) if not header.record_count]
    assert [(h.producer_id, h.base_offset, h.last_offset, h.last_sequence) for h in empty] == [
        (7, 1, 2, 2),
        (8, 3, 3, 0),
    ]
    # Recovery rebuilds the sequence numbers from the remaining batches, even without snapshots.
    for snapshot in Path(log.directory).glob("*.snapshot"):
        snapshot.unlink()
    harness.crash()
    log = harness.log()
    assert log.producers.entries[7].last_sequence == 2
    # The empty batch is deleted once the producer has written a later one.
    put(log, (b"k", b"6"), producer=(7, 3))
    log.roll(START_MS)
    clean_all(log, START_MS)
    assert [(header.base_offset, header.record_count) for header, _ in batches(log)] == [(3, 0), (5, 1)]


def test_aborted_records_are_deleted_before_their_marker(harness: Harness) -> None:
    log = harness.log()
    put(log, (b"k", b"0"))
    put(log, (b"k", b"aborted"), producer=(7, 0), transactional=True)
    end_transaction(log, 7, ControlRecordType.ABORT)
    put(log, (b"k", b"other"), producer=(7, 1), transactional=True)
    end_transaction(log, 7, ControlRecordType.COMMIT)
    put(log, (b"x", b"5"))
    log.roll(START_MS)
    clean(log, None, START_MS)
    assert shown(log) == [(3, b"k", b"other"), (5, b"x", b"5")]
    assert [(a.producer_id, a.first_offset) for a in log.aborted_transactions(0, 6)] == [(7, 1)]
    clean_all(log, START_MS)
    assert log.aborted_transactions(0, 6) == []
    assert [header.base_offset for header, _ in batches(log)] == [2, 3, 4, 5]
    clean_all(log, DUE_MS)
    assert [header.base_offset for header, _ in batches(log)] == [3, 4, 5]


def test_the_cleaner_stops_before_an_open_transaction(harness: Harness) -> None:
    log = harness.log()
    put(log, (b"k", b"0"))
    put(log, (b"k", b"1"))
    log.roll(START_MS)
    put(log, (b"k", b"open"), producer=(7, 0), transactional=True)
    log.roll(START_MS)
    put(log, (b"k", b"3"))
    log.roll(START_MS)
    assert clean(log, None, START_MS) == 2
    assert shown(log) == [(1, b"k", b"1"), (2, b"k", b"open"), (3, b"k", b"3")]


@pytest.mark.parametrize("flags_max", [1, cleaner.FLAGS_MAX])
def test_records_without_a_key_are_deleted(tmp_path: Path, flags_max: int) -> None:
    # A log contains such records if the topic was not compacted when they were written.
    harness = Harness(tmp_path, config=config(cleanup_policy=frozenset({"delete"})))
    log = harness.log()
    put(log, (None, b"0"), (b"a", b"1"), (None, None), (b"b", None))
    put(log, (None, b"4"), (None, b"5"))
    log.roll(START_MS)
    with patch.object(cleaner, "FLAGS_MAX", flags_max):
        clean(log, None, START_MS)
    assert shown(log) == [(1, b"a", b"1"), (3, b"b", None)]
    put(log, (b"", b"6"), (None, b"7"))
    log.roll(START_MS)
    clean(log, 6, DUE_MS)
    assert shown(log) == [(1, b"a", b"1"), (6, b"", b"6")]


def test_min_and_max_compaction_lag_determine_when_a_log_is_cleaned(harness: Harness) -> None:
    log = harness.log()
    put(log, (b"k", b"0"))
    log.roll(START_MS)
    put(log, (b"k", b"1"))
    log.update_config(config(min_compaction_lag_ms=100))
    assert not log_cleaning.find_dirty_part(log, None, 2, START_MS + 99).dirty_bytes
    assert log_cleaning.find_dirty_part(log, None, 2, START_MS + 100).upper_bound == 1
    log.update_config(config(max_compaction_lag_ms=100, min_cleanable_dirty_ratio=1.0))
    assert not log_cleaning.is_due(log, log_cleaning.find_dirty_part(log, None, 2, START_MS + 100))
    assert log_cleaning.is_due(log, log_cleaning.find_dirty_part(log, None, 2, START_MS + 101))
    # The maximum compaction lag rolls the active segment, long before segment.ms does.
    harness.clock.ms = START_MS + 102
    assert log.roll_if_due(START_MS + 102)


def test_the_dirty_ratio_determines_when_a_log_is_cleaned(harness: Harness) -> None:
    log = harness.log()
    for round_number in range(4):
        put(log, (b"k%d" % round_number, b"v" * 100))
        log.roll(START_MS)
    dirty = log_cleaning.find_dirty_part(log, 3, 4, START_MS)
    assert dirty.ratio == pytest.approx(0.25)
    log.update_config(config(min_cleanable_dirty_ratio=0.26))
    assert not log_cleaning.is_due(log, dirty)
    log.update_config(config(min_cleanable_dirty_ratio=0.24))
    assert log_cleaning.is_due(log, dirty)
    log.update_config(config(min_cleanable_dirty_ratio=0.24, cleanup_policy=frozenset({"delete"})))
    assert not log_cleaning.is_due(log, dirty)


def test_readers_keep_the_old_file_after_a_segment_is_replaced(harness: Harness) -> None:
    log = harness.log()
    put(log, (b"k", b"0"))
    put(log, (b"k", b"1"))
    log.roll(START_MS)
    put(log, (b"k", b"2"))
    held = log.read(0, 1_000)
    assert held is not None
    before = held.read()
    clean(log, None, START_MS)
    harness.dirs.tick(START_MS + log.config.file_delete_delay_ms)
    assert held.read() == before


def test_a_segment_that_retention_deletes_during_cleaning_is_not_replaced(harness: Harness) -> None:
    log = harness.log()
    for number in range(3):
        put(log, (b"k", b"%d" % number))
        log.roll(START_MS)
    dirty = log_cleaning.find_dirty_part(log, None, 3, START_MS)
    job = log_cleaning.new_job(
        log, dirty, now_ms=START_MS, dedupe_buffer_bytes=1 << 20, load_factor=0.9, io_bytes_per_s=1e12
    )
    group = next(iter(cleaner_job.run(job, RealFilesystem(), lambda size_bytes: None)))
    assert isinstance(group, cleaner_job.CleanedGroup)
    log.advance_log_start_offset(1)
    log.apply_retention(START_MS, 3)
    before = list(batches(log))
    assert not log_cleaning.swap(log, job, group)
    log_cleaning.discard(log)
    assert list(batches(log)) == before
    assert not list(Path(log.directory).glob("*.cleaned"))


def test_records_appended_after_a_truncation_are_dirty(harness: Harness) -> None:
    log = harness.log()
    for number in range(6):
        put(log, (b"k%d" % number, b"old"))
        log.roll(START_MS)
    offsets = harness.dirs.clean_offsets
    offsets["t", 0] = clean(log, None, START_MS)
    harness.dirs.checkpoint_clean_offsets()
    assert offsets["t", 0] == 6
    log.truncate_to(6)
    assert offsets["t", 0] == 6
    log.truncate_to(3)
    harness.crash()
    log = harness.log()
    assert harness.dirs.clean_offsets["t", 0] <= 3
    for number in (3, 3, 3, 4):
        put(log, (b"k%d" % number, b"new"))
        log.roll(START_MS)
    assert clean(log, harness.dirs.clean_offsets["t", 0], START_MS) == 7
    assert [(record.key, record.value) for record in records(log)] == [
        *((b"k%d" % number, b"old") for number in range(3)),
        (b"k3", b"new"),
        (b"k4", b"new"),
    ]


def test_deleting_a_log_removes_its_clean_offset(harness: Harness) -> None:
    put(harness.log(), (b"k", b"v"))
    harness.dirs.clean_offsets["t", 0] = 1
    harness.dirs.checkpoint_clean_offsets()
    harness.dirs.delete("t", 0)
    harness.log()
    assert ("t", 0) not in harness.dirs.clean_offsets
    harness.dirs.checkpoint_clean_offsets()
    harness.crash()
    harness.log()
    assert ("t", 0) not in harness.dirs.clean_offsets


def test_segments_are_cleaned_in_groups_within_the_size_and_offset_limits() -> None:
    def source(base: int, end: int, size: int, index: int = 0) -> SegmentSource:
        return SegmentSource(base, end, size, index, 0, 0)

    def grouped(*sources: SegmentSource) -> list[list[int]]:
        return [[item.base_offset for item in group] for group in group_segments(sources, 100, 50)]

    assert grouped(source(0, 5, 40), source(5, 9, 60), source(9, 10, 1)) == [[0, 5], [9]]
    assert grouped(source(0, 5, 200), source(5, 9, 60)) == [[0], [5]]
    assert grouped(source(0, 5, 1, 30), source(5, 9, 1, 30)) == [[0], [5]]
    assert grouped(source(0, 5, 1), source(5, 2**31 + 2, 1)) == [[0], [5]]


KEYS = st.sampled_from([b"a", b"b", b"c", b"", b"a key beyond the 32 bytes that are kept as they are"])
ROWS = st.lists(st.tuples(KEYS, st.none() | st.binary(max_size=5)), min_size=1, max_size=4)
PLAIN = st.tuples(st.just("plain"), ROWS, st.sampled_from([0, 1, 2]))
TXN = st.tuples(st.sampled_from(["commit", "abort"]), ROWS, st.just(0))
ROLL = st.just(("roll", list[Pair](), 0))
HISTORIES = st.lists(PLAIN | TXN | ROLL, min_size=1, max_size=25)


def _write(
    log: Log, history: list[tuple[str, list[Pair], int]], codec: CompressionType
) -> list[tuple[int, bytes, bytes | None]]:
    """Append all records, and return the committed ones as (offset, key, value)."""
    committed = []
    sequences = {1: 0, 2: 0, 9: 0}
    for kind, rows, number in history:
        start = log.log_end_offset
        if kind == "roll":
            if log.segments.active.size_bytes:
                log.roll(START_MS)
            continue
        producer_id = number or (9 if kind != "plain" else 0)
        producer = (producer_id, sequences[producer_id]) if producer_id else None
        put(log, *rows, producer=producer, transactional=kind != "plain", codec=codec)
        if producer_id:
            sequences[producer_id] += len(rows)
        if kind != "plain":
            end_transaction(log, 9, ControlRecordType.COMMIT if kind == "commit" else ControlRecordType.ABORT)
        if kind != "abort":
            committed += [(start + index, key or b"", value) for index, (key, value) in enumerate(rows)]
    if log.segments.active.size_bytes:
        log.roll(START_MS)
    return committed


@settings(deadline=None, max_examples=campaign.rounds(40, 300))
@given(
    HISTORIES,
    st.sampled_from([1, 700, 1 << 20]),
    st.sampled_from([500, 1_000, 1 << 20]),
    st.sampled_from([1, 3, cleaner.FLAGS_MAX]),
    st.sampled_from([CompressionType.NONE, CompressionType.LZ4]),
)
def test_the_last_value_of_each_key_keeps_its_offset(
    history: list[tuple[str, list[Pair], int]],
    dedupe_buffer_bytes: int,
    segment_bytes: int,
    flags_max: int,
    codec: CompressionType,
) -> None:
    with tempfile.TemporaryDirectory() as directory, patch.object(cleaner, "FLAGS_MAX", flags_max):
        harness = Harness(directory, config=config(segment_bytes=segment_bytes))
        log = harness.log()
        committed = _write(log, history, codec)
        end_offset, sequences = log.log_end_offset, _sequences(log)
        last = {key: (offset, key, value) for offset, key, value in committed}

        clean_all(log, START_MS, dedupe_buffer_bytes=dedupe_buffer_bytes)
        assert shown(log) == sorted(last.values())
        clean_all(log, START_MS)
        settled = list(batches(log))
        clean_all(log, START_MS)
        assert list(batches(log)) == settled, "found dirty bytes in a clean log"

        clean_all(log, DUE_MS, dedupe_buffer_bytes=dedupe_buffer_bytes)
        assert shown(log) == sorted(row for row in last.values() if row[2] is not None)
        after = list(batches(log))
        assert (log.log_end_offset, _sequences(log)) == (end_offset, sequences)

        harness.dirs.clean_offsets["t", 0] = end_offset
        harness.dirs.checkpoint_clean_offsets()
        harness.crash()
        log = harness.log()
        assert list(batches(log)) == after
        assert (log.log_end_offset, _sequences(log)) == (end_offset, sequences)
        assert harness.report.truncated == {}
        harness.dirs.close()


def _sequences(log: Log) -> dict[int, int]:
    return {number: entry.last_sequence for number, entry in log.producers.entries.items()}
