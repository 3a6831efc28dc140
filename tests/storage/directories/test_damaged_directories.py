"""Startup with files in a log directory that other software has damaged, renamed or added."""

from __future__ import annotations

from pathlib import Path

import pytest

from kafka_compat.storage.config import LogConfig
from kafka_compat.storage.directories import checkpoints
from tests.storage.log_support import Harness, append, batch, offsets


@pytest.fixture(params=["stopped", "killed"])
def stop(request: pytest.FixtureRequest) -> str:
    """How the broker ended before its files were changed."""
    return str(request.param)


def _stop(harness: Harness, how: str) -> None:
    for log in harness.dirs.logs.values():
        log.flush()
    harness.dirs.checkpoint_recovery_points()
    if how == "stopped":
        harness.dirs.close({("t", 0): harness.log().log_end_offset})
    else:
        harness.dirs.unlock()


@pytest.mark.parametrize("name", checkpoints.OFFSETS)
def test_a_checkpoint_with_a_number_beyond_64_bits_is_ignored(
    tmp_path: Path, stop: str, name: str, caplog: pytest.LogCaptureFixture
) -> None:
    """As in Apache Kafka: such a log start offset must not delete the records."""
    harness = Harness(tmp_path)
    for _ in range(5):
        append(harness.log(), batch())
    _stop(harness, stop)
    (tmp_path / name).write_text("0\n1\nt 0 99999999999999999999999\n")
    harness.reopen()
    assert name in caplog.text and "99999999999999999999999 is not a number" in caplog.text
    assert offsets(harness.log(), 0) == [0, 1, 2, 3, 4]
    assert append(harness.log(), batch()).first_offset == 5


def test_a_log_start_offset_above_the_log_end_empties_the_log(tmp_path: Path, stop: str) -> None:
    """As in Apache Kafka."""
    harness = Harness(tmp_path)
    append(harness.log(), batch(5))
    _stop(harness, stop)
    (tmp_path / checkpoints.LOG_START_OFFSETS).write_text("0\n1\nt 0 70\n")
    harness.reopen()
    log = harness.log()
    assert (log.log_start_offset, log.log_end_offset) == (70, 70)
    assert append(log, batch()).first_offset == 70


def test_a_negative_log_start_offset_counts_as_0(tmp_path: Path, stop: str) -> None:
    harness = Harness(tmp_path)
    append(harness.log(), batch(5))
    harness.log("empty")
    _stop(harness, stop)
    (tmp_path / "empty-0" / f"{0:020d}.log").unlink()
    (tmp_path / checkpoints.LOG_START_OFFSETS).write_text("0\n2\nt 0 -7\nempty 0 -7\n")
    harness.reopen()
    assert harness.log().log_start_offset == 0
    assert harness.log("empty").log_start_offset == 0
    assert append(harness.log("empty"), batch()).first_offset == 0


BATCH_BYTES = 1000
PER_SEGMENT = 4


def _three_segments(tmp_path: Path) -> Harness:
    """Return logs in which the segments of t-0 begin at the offsets 0, 4 and 8. The log ends at 12."""
    size_bytes = len(batch(size_bytes=BATCH_BYTES))
    harness = Harness(
        tmp_path, config=LogConfig(segment_bytes=PER_SEGMENT * size_bytes, index_interval_bytes=1)
    )
    for _ in range(3 * PER_SEGMENT):
        append(harness.log(), batch(size_bytes=BATCH_BYTES))
    append(harness.log("other"), batch())
    return harness


def _check_complete(harness: Harness) -> None:
    """Check that all records exist, and that new records survive a kill."""
    assert _all_offsets(harness) == list(range(12))
    assert append(harness.log(), batch()).first_offset == 12
    harness.log().flush()
    harness.dirs.checkpoint_recovery_points()
    harness.crash()
    assert _all_offsets(harness) == list(range(13))
    assert offsets(harness.log("other"), 0) == [0]


def _all_offsets(harness: Harness) -> list[int]:
    log = harness.log()
    found: list[int] = []
    next_offset = log.log_start_offset
    while part := offsets(log, next_offset):
        found += part
        next_offset = part[-1] + 1
    assert next_offset == log.log_end_offset
    return found


@pytest.mark.parametrize(
    "names",
    [
        ["5.log"],
        ["foo.log"],
        ["5.log.swap"],
        ["foo.log.swap", f"{0:020d}.log.cleaned"],
        [f"{10**20 - 1}.log"],
        [f"{2**63 - 1:020d}.log"],
        ["5.snapshot"],
    ],
)
def test_a_file_that_no_segment_can_be_is_ignored(
    tmp_path: Path, stop: str, names: list[str], caplog: pytest.LogCaptureFixture
) -> None:
    harness = _three_segments(tmp_path)
    _stop(harness, stop)
    for name in names:
        (tmp_path / "t-0" / name).write_bytes(b"x")
    harness.reopen()
    if not names[0].endswith("snapshot"):
        assert f"Ignored {tmp_path}/t-0/{names[0]}: the name of a segment is the offset" in caplog.text
    assert (tmp_path / "t-0" / names[0]).read_bytes() == b"x"
    _check_complete(harness)


def test_a_directory_with_the_name_of_a_segment_is_ignored(
    tmp_path: Path, stop: str, caplog: pytest.LogCaptureFixture
) -> None:
    harness = _three_segments(tmp_path)
    _stop(harness, stop)
    (tmp_path / "t-0" / f"{30:020d}.log").mkdir()
    harness.reopen()
    assert f"Ignored {tmp_path}/t-0/{30:020d}.log: it is a directory" in caplog.text
    _check_complete(harness)


@pytest.mark.parametrize(
    ("base", "suffixes"), [(4, [".log"]), (8, [".log"]), (8, [".log", ".index", ".timeindex"])]
)
def test_a_segment_whose_name_is_an_offset_after_its_first_record_is_renamed(
    tmp_path: Path, stop: str, base: int, suffixes: list[str]
) -> None:
    """As in Apache Kafka, which moves the records to a segment with the right name."""
    harness = _three_segments(tmp_path)
    _stop(harness, stop)
    folder = tmp_path / "t-0"
    for suffix in suffixes:
        if (folder / f"{base:020d}{suffix}").exists():
            (folder / f"{base:020d}{suffix}").rename(folder / f"{base + 2:020d}{suffix}")
    harness.reopen()
    assert [start for start, _ in harness.log().segment_starts()] == [0, 4, 8]
    _check_complete(harness)


def test_the_copy_of_a_segment_is_set_aside(tmp_path: Path, stop: str) -> None:
    harness = _three_segments(tmp_path)
    _stop(harness, stop)
    folder = tmp_path / "t-0"
    copied = (folder / f"{4:020d}.log").read_bytes()
    (folder / f"{12:020d}.log").write_bytes(copied)
    harness.reopen()
    assert (folder / f"{12:020d}.log.stray").read_bytes() == copied
    _check_complete(harness)


def test_an_empty_segment_after_a_gap_gets_the_next_records(tmp_path: Path, stop: str) -> None:
    """After a kill, the log ended before the gap, and the next recovery removed what had been appended."""
    harness = _three_segments(tmp_path)
    _stop(harness, stop)
    (tmp_path / "t-0" / f"{100:020d}.log").write_bytes(b"")
    harness.reopen()
    assert append(harness.log(), batch()).first_offset == 100
    harness.log().flush()
    harness.dirs.checkpoint_recovery_points()
    harness.crash()
    assert harness.log().log_end_offset == 101
    assert offsets(harness.log(), 100) == [100]
