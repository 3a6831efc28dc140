"""Startup skips the log directories that are unchanged since a clean shutdown, and opens all others."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from kafka_compat.storage.directories import checkpoints
from kafka_compat.storage.directories.log_summaries import LOG_SUMMARIES
from kafka_compat.storage.filesystem import OsFile, RealFilesystem
from tests.storage.log_support import Harness, append, batch, offsets

LOG = "00000000000000000000.log"
PARTITIONS = 50


class WatchedFilesystem(RealFilesystem):
    """Records the paths of log files and directories that are opened, read or listed."""

    def __init__(self) -> None:
        super().__init__()
        self.opened: list[str] = []

    def open(self, path: str) -> OsFile:
        self.opened.append(path)
        return super().open(path)

    def read_file(self, path: str) -> bytes:
        self.opened.append(path)
        return super().read_file(path)

    def write_file(self, path: str, content: bytes | bytearray | memoryview) -> None:
        self.opened.append(path)
        super().write_file(path, content)

    def listdir(self, path: str) -> list[str]:
        self.opened.append(path)
        return super().listdir(path)

    def sync_file(self, path: str) -> None:
        self.opened.append(path)
        super().sync_file(path)

    def sync_directory(self, path: str) -> None:
        self.opened.append(path)
        super().sync_directory(path)

    def of_logs(self, directory: Path) -> list[str]:
        """Return the recorded paths inside log directories."""
        return [path for path in self.opened if path.startswith(f"{directory}/t-")]


def filled(directory: Path) -> tuple[Harness, WatchedFilesystem]:
    """Create logs of which every second one has a record, and every tenth one an idempotent producer's
    batch.
    """
    filesystem = WatchedFilesystem()
    harness = Harness(directory, filesystem=filesystem)
    for partition in range(PARTITIONS):
        log = harness.log("t", partition)
        if partition % 10 == 1:
            append(log, batch(3, producer_id=7, sequence=0))
        elif partition % 2 == 1:
            append(log, batch(3))
    return harness, filesystem


def test_startup_after_a_clean_shutdown_opens_only_producer_snapshots(tmp_path: Path) -> None:
    harness, filesystem = filled(tmp_path)
    harness.dirs.close()
    filesystem.opened.clear()
    harness.reopen()
    assert harness.report.log_count == PARTITIONS
    assert all(path.endswith(".snapshot") for path in filesystem.of_logs(tmp_path))
    assert len(filesystem.of_logs(tmp_path)) == PARTITIONS // 10
    ends = [harness.log("t", partition).log_end_offset for partition in range(PARTITIONS)]
    assert ends == [3 * (partition % 2) for partition in range(PARTITIONS)]
    assert list(harness.log("t", 1).producers.entries) == [7]
    assert harness.log("t", 3).leader_epochs.latest_epoch == 0
    assert offsets(harness.log("t", 3), 0) == [0]


def test_shutdown_does_not_open_logs_without_new_records(tmp_path: Path) -> None:
    harness, filesystem = filled(tmp_path)
    harness.dirs.close()
    harness.reopen()
    append(harness.log("t", 5), batch(2))
    filesystem.opened.clear()
    harness.dirs.close()
    assert {os.path.dirname(path) for path in filesystem.of_logs(tmp_path) if not path.endswith("t-5")} == {
        f"{tmp_path}/t-5"
    }


def test_after_a_kill_only_logs_with_new_records_are_recovered(tmp_path: Path) -> None:
    harness, filesystem = filled(tmp_path)
    harness.dirs.close()
    harness.reopen()
    append(harness.log("t", 3), batch(2))
    append(harness.log("t", 4), batch(1))
    filesystem.opened.clear()
    harness.crash()
    opened = {path.split("/t-")[1].split("/")[0] for path in filesystem.of_logs(tmp_path)}
    assert opened - {str(partition) for partition in range(1, PARTITIONS, 10)} == {"3", "4"}
    assert harness.log("t", 3).log_end_offset == 5
    assert harness.log("t", 4).log_end_offset == 1
    assert harness.log("t", 5).log_end_offset == 3


def test_a_truncated_and_extended_log_is_recovered_after_a_kill(tmp_path: Path) -> None:
    harness, _ = filled(tmp_path)
    harness.dirs.close()
    harness.reopen()
    log = harness.log("t", 3)
    log.truncate_to(0)
    append(log, batch(3), leader_epoch=4)
    harness.crash()
    assert harness.log("t", 3).leader_epochs.latest_epoch == 4
    assert harness.report.recovered_bytes > 0


def _cut(folder: Path) -> None:
    path = folder / LOG
    path.write_bytes(path.read_bytes()[:-5])


def _grown(folder: Path) -> None:
    path = folder / LOG
    path.write_bytes(path.read_bytes() + path.read_bytes()[:30])


def _damaged(folder: Path) -> None:
    path = folder / LOG
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(content)


def _without_log(folder: Path) -> None:
    (folder / LOG).unlink()


def _with_leftover(folder: Path) -> None:
    (folder / f"{LOG}.deleted").write_bytes(b"")


@pytest.mark.parametrize("change", [_cut, _grown, _damaged, _without_log, _with_leftover])
@pytest.mark.parametrize("clean", [True, False])
def test_files_changed_by_other_programs_are_opened_without_their_summaries(
    tmp_path: Path, change: Callable[[Path], None], clean: bool
) -> None:
    harness, filesystem = filled(tmp_path)
    harness.dirs.close()
    change(tmp_path / "t-3")
    if not clean:
        (tmp_path / checkpoints.CLEAN_SHUTDOWN).unlink()
    filesystem.opened.clear()
    harness.reopen()
    assert f"{tmp_path}/t-3" in filesystem.opened
    known = harness.log("t", 3)
    # The summary is ignored. After a clean shutdown, only the end of the log is checked; otherwise, the whole
    # log is recovered.
    expected: dict[Callable[[Path], None], int] = {
        _cut: 0,
        _grown: 3,
        _damaged: 3 if clean else 0,
        _without_log: 0,
        _with_leftover: 3,
    }
    assert known.log_end_offset == expected[change]
    assert not (tmp_path / "t-3" / f"{LOG}.deleted").exists()


def test_a_damaged_summaries_file_is_ignored(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    harness, filesystem = filled(tmp_path)
    harness.dirs.close()
    path = tmp_path / LOG_SUMMARIES
    path.write_bytes(path.read_bytes().replace(b" 3 ", b" 4 "))
    filesystem.opened.clear()
    harness.reopen()
    assert LOG_SUMMARIES in caplog.text
    assert f"{tmp_path}/t-4" in filesystem.opened
    assert harness.log("t", 3).log_end_offset == 3


def test_deleted_records_stay_deleted_even_if_no_file_has_changed(tmp_path: Path) -> None:
    harness, _ = filled(tmp_path)
    harness.dirs.close()
    for clean in (True, False):
        harness.reopen()
        log = harness.log("t", 3)
        log.advance_log_start_offset(2 if clean else 3)
        harness.dirs.checkpoint_log_start_offsets()
        if clean:
            harness.dirs.close()
        else:
            harness.dirs.unlock()
    harness.reopen()
    assert (harness.log("t", 3).log_start_offset, harness.log("t", 3).log_end_offset) == (3, 3)
