"""Transaction indexes whose files are damaged, missing or unreadable: no record is lost or misread."""

from __future__ import annotations

import errno
import logging
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from kafka_compat.storage.config import LogConfig
from kafka_compat.storage.errors import OutOfResources
from kafka_compat.storage.filesystem import RealFilesystem
from kafka_compat.storage.log.log import Log
from kafka_compat.storage.records.kinds import ControlRecordType
from kafka_compat.storage.records.records import EndTransactionMarker, build_marker
from tests.storage.log_support import START_MS, Harness, append, batch, offsets

SEGMENT_BYTES = 1_000


def abort(log: Log, producer_id: int = 8) -> None:
    marker = EndTransactionMarker(ControlRecordType.ABORT, coordinator_epoch=0)
    content = build_marker(marker, producer_id=producer_id, producer_epoch=0, timestamp=START_MS)
    log.append_as_leader(memoryview(content), leader_epoch=0, now_ms=START_MS, internal=True)


def aborted_transaction(log: Log, producer_id: int = 8, sequence: int = 0) -> None:
    append(log, batch(2, producer_id=producer_id, sequence=sequence, transactional=True))
    abort(log, producer_id)


def whole(log: Log) -> list[int]:
    """Return the base offsets of all batches, segment by segment."""
    found: list[int] = []
    offset = log.log_start_offset
    while offset < log.log_end_offset:
        part = offsets(log, offset)
        if not part:
            break
        found += part
        offset = part[-1] + 1 if part[-1] >= offset else offset + 1
        offset = max(offset, next((base for base in log.segments.base_offsets if base > part[-1]), offset))
    return found


def append_abc(path: Path) -> None:
    path.write_bytes(path.read_bytes() + b"abc")


def in_wrong_order(path: Path) -> None:
    path.write_bytes(path.read_bytes() * 2)


@pytest.fixture
def harness(tmp_path: Path) -> Harness:
    return Harness(tmp_path, config=LogConfig(segment_bytes=SEGMENT_BYTES))


@pytest.mark.parametrize("damage", [append_abc, in_wrong_order])
@pytest.mark.parametrize("stop", ["clean", "kill"])
def test_records_after_a_marker_survive_when_the_index_was_damaged(
    harness: Harness, tmp_path: Path, damage: Callable[[Path], None], stop: str
) -> None:
    aborted_transaction(harness.log())
    harness.dirs.close()
    damage(tmp_path / "t-0" / "00000000000000000000.txnindex")
    log = harness.reopen().logs["t", 0]
    aborted_transaction(log, sequence=2)
    append(log, batch(1))
    append(log, batch(1))
    log.flush()
    if stop == "clean":
        harness.dirs.close()
        log = harness.reopen().logs["t", 0]
    else:
        harness.crash()
        log = harness.dirs.logs["t", 0]
    assert log.log_end_offset == 8
    assert whole(log) == [0, 2, 3, 5, 6, 7]
    assert log.aborted_transactions(0, 8) == [(8, 0), (8, 3)]


def test_a_fetch_finds_the_aborted_transactions_of_a_damaged_index(
    harness: Harness, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    aborted_transaction(harness.log())
    harness.dirs.close()
    path = tmp_path / "t-0" / "00000000000000000000.txnindex"
    intact = path.read_bytes()
    append_abc(path)
    log = harness.reopen().logs["t", 0]
    with caplog.at_level(logging.WARNING):
        assert log.aborted_transactions(0, 3) == [(8, 0)]
        assert log.aborted_transactions(0, 3) == [(8, 0)]
    assert caplog.messages == [
        f"Rebuilding the transaction index of {path.with_suffix('.log')}: "
        "a transaction index of 37 bytes ends inside an entry"
    ]
    assert path.read_bytes() == intact


@pytest.mark.parametrize("stop", ["clean", "kill"])
def test_all_indexes_are_rebuilt_if_an_operator_removed_them(
    harness: Harness, tmp_path: Path, stop: str
) -> None:
    log = harness.log()
    append(log, batch(1, producer_id=8, sequence=0, transactional=True))
    for _ in range(30):
        append(log, batch(1, size_bytes=60))
    abort(log)
    for _ in range(30):
        append(log, batch(1, size_bytes=60))
    assert log.segment_count > 3
    expected = log.aborted_transactions(0, log.log_end_offset)
    assert expected == [(8, 0)]
    log.flush()
    if stop == "clean":
        harness.dirs.close()
    else:
        harness.dirs.checkpoint_recovery_points()
        harness.dirs.unlock()
    removed = [
        path for suffix in ("index", "timeindex", "txnindex") for path in tmp_path.glob(f"t-0/*.{suffix}")
    ]
    assert removed
    for path in removed:
        path.unlink()
    log = harness.reopen().logs["t", 0]
    assert log.aborted_transactions(0, log.log_end_offset) == expected
    assert log.log_end_offset == 62


class ShortOfMemory(RealFilesystem):
    """A file system whose reads of transaction indexes fail while `fails` is true."""

    fails = False

    def read_file(self, path: str) -> bytes:
        if self.fails and path.endswith(".txnindex"):
            raise OSError(errno.ENOMEM, "Cannot allocate memory")
        return super().read_file(path)


@pytest.fixture
def short_of_memory(tmp_path: Path) -> Iterator[Harness]:
    harness = Harness(tmp_path, filesystem=ShortOfMemory())
    yield harness
    harness.dirs.close()


def test_a_marker_is_not_written_while_its_index_cannot_be_read(short_of_memory: Harness) -> None:
    harness = short_of_memory
    aborted_transaction(harness.log())
    harness.dirs.close()
    log = harness.reopen().logs["t", 0]
    append(log, batch(2, producer_id=8, sequence=2, transactional=True))
    assert isinstance(harness.filesystem, ShortOfMemory)
    harness.filesystem.fails = True
    with pytest.raises(OutOfResources):
        abort(log)
    assert log.log_end_offset == 5
    harness.filesystem.fails = False
    abort(log)
    append(log, batch(1))
    harness.crash()
    log = harness.dirs.logs["t", 0]
    assert whole(log) == [0, 2, 3, 5, 6]
    assert log.aborted_transactions(0, 7) == [(8, 0), (8, 3)]


def test_a_log_is_truncated_although_its_transaction_index_is_damaged(
    harness: Harness, tmp_path: Path
) -> None:
    log = harness.log()
    aborted_transaction(log)
    aborted_transaction(log, sequence=2)
    harness.dirs.close()
    append_abc(tmp_path / "t-0" / "00000000000000000000.txnindex")
    log = harness.reopen().logs["t", 0]
    log.truncate_to(4)
    assert log.log_end_offset == 3
    assert log.aborted_transactions(0, 3) == [(8, 0)]


def test_a_damaged_producer_snapshot_does_not_prevent_the_repair(harness: Harness, tmp_path: Path) -> None:
    log = harness.log()
    aborted_transaction(log)
    for _ in range(30):
        append(log, batch(1, size_bytes=60))
    harness.dirs.close()
    for path in tmp_path.glob("t-0/*.*index"):
        path.unlink()
    for path in tmp_path.glob("t-0/*.snapshot"):
        path.write_bytes(b"damaged")
    log = harness.reopen().logs["t", 0]
    assert log.aborted_transactions(0, log.log_end_offset) == [(8, 0)]
    assert log.producers.entries.keys() == {8}
