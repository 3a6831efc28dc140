"""Retries of batches that a producer's state no longer contains: they are found in the log."""

from __future__ import annotations

from pathlib import Path

import pytest

from kafka_compat.storage.config import LogConfig
from kafka_compat.storage.errors import OutOfOrderSequence
from kafka_compat.storage.log import older_batches
from kafka_compat.storage.log.log import AppendInfo, Log
from kafka_compat.storage.records.records import Record, build_batch
from tests.storage.log_support import START_MS, Harness, append, batch

PRODUCER = 7
BATCH_BYTES = len(batch(2))


def send(log: Log, sequence: int, count: int = 2, epoch: int = 0, leader_epoch: int = 1) -> AppendInfo:
    data = build_batch(
        [Record(timestamp=START_MS, value=b"v" * 10)] * count,
        producer_id=PRODUCER,
        producer_epoch=epoch,
        base_sequence=sequence,
    )
    return append(log, memoryview(bytearray(data)), leader_epoch=leader_epoch)


def filled(directory: Path, batches: int, segment_bytes: int = 1 << 20) -> Log:
    """Return a log of an earlier leader, with batches of two records. Every other batch is a producer's."""
    config = LogConfig(segment_bytes=segment_bytes, index_interval_bytes=0)
    log = Harness(directory, config=config).log()
    for number in range(batches):
        send(log, 2 * number, leader_epoch=0)
        append(log, batch(2), leader_epoch=0)
    return log


@pytest.mark.parametrize("segment_bytes", [1 << 20, 3 * BATCH_BYTES], ids=["one segment", "many segments"])
def test_every_stored_batch_is_recognized_as_a_retry(tmp_path: Path, segment_bytes: int) -> None:
    log = filled(tmp_path, 20, segment_bytes)
    end_offset = log.log_end_offset
    for number in range(20):
        info = send(log, 2 * number)
        assert (info.first_offset, info.last_offset, info.duplicate) == (4 * number, 4 * number + 1, True)
    assert log.log_end_offset == end_offset
    assert not send(log, 40).duplicate


@pytest.mark.parametrize(
    ("sequence", "count", "epoch"), [(3, 2, 0), (2, 1, 0), (2, 3, 0), (2, 2, 1), (50, 2, 0)]
)
def test_other_sequences_are_rejected(tmp_path: Path, sequence: int, count: int, epoch: int) -> None:
    log = filled(tmp_path, 20)
    with pytest.raises(OutOfOrderSequence):
        send(log, sequence, count, epoch)


def test_a_batch_of_the_same_leader_epoch_is_rejected_as_in_kafka(tmp_path: Path) -> None:
    log = filled(tmp_path, 20)
    with pytest.raises(OutOfOrderSequence):
        send(log, 2, leader_epoch=0)


def test_the_search_ends_after_a_limited_part_of_the_log(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = filled(tmp_path, 20, 3 * BATCH_BYTES)
    monkeypatch.setattr(older_batches, "SEARCHED_BYTES", 8 * BATCH_BYTES)
    assert send(log, 24).duplicate
    with pytest.raises(OutOfOrderSequence):
        send(log, 2)


def test_records_of_the_new_leader_do_not_shorten_the_search(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = filled(tmp_path, 20, 3 * BATCH_BYTES)
    monkeypatch.setattr(older_batches, "SEARCHED_BYTES", 20 * BATCH_BYTES)
    for number in range(20, 40):
        send(log, 2 * number)
        append(log, batch(2), leader_epoch=1)
    assert send(log, 38).duplicate
    with pytest.raises(OutOfOrderSequence):
        send(log, 40)


def test_a_batch_that_retention_has_removed_is_rejected(tmp_path: Path) -> None:
    log = filled(tmp_path, 20, 3 * BATCH_BYTES)
    log.advance_log_start_offset(40)
    log.apply_retention(START_MS, log.log_end_offset)
    assert send(log, 24).duplicate
    with pytest.raises(OutOfOrderSequence):
        send(log, 2)
