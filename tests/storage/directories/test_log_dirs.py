"""Several log directories: ownership, loading at startup, and files written at shutdown."""

from __future__ import annotations

import errno
import random
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from queue import SimpleQueue
from uuid import UUID

import pytest

from kafka_compat.storage.config import LogConfig
from kafka_compat.storage.directories import checkpoints
from kafka_compat.storage.directories.checkpoints import TopicPartition
from kafka_compat.storage.directories.directory_claim import stored_meta_properties
from kafka_compat.storage.directories.directory_names import parse_name
from kafka_compat.storage.directories.directory_worker import ThreadWorker
from kafka_compat.storage.errors import InconsistentMetaProperties, LogDirFailure, LogDirInUse
from kafka_compat.storage.filesystem import Buffer, RealFilesystem
from kafka_compat.storage.log.log import Log
from kafka_compat.storage.records.legacy import Message, encode_message, read_message
from kafka_compat.testing.simulation.filesystem import SimulatedFilesystem
from tests.storage.log_support import START_MS, TOPIC_ID, Harness, append, batch, offsets
from tests.storage.stepped_worker import SteppedWorker
from tests.support.steps import result_of

LOG = "00000000000000000000.log"


def test_a_clean_shutdown_writes_kafkas_files_and_the_next_startup_scans_no_logs(tmp_path: Path) -> None:
    harness = Harness(tmp_path)
    assert harness.report.clean
    append(harness.log(), batch(7))
    harness.dirs.close({("t", 0): 5})
    assert (tmp_path / ".kafka_cleanshutdown").read_text() == '{"version":0,"brokerEpoch":-1}'
    assert (tmp_path / checkpoints.RECOVERY_POINTS).read_text() == "0\n1\nt 0 7\n"
    assert (tmp_path / checkpoints.HIGH_WATERMARKS).read_text() == "0\n1\nt 0 5\n"
    assert (tmp_path / "t-0" / "leader-epoch-checkpoint").read_text() == "0\n1\n0 0\n"
    properties = stored_meta_properties([str(tmp_path)])
    assert properties == {"broker.id": "1", "version": "0", "cluster.id": "test"}
    harness.reopen()
    assert harness.report.clean
    assert harness.report.recovered_bytes == 0
    assert harness.report.high_watermarks == {("t", 0): 5}
    assert harness.log().topic_id == TOPIC_ID
    assert harness.log().flushed_end_offset == 7
    assert not (tmp_path / ".kafka_cleanshutdown").exists()


def test_logs_of_a_topic_share_one_file_with_its_id(tmp_path: Path) -> None:
    """It takes less time to create a hard link than a file."""
    harness = Harness(tmp_path)
    other_id = UUID(int=7)
    for partition in range(3):
        harness.log(partition=partition)
    harness.dirs.create("other", 0, other_id)
    harness.dirs.delete("t", 0)
    harness.log(partition=3)
    paths = [tmp_path / f"t-{partition}" / checkpoints.PARTITION_METADATA for partition in (1, 2, 3)]
    assert paths[0].samefile(paths[1])
    assert not paths[0].samefile(tmp_path / "other-0" / checkpoints.PARTITION_METADATA)
    harness.log(partition=1).assign_topic_id(other_id)
    harness.crash()
    assert {key: log.topic_id for key, log in harness.dirs.logs.items()} == {
        ("t", 1): other_id,
        ("t", 2): TOPIC_ID,
        ("t", 3): TOPIC_ID,
        ("other", 0): other_id,
    }


def test_each_log_has_a_file_with_its_topic_id_if_links_are_refused(tmp_path: Path) -> None:
    """Some file systems have no hard links, and a file on ext4 has at most 65,000."""

    class WithoutLinks(RealFilesystem):
        def link(self, source: str, target: str) -> None:
            raise PermissionError(errno.EPERM, "no hard links", target)

    harness = Harness(tmp_path, filesystem=WithoutLinks())
    harness.log()
    harness.log(partition=1)
    harness.crash()
    assert [log.topic_id for log in harness.dirs.logs.values()] == [TOPIC_ID, TOPIC_ID]


