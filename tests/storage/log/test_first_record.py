"""The search for the first record at or after an offset: it returns the same record as a scan of all records,
for every offset and every kind of batch, compacted or not.
"""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from kafka_compat.storage.config import LogConfig
from kafka_compat.storage.errors import LogDirFailure
from kafka_compat.storage.log.first_record import first_record_from
from kafka_compat.storage.log.log import Log
from kafka_compat.storage.records.kinds import CompressionType, ControlRecordType
from kafka_compat.storage.records.records import EndTransactionMarker, Record, build_batch, build_marker
from tests.storage.cleaning_support import clean_all, records
from tests.storage.log_support import START_MS, Harness, append, batch
from tests.support.steps import result_of

CODECS = list(CompressionType)


def marker(log: Log, producer_id: int, *, committed: bool) -> None:
    kind = ControlRecordType.COMMIT if committed else ControlRecordType.ABORT
    data = build_marker(
        EndTransactionMarker(kind, 0), producer_id=producer_id, producer_epoch=0, timestamp=START_MS
    )
    log.append_as_leader(memoryview(bytearray(data)), leader_epoch=0, now_ms=START_MS, internal=True)


def write(log: Log, chance: random.Random, count: int) -> None:
    sequences: dict[int, int] = {}
    for _ in range(count):
        some = [
            Record(
                timestamp=START_MS + chance.randrange(100_000),
                key=b"%d" % chance.randrange(30),
                value=bytes(chance.randrange(60)),
            )
            for _ in range(chance.choice([1, 1, 2, 5, 40]))
        ]
        producer_id = chance.choice([-1, -1, 7, 8])
        data = build_batch(
            some,
            compression=chance.choice(CODECS),
            producer_id=producer_id,
            producer_epoch=0 if producer_id >= 0 else -1,
            base_sequence=sequences.get(producer_id, 0) if producer_id >= 0 else -1,
            transactional=producer_id >= 0,
        )
        append(log, memoryview(bytearray(data)))
        if producer_id >= 0:
            sequences[producer_id] = sequences.get(producer_id, 0) + len(some)
            if chance.random() < 0.8:
                marker(log, producer_id, committed=chance.random() < 0.5)


def check(log: Log, end_offset: int) -> None:
    known = [(record.offset, record.timestamp) for record in records(log)]
    assert known
    for offset in range(log.log_end_offset + 2):
        found = result_of(first_record_from(log, offset, end_offset))
        from_offset = max(offset, log.log_start_offset)
        expected = next((each for each in known if from_offset <= each[0] < end_offset), None)
        assert (found and (found.offset, found.timestamp)) == expected, offset


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("kind", ["CreateTime", "LogAppendTime"])
def test_the_first_record_matches_a_full_scan(tmp_path: Path, seed: int, kind: str) -> None:
    chance = random.Random(seed)
    config = LogConfig(
        segment_bytes=2_000,
        index_interval_bytes=150,
        cleanup_policy=frozenset({"compact"}),
        message_timestamp_type=kind,
    )
    harness = Harness(tmp_path, config=config)
    log = harness.log()
    write(log, chance, 60)
    log.roll(START_MS)
    assert log.segment_count > 3
    for _ in range(2):
        check(log, log.log_end_offset)
        check(log, log.log_end_offset // 2)
        removals = log.segments.removals
        for producer_id in (7, 8):
            marker(log, producer_id, committed=True)
        log.roll(START_MS)
        clean_all(log, START_MS + 10**9)
        assert log.segments.removals > removals
    log.advance_log_start_offset(log.log_end_offset // 3)
    check(log, log.log_end_offset)
    harness.crash()
    check(harness.log(), log.log_end_offset)


def test_an_empty_log_has_no_first_record(tmp_path: Path) -> None:
    log = Harness(tmp_path).log()
    assert result_of(first_record_from(log, 0, 0)) is None
    append(
        log,
        memoryview(
            bytearray(
                build_batch(
                    [Record(timestamp=1)],
                    producer_id=7,
                    producer_epoch=0,
                    base_sequence=0,
                    transactional=True,
                )
            )
        ),
    )
    marker(log, 7, committed=False)
    assert result_of(first_record_from(log, 0, 2)) is not None
    assert result_of(first_record_from(log, 1, 2)) is None
    assert result_of(first_record_from(log, 2, 2)) is None


def test_a_closed_log_is_not_a_disk_failure(tmp_path: Path) -> None:
    harness = Harness(tmp_path)
    log = harness.log()
    for _ in range(2):
        append(log, batch(3))
    harness.dirs.delete("t", 0, lambda error: None)
    with pytest.raises(LogDirFailure, match="no longer in"):
        result_of(first_record_from(log, 1, 6))
    assert harness.failed == []
