"""Two logs that share segment files: a change to one log does not affect the contents of the other."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from uuid import UUID

import pytest

from kafka_compat.storage.config import LogConfig
from kafka_compat.storage.log.fork import COPIED_BYTES_MAX
from kafka_compat.storage.log.log import Log
from tests.storage.log_support import START_MS, Harness, append, batch

FORK_ID = UUID("0b1e2d3c-7dec-41d0-a765-00a0c91e6bf6")
CONFIG = LogConfig(segment_bytes=4096, index_interval_bytes=200, file_delete_delay_ms=0)
SEGMENTS = 6
SOURCE, FORK = ("t", 0), ("u", 0)


def filled(harness: Harness) -> Log:
    """Create a log with several closed segments and an idempotent producer's batches."""
    log = harness.log()
    for number in range(SEGMENTS * 6):
        append(log, batch(3, size_bytes=200, producer_id=7, sequence=number * 3), leader_epoch=number // 10)
    assert len(log.segments.all) >= SEGMENTS
    return log


def content(log: Log) -> bytes:
    found, offset = b"", log.log_start_offset
    while offset < log.log_end_offset:
        part = log.read(offset, 1 << 30)
        assert part is not None
        data = part.read()
        found += data
        offset = (
            log.segments.base_offsets[log.segments.number_of(offset) :][1:2][0]
            if (log.segments.number_of(offset) + 1 < len(log.segments.all))
            else log.log_end_offset
        )
    return found


def files(log: Log) -> dict[str, bytes]:
    return {
        path.name: path.read_bytes() for path in Path(log.directory).iterdir() if path.suffix != ".metadata"
    }


def links(log: Log) -> list[int]:
    """Return the link count of each segment's log file."""
    return [os.stat(segment.path(".log")).st_nlink for segment in log.segments.all]


def test_a_fork_shares_closed_segments_and_has_the_same_records(tmp_path: Path) -> None:
    harness = Harness(tmp_path, config=CONFIG)
    log = filled(harness)
    fork = harness.dirs.fork(SOURCE, FORK, FORK_ID)
    assert links(fork) == [2] * (len(log.segments.all) - 1) + [1, 1]
    assert content(fork) == content(log)
    assert (fork.log_start_offset, fork.log_end_offset) == (log.log_start_offset, log.log_end_offset)
    assert fork.leader_epochs.entries == log.leader_epochs.entries
    assert fork.topic_id == FORK_ID != log.topic_id
    harness.crash()
    assert content(harness.dirs.logs[FORK]) == content(harness.dirs.logs[SOURCE])
    assert not harness.report.truncated


@pytest.mark.parametrize("killed", [False, True])
def test_sequences_restart_in_a_fork_and_producer_epochs_are_kept(tmp_path: Path, killed: bool) -> None:
    harness = Harness(tmp_path, config=CONFIG)
    filled(harness)
    harness.dirs.fork(SOURCE, FORK, FORK_ID)
    if killed:
        harness.crash()
    log, fork = harness.dirs.logs[SOURCE], harness.dirs.logs[FORK]
    assert not append(fork, batch(3, producer_id=7, sequence=0)).duplicate
    assert append(log, batch(3, producer_id=7, sequence=(SEGMENTS * 6 - 1) * 3)).duplicate
    if killed:
        harness.crash()
    fork = harness.dirs.logs[FORK]
    assert append(fork, batch(3, producer_id=7, sequence=0)).duplicate
    assert not append(fork, batch(3, producer_id=7, sequence=3)).duplicate


def test_a_large_active_segment_is_rolled_before_the_fork(tmp_path: Path) -> None:
    harness = Harness(tmp_path)
    log = harness.log()
    append(log, batch(1, size_bytes=COPIED_BYTES_MAX))
    fork = harness.dirs.fork(SOURCE, FORK, FORK_ID)
    assert links(log) == links(fork) == [2, 1]


def write(log: Log) -> None:
    for number in range(40):
        append(log, batch(1, size_bytes=300, timestamps=[START_MS + number]))


def truncate(log: Log) -> None:
    """Truncate inside a closed segment, which then becomes the active one."""
    log.truncate_to(log.segments.base_offsets[2] + 4)
    write(log)


def truncate_all(log: Log) -> None:
    log.truncate_fully_and_start_at(3)
    write(log)


def delete(log: Log) -> None:
    log.advance_log_start_offset(log.segments.base_offsets[3])
    log.apply_retention(START_MS, log.log_end_offset)


def make_indexes_anew(log: Log) -> None:
    for segment in log.segments.all:
        segment.index_interval_bytes = 1
        segment.rebuild_indexes()


@pytest.mark.parametrize("change", [write, truncate, truncate_all, delete, make_indexes_anew])
@pytest.mark.parametrize("side", [SOURCE, FORK])
def test_changes_to_a_log_and_to_its_fork_do_not_affect_each_other(
    tmp_path: Path, change: Callable[[Log], None], side: tuple[str, int]
) -> None:
    harness = Harness(tmp_path, config=CONFIG)
    filled(harness)
    harness.dirs.fork(SOURCE, FORK, FORK_ID)
    other = harness.dirs.logs[FORK if side == SOURCE else SOURCE]
    before, held = files(other), content(other)
    changed = harness.dirs.logs[side]
    change(changed)
    now = content(changed)
    assert files(other) == before
    harness.crash()
    assert content(harness.dirs.logs[side]) == now
    assert content(harness.dirs.logs[other.topic, 0]) == held
    harness.dirs.delete(*side)
    harness.dirs.tick(START_MS)
    assert content(harness.dirs.logs[other.topic, 0]) == held


@pytest.mark.parametrize("torn", [SOURCE, FORK])
def test_truncating_a_shared_segment_in_recovery_does_not_affect_the_other_log(
    tmp_path: Path, torn: tuple[str, int]
) -> None:
    harness = Harness(tmp_path, config=CONFIG)
    filled(harness)
    harness.dirs.fork(SOURCE, FORK, FORK_ID)
    whole = harness.dirs.logs[SOURCE if torn == FORK else FORK]
    before = content(whole)
    # The fourth segment loses its last bytes, so recovery deletes all later segments.
    segment = harness.dirs.logs[torn].segments.all[3]
    path = Path(segment.path(".log"))
    bytes_of_it = path.read_bytes()
    path.unlink()
    path.write_bytes(bytes_of_it[:-7])
    harness.crash()
    assert harness.report.truncated.keys() == {torn}
    cut = harness.dirs.logs[torn]
    assert content(cut) == before[: len(content(cut))]
    # Truncation makes a shared segment the active one; the log is then written to.
    harness.dirs.logs[torn].truncate_to(harness.dirs.logs[torn].segments.base_offsets[2] + 3)
    write(harness.dirs.logs[torn])
    assert content(harness.dirs.logs[whole.topic, 0]) == before


def test_startup_copies_a_shared_segment_that_becomes_the_active_segment(tmp_path: Path) -> None:
    harness = Harness(tmp_path, config=CONFIG)
    log = filled(harness)
    fork = harness.dirs.fork(SOURCE, FORK, FORK_ID)
    held = content(log)
    Path(fork.segments.active.path(".log")).unlink()
    harness.crash()
    fork = harness.dirs.logs[FORK]
    assert held.startswith(content(fork))
    assert fork.segments.active.size_bytes > 0
    write(fork)
    assert content(harness.dirs.logs[SOURCE]) == held
    assert links(fork)[-1] == 1


def test_a_fork_interrupted_by_a_kill_is_deleted_at_startup(tmp_path: Path) -> None:
    harness = Harness(tmp_path, config=CONFIG)
    filled(harness)
    fork = harness.dirs.fork(SOURCE, FORK, FORK_ID)
    # This is the name of the directory until the fork is complete.
    (tmp_path / "u-0").rename(tmp_path / "u-0.0123456789abcdef0123456789abcdef-delete")
    assert fork.topic_id == FORK_ID
    harness.crash()
    assert harness.dirs.logs.keys() == {SOURCE}
    harness.dirs.tick(START_MS)
    assert not list(tmp_path.glob("u-0*"))


def test_recovery_of_a_fork_does_not_repair_damage_in_the_original_log(tmp_path: Path) -> None:
    harness = Harness(tmp_path, config=CONFIG)
    log = filled(harness)
    log.flush()
    harness.dirs.checkpoint_recovery_points()
    fork = harness.dirs.fork(SOURCE, FORK, FORK_ID)
    path = Path(log.segments.all[2].path(".log"))
    with path.open("r+b") as file:
        file.seek(-3, os.SEEK_END)
        file.write(b"\xff\xff\xff")
    damaged, end_offset = path.read_bytes(), fork.log_end_offset
    harness.crash()
    assert harness.dirs.logs[FORK].log_end_offset < end_offset == harness.dirs.logs[SOURCE].log_end_offset
    assert path.read_bytes() == damaged