def test_after_a_kill_only_the_torn_end_of_a_log_is_truncated(tmp_path: Path) -> None:
    harness = Harness(tmp_path)
    for _ in range(3):
        append(harness.log(), batch(10))
    path = tmp_path / "t-0" / LOG
    whole = path.read_bytes()
    path.write_bytes(whole[:-5])
    harness.crash()
    assert not harness.report.clean
    assert harness.report.truncated == {("t", 0): len(whole) // 3 - 5}
    assert offsets(harness.log(), 0) == [0, 10]
    assert path.stat().st_size == len(whole) // 3 * 2
    harness.crash()
    assert harness.report.truncated == {}


def test_recovery_starts_at_the_recovery_point(tmp_path: Path) -> None:
    size_bytes = len(batch(10))
    harness = Harness(tmp_path, config=LogConfig(segment_bytes=2 * size_bytes))
    for _ in range(7):
        append(harness.log(), batch(10))
    harness.log().flush()
    harness.dirs.checkpoint_recovery_points()
    harness.crash()
    assert harness.report.recovered_bytes == size_bytes
    assert harness.log().log_end_offset == 70


def test_recovery_progress_is_reported(tmp_path: Path) -> None:
    harness = Harness(tmp_path)
    append(harness.log(), batch(10))
    harness.dirs.unlock()
    told: list[tuple[object, int, int]] = []
    harness.dirs = type(harness.dirs)(
        [str(tmp_path)], broker_id=1, cluster_id="test", clock=harness.clock, config_for=lambda _: LogConfig()
    )
    harness.dirs.load(lambda key, done, total: told.append((key, done, total)))
    assert told == [(("t", 0), len(batch(10)), len(batch(10)))]


def test_missing_and_corrupt_indexes_are_rebuilt(tmp_path: Path) -> None:
    harness = Harness(tmp_path, config=LogConfig(index_interval_bytes=0))
    for number in range(50):
        append(harness.log(), batch(10, timestamps=[START_MS + number * 10 + index for index in range(10)]))
    for suffix in ("index", "timeindex"):
        harness.dirs.close()
        path = tmp_path / "t-0" / f"{0:020d}.{suffix}"
        good = path.read_bytes()
        for damage in (None, good[8:] + good[:8], b"\xff" * 48):
            path.unlink() if damage is None else path.write_bytes(damage)
            harness.reopen()
            assert offsets(harness.log(), 257, 1) == [250]
            found = result_of(harness.log().offset_for_timestamp(START_MS + 300))
            assert found is not None
            assert found.offset == 300
            harness.dirs.close()
        harness.reopen()


def test_messages_in_old_formats_are_recovered_read_and_found_by_timestamp(tmp_path: Path) -> None:
    harness = Harness(tmp_path)
    harness.log().flush()
    harness.dirs.unlock()
    messages = b"".join(
        encode_message(Message(offset, 1, 0, START_MS + offset, None, b"old %d" % offset))
        for offset in range(30)
    )
    (tmp_path / "t-0" / LOG).write_bytes(messages + b"torn")
    harness.reopen()
    log = harness.log()
    assert harness.report.truncated == {("t", 0): 4}
    assert log.log_end_offset == 30
    part = log.read(17, 1)
    assert part is not None
    assert read_message(part.read(), 0)[0].value == b"old 17"
    found = result_of(log.offset_for_timestamp(START_MS + 21))
    assert found is not None
    assert (found.timestamp, found.offset) == (START_MS + 21, 21)
    assert append(log, batch(2)).first_offset == 30


def test_interrupted_deletions_and_cleaner_runs_are_completed(tmp_path: Path) -> None:
    size_bytes = len(batch(10))
    harness = Harness(tmp_path, config=LogConfig(segment_bytes=2 * size_bytes))
    for _ in range(6):
        append(harness.log(), batch(10))
    harness.dirs.close()
    folder = tmp_path / "t-0"
    (folder / f"{5:020d}.log.deleted").write_bytes(b"x")
    (folder / f"{40:020d}.log.cleaned").write_bytes(b"x")
    # The cleaner had merged the first two segments and not yet deleted the originals.
    merged = (folder / LOG).read_bytes() + (folder / f"{20:020d}.log").read_bytes()
    (folder / f"{0:020d}.log.swap").write_bytes(merged)
    (tmp_path / "gone-0.0123456789abcdef0123456789abcdef-delete").mkdir()
    (tmp_path / "not a partition").mkdir()
    harness.reopen()
    log = harness.log()
    assert sorted(path.name for path in folder.glob("*.log*")) == [LOG, f"{40:020d}.log"]
    assert [base for base, _ in log.segment_starts()] == [0, 40]
    assert offsets(log, 0) == [0, 10, 20, 30]
    harness.dirs.tick(harness.clock.ms)
    assert not list(tmp_path.glob("*-delete"))
    assert (tmp_path / "not a partition").exists()


def test_a_second_broker_in_the_same_directory_is_rejected(tmp_path: Path) -> None:
    first = Harness(tmp_path)
    with pytest.raises(LogDirInUse, match=str(tmp_path)):
        Harness(tmp_path)
    first.dirs.close()
    Harness(tmp_path).dirs.close()


def test_a_directory_of_another_broker_is_rejected_and_left_unchanged(tmp_path: Path) -> None:
    harness = Harness(tmp_path)
    append(harness.log(), batch())
    harness.dirs.close()
    with pytest.raises(InconsistentMetaProperties, match=r"broker\.id=1"):
        harness.reopen(broker_id=2)
    assert (tmp_path / ".kafka_cleanshutdown").exists()
    harness.reopen(broker_id=1)
    assert harness.report.clean


def test_new_logs_are_created_in_the_directory_with_the_fewest_logs(tmp_path: Path) -> None:
    harness = Harness(tmp_path / "a", tmp_path / "b")
    for partition in range(6):
        harness.dirs.create("t", partition, TOPIC_ID)
    assert {len(list((tmp_path / name).glob("t-*"))) for name in "ab"} == {3}
    harness.dirs.close()
    harness.reopen()
    assert len(harness.dirs.logs) == 6


def test_the_directory_of_a_new_log_is_chosen_without_scanning_all_logs(tmp_path: Path) -> None:
    harness = Harness(tmp_path / "a", tmp_path / "b")

    class Unlisted(dict[TopicPartition, Log]):
        def __iter__(self) -> Iterator[TopicPartition]:
            raise AssertionError("every log must be examined")

        items = values = keys = __iter__  # type: ignore[assignment]

    harness.dirs.logs = Unlisted(harness.dirs.logs)
    for partition in range(6):
        harness.dirs.create("t", partition, TOPIC_ID)
    assert {len(list((tmp_path / name).glob("t-*"))) for name in "ab"} == {3}


def test_files_of_an_interrupted_checkpoint_are_deleted(tmp_path: Path) -> None:
    harness = Harness(tmp_path)
    append(harness.log(), batch())
    leftovers = [tmp_path / f"{name}.0123abc.tmp" for name in (*checkpoints.OFFSETS, "meta.properties")]
    (tmp_path / "notes.tmp").write_text("mine")
    for leftover in leftovers:
        leftover.write_text("torn")
    harness.crash()
    assert not [leftover for leftover in leftovers if leftover.exists()]
    assert (tmp_path / "notes.tmp").exists()


def test_syncs_and_renames_are_performed_by_the_worker(tmp_path: Path) -> None:
    handed: SimpleQueue[Callable[[], None]] = SimpleQueue()
    waits: list[tuple[str, int]] = []

    class Watched(RealFilesystem):
        def sync_file(self, path: str) -> None:
            waits.append((path, threading.get_ident()))
            super().sync_file(path)

        def sync_directory(self, path: str) -> None:
            waits.append((path, threading.get_ident()))
            super().sync_directory(path)

    harness = Harness(tmp_path / "a", tmp_path / "b", filesystem=Watched())
    harness.dirs.close()
    harness.new_worker = lambda path: ThreadWorker(path, handed.put)
    dirs = harness.reopen()
    waits.clear()

    def until(condition: Callable[[], bool]) -> None:
        while not condition():
            handed.get(timeout=10)()

    logs = [dirs.create("t", number, TOPIC_ID) for number in range(4)]
    for log in logs:
        append(log, batch(10))
        append(log, batch(10))
        log.disk.worker.submit(log.flush, urgent=True)
    dirs.checkpoint_recovery_points()
    for log in logs:
        log.truncate_to(10)
    until(lambda: not any(log.is_settling for log in logs))
    told: list[Exception | None] = []
    for log in logs:
        log.advance_log_start_offset(5)
        dirs.store_log_starts(log.disk.path, told.append)
    until(lambda: len(told) == 4)
    dirs.delete("t", 0, told.append)
    until(lambda: len(told) == 5 and dirs.is_ready(("t", 0)))
    dirs.create("t", 0, TOPIC_ID)
    dirs.tick(harness.clock.ms + 100_000)
    assert told == [None] * 5
    assert len({thread for _, thread in waits}) == 2
    assert threading.get_ident() not in {thread for _, thread in waits}
    dirs.close()


def _stepped(*directories: Path, filesystem: RealFilesystem | None = None) -> tuple[Harness, SteppedWorker]:
    """Return log directories with a worker that runs only when the test steps it."""
    harness, worker = Harness(*directories, filesystem=filesystem), SteppedWorker()
    harness.dirs.close()
    harness.new_worker = lambda path: worker
    harness.reopen()
    return harness, worker


def test_deleting_a_log_during_its_truncation_keeps_its_directory_online(tmp_path: Path) -> None:
    class Interrupted(RealFilesystem):
        on_unshare: Callable[[], None] | None = None

        def unshare(self, path: str) -> None:
            super().unshare(path)
            if self.on_unshare is not None:
                on_unshare, self.on_unshare = self.on_unshare, None
                on_unshare()

    filesystem = Interrupted()
    harness, worker = _stepped(tmp_path, filesystem=filesystem)
    dirs, log = harness.dirs, harness.log()
    append(log, batch(10))
    append(log, batch(10))
    log.truncate_to(10)
    deleted: list[Exception | None] = []
    filesystem.on_unshare = lambda: dirs.delete("t", 0, deleted.append)
    worker.drain()
    assert filesystem.on_unshare is None
    assert deleted == [None]
    assert not harness.failed
    assert dirs.is_ready(("t", 0))
    dirs.close()


@pytest.mark.parametrize("steps", range(8))
def test_a_move_can_be_canceled_while_its_copy_replaces_the_original_log(tmp_path: Path, steps: int) -> None:
    key = ("t", 0)
    harness, worker = _stepped(tmp_path / "a", tmp_path / "b")
    dirs, log = harness.dirs, harness.log()
    append(log, batch(10))
    other = next(path for path in harness.directories if path != log.disk.path)
    for _ in range(2):
        append(dirs.moves.begin(key, other), batch(10))
        placed: list[Exception | None] = []
        dirs.moves.place(key, placed.append)
        for _ in range(steps):
            if not worker.step():
                worker.hear()
        dirs.moves.cancel(key)
        worker.drain()
        assert placed == [None]
        assert not harness.failed
    dirs.tick(harness.clock.ms + 100_000)
    worker.drain()
    assert not [path for path in Path(other).iterdir() if path.name.startswith("t-0")]
    dirs.close()


def test_a_move_back_waits_until_the_old_directory_is_removed(tmp_path: Path) -> None:
    key = ("t", 0)
    harness, worker = _stepped(tmp_path / "a", tmp_path / "b")
    dirs, first = harness.dirs, harness.log()
    append(first, batch(10))
    there = next(path for path in harness.directories if path != first.disk.path)
    placed: list[Exception | None] = []
    append(dirs.moves.begin(key, there), batch(10))
    dirs.moves.place(key, placed.append)
    worker.drain()
    dirs.moves.finish(key)
    append(dirs.moves.begin(key, first.disk.path), batch(10))
    dirs.moves.place(key, placed.append)
    assert Path(first.directory).exists() and placed == [None]
    worker.drain()
    assert placed == [None, None] and dirs.moves.is_placed(key)
    assert dirs.moves.finish(key).directory == first.directory
    dirs.delete(*key)
    assert not dirs.is_ready(key)
    told: list[Exception | None] = []
    dirs.when_ready(key, told.append)
    worker.drain()
    assert told == [None] and dirs.is_ready(key)
    dirs.close()


def test_canceling_a_move_while_its_copy_is_being_closed_keeps_the_directory_online(
    tmp_path: Path,
) -> None:
    class Interrupted(RealFilesystem):
        on_index: Callable[[], None] | None = None

        def write_file(self, path: str, content: Buffer) -> None:
            super().write_file(path, content)
            if self.on_index is not None and path.endswith(".timeindex") and "-future" in path:
                on_index, self.on_index = self.on_index, None
                on_index()

    filesystem, key = Interrupted(), ("t", 0)
    harness, worker = _stepped(tmp_path / "a", tmp_path / "b", filesystem=filesystem)
    dirs, log = harness.dirs, harness.log()
    append(log, batch(10))
    other = next(path for path in harness.directories if path != log.disk.path)
    append(dirs.moves.begin(key, other), batch(10))
    placed: list[Exception | None] = []
    dirs.moves.place(key, placed.append)
    filesystem.on_index = lambda: dirs.moves.cancel(key)
    worker.drain()
    assert filesystem.on_index is None
    assert placed == [None]
    assert not harness.failed
    assert dirs.moves.futures == {}
    dirs.tick(harness.clock.ms + 100_000)
    worker.drain()
    assert not [path for path in Path(other).iterdir() if path.name.startswith("t-0")]
    append(log, batch(10))
    dirs.close()


def test_a_deletion_does_not_wait_until_the_files_of_many_earlier_deletions_are_removed(
    tmp_path: Path,
) -> None:
    """After the deletion of a topic with thousands of partitions, its files are removed for minutes."""
    harness, worker = _stepped(tmp_path)
    for partition in range(200):
        harness.log(partition=partition)
        harness.dirs.delete("t", partition)
    worker.drain()
    harness.log("last")
    due_ms = harness.clock.ms + 100_000
    harness.dirs.tick(due_ms)
    harness.dirs.tick(due_ms)
    deleted: list[Exception | None] = []
    harness.dirs.delete("last", 0, deleted.append)
    while not deleted:
        assert worker.step()
        while worker.hear():
            pass
    assert len(list(tmp_path.glob("t-*"))) > 100
    worker.drain()
    assert not list(tmp_path.glob("t-*"))
    harness.dirs.close()


def test_a_new_log_is_created_in_the_requested_directory(tmp_path: Path) -> None:
    harness = Harness(tmp_path / "a", tmp_path / "b")
    for partition in range(4):
        harness.dirs.prefer("t", partition, str(tmp_path / "b"))
        harness.dirs.create("t", partition, TOPIC_ID)
    assert len(list((tmp_path / "b").glob("t-*"))) == 4
    harness.dirs.delete("t", 0)
    harness.dirs.create("t", 0, TOPIC_ID)
    assert (tmp_path / "a" / "t-0").exists()


def test_a_failed_disk_takes_only_its_logs_offline() -> None:
    disk = SimulatedFilesystem(random.Random(4))
    harness = Harness("/a", "/b", filesystem=disk)
    logs = [harness.dirs.create("t", partition, TOPIC_ID) for partition in range(4)]
    disk.failing_syncs = True
    append(logs[0], batch())
    with pytest.raises(LogDirFailure):
        logs[0].flush()
    disk.failing_syncs = False
    broken = logs[0].disk.path
    assert harness.failed == [broken]
    assert harness.dirs.offline == {broken}
    assert len(harness.dirs.logs) == 2
    assert {log.disk.path for log in harness.dirs.logs.values()} == {"/a", "/b"} - {broken}
    for log in harness.dirs.logs.values():
        append(log, batch())
        log.flush()
    assert harness.dirs.create("u", 0, TOPIC_ID).disk.path != broken
    harness.dirs.close()
    assert disk.exists(f"{({'/a', '/b'} - {broken}).pop()}/.kafka_cleanshutdown")
    assert not disk.exists(f"{broken}/.kafka_cleanshutdown")


def test_a_failure_of_the_last_disk_raises_an_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(LogDirFailure, match="every log directory is offline"):
        Harness(tmp_path / "file")


def test_a_deleted_topic_disappears_immediately_and_its_files_are_deleted_later(tmp_path: Path) -> None:
    harness = Harness(tmp_path)
    append(harness.log(), batch(10))
    harness.dirs.checkpoint_recovery_points()
    part = harness.log().read(0, 100)
    harness.dirs.delete("t", 0)
    assert not (tmp_path / "t-0").exists()
    assert part is not None
    assert len(part.read()) == part.size_bytes
    # A new topic with the same name starts empty, also after a crash.
    other = UUID(int=5)
    assert harness.dirs.create("t", 0, other).log_end_offset == 0
    harness.crash()
    assert (harness.log().log_end_offset, harness.log().topic_id) == (0, other)
    harness.clock.ms += 60_000
    harness.dirs.tick(harness.clock.ms)
    assert not list(tmp_path.glob("*-delete"))


def test_a_topic_with_the_longest_name_can_be_deleted(tmp_path: Path) -> None:
    harness = Harness(tmp_path)
    name = "n" * 249
    harness.dirs.create(name, 0, TOPIC_ID)
    harness.dirs.delete(name, 0)
    assert [len(path.name) for path in tmp_path.glob("*-delete")] == [
        255 - len(".0123456789abcdef-delete") + 24
    ]


def test_settings_can_change_while_the_log_is_open(tmp_path: Path) -> None:
    harness = Harness(tmp_path)
    log = harness.log()
    append(log, batch(10))
    harness.config = LogConfig(segment_bytes=len(batch(10)), retention_bytes=0)
    harness.dirs.update_config("t")
    append(log, batch(10))
    assert log.segment_count == 2
    assert log.apply_retention(START_MS, 20) == [0, 10]


def test_many_logs_are_recovered_and_closed(tmp_path: Path) -> None:
    harness = Harness(tmp_path)
    for partition in range(40):
        append(harness.dirs.create("t", partition, TOPIC_ID), batch(partition + 1))
    harness.crash()
    ends = {partition: log.log_end_offset for (_, partition), log in harness.dirs.logs.items()}
    assert ends == {partition: partition + 1 for partition in range(40)}
    harness.dirs.close()
    harness.reopen()
    assert harness.report.clean
    assert harness.report.recovered_bytes == 0


def test_only_partition_directories_are_loaded_as_logs() -> None:
    assert parse_name("a-b-12") == ("a-b", 12)
    for name in ("t", "t-", "-1", "t-x", "t--1x", "t-0.abc-delete", "t-0.0123-stray", "meta.properties"):
        assert parse_name(name) is None, name


def test_reserved_space_is_freed_when_a_log_closes(tmp_path: Path) -> None:
    harness = Harness(tmp_path)
    log = harness.log()
    for _ in range(20):
        append(log, batch(1, size_bytes=100_000))
    path = tmp_path / "t-0" / LOG
    size_bytes = log.size_bytes
    assert path.stat().st_size == size_bytes
    harness.dirs.close()
    assert RealFilesystem().file_size(str(path)) == size_bytes
    assert path.stat().st_blocks * 512 < size_bytes + 64 * 1024
