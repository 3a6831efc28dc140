"""Startup with files in a log directory that other software has damaged, renamed or added."""

from __future__ import annotations

from pathlib import Path

import pytest

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
