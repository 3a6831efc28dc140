"""Deletion, truncation and log start offset changes, with a kill or a power loss at each I/O step. The rules
are in `log_directory`.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field
from uuid import UUID

import pytest

from kafka_compat.storage.config import LogConfig
from kafka_compat.storage.directories import checkpoints
from kafka_compat.storage.directories.log_dirs import LoadReport, LogDirs
from kafka_compat.storage.log.log import Log
from kafka_compat.testing.simulation.filesystem import Crash, SimulatedFilesystem
from tests.storage.log_support import Clock, append, batch, offsets
from tests.storage.stepped_worker import SteppedWorker

KEY = ("t", 0)
FIRST, SECOND = UUID(int=1), UUID(int=2)
TEARS = 4
"""Number of power losses at each step. Which of the unsynced data survives is random."""


@dataclass
class World:
    """One log directory whose worker is run step by step; `disk` counts the I/O steps."""

    disk: SimulatedFilesystem
    clock: Clock = field(default_factory=Clock)
    acknowledged: set[str] = field(default_factory=set)
    report: LoadReport = field(default_factory=LoadReport)

    def __post_init__(self) -> None:
        self.worker = SteppedWorker()
        self.dirs = LogDirs(
            ["/data"],
            broker_id=1,
            cluster_id="test",
            clock=self.clock,
            config_for=lambda _: LogConfig(segment_bytes=3 * len(batch(10)), file_delete_delay_ms=0),
            filesystem=self.disk,
            new_worker=lambda _: self.worker,
        )

    @property
    def log(self) -> Log:
        return self.dirs.logs[KEY]

    def load(self) -> None:
        self.report = self.dirs.load()

    def acknowledge(self, what: str) -> Callable[[Exception | None], None]:
        def done(error: Exception | None) -> None:
            assert error is None
            self.acknowledged.add(what)

        return done

    def fill(self, topic_id: UUID, batches: int) -> None:
        """Create a log that has been flushed, compacted, and checkpointed, with an advanced log start
        offset.
        """
        log = self.dirs.create(*KEY, topic_id)
        for _ in range(batches):
            append(log, batch(10))
        log.flush()
        self.dirs.clean_offsets[KEY] = 40
        log.advance_log_start_offset(30)
        self.dirs.checkpoint_recovery_points()
        self.dirs.checkpoint_log_start_offsets()
        self.dirs.checkpoint_clean_offsets()
        self.dirs.checkpoint_high_watermarks({KEY: log.log_end_offset})
        self.worker.drain()


def at_every_step(
    prepare: Callable[[World], None],
    script: Callable[[World], None],
    check: Callable[[World, set[str]], None],
) -> int:
    """Run `script` repeatedly, with a crash one I/O step later each time, until it completes. Return its
    number of steps.

    Each time, pass the recovered world and the acknowledged operations to `check`.
    """
    for step in range(1, 1000):
        for tear in range(TEARS + 1):
            disk = SimulatedFilesystem(random.Random(1000 * step + tear))
            disk.now_ms = 1
            disk.mkdir("/data")
            disk.sync_directory("/")
            world = World(disk)
            world.load()
            prepare(world)
            disk.crash_at = disk.steps + step
            ended = False
            try:
                script(world)
                ended = True
            except Crash:
                pass
            found = World(disk.after_kill() if tear == TEARS else disk.after_crash())
            found.load()
            check(found, world.acknowledged)
            found.dirs.close()
        if ended:
            return step - 1
    raise AssertionError("the script never completed")


def delete_and_create_again(world: World) -> None:
    old = world.log.log_end_offset
    world.dirs.delete(*KEY, world.acknowledge("deleted"))
    world.dirs.checkpoint_recovery_points()
    world.dirs.checkpoint_high_watermarks({})
    while not world.dirs.is_ready(KEY):
        assert world.worker.step() or world.worker.hear()
    log = world.dirs.create(*KEY, SECOND)
    world.acknowledged.add("created")
    for _ in range(2):
        append(log, batch(10))
    assert log.log_end_offset < old
    log.disk.worker.submit(log.flush, world.acknowledge("flushed"), urgent=True)
    world.dirs.tick(world.clock.ms)
    world.worker.drain()


def check_deletion(world: World, acknowledged: set[str]) -> None:
    if "flushed" in acknowledged:
        assert world.log.topic_id == SECOND
        assert world.log.log_end_offset == 20
    log = world.dirs.logs.get(KEY)
    if log is not None and log.topic_id == FIRST:
        # The deleted topic's log is found again, with its checkpoint entries or some of them.
        assert "deleted" not in acknowledged
        assert log.log_end_offset == 100
        assert offsets(log, 90) == [90]
        return
    if log is not None:
        assert log.log_start_offset == 0
        assert offsets(log, 0) == [10 * number for number in range(log.log_end_offset // 10)]
        assert world.report.high_watermarks.get(KEY, 0) == 0
    assert world.dirs.clean_offsets == {}
    for name in checkpoints.OFFSETS:
        stored = world.dirs._directories["/data"].checkpoints._stored.get(name, {})
        assert stored.get(KEY, 0) <= (log.log_end_offset if log is not None else 0), name


def test_a_recreated_topic_never_contains_records_of_the_deleted_topic() -> None:
    steps = at_every_step(lambda world: world.fill(FIRST, 10), delete_and_create_again, check_deletion)
    assert steps > 20


def truncate_and_append(world: World) -> None:
    log = world.log
    log.truncate_to(45)
    assert log.log_end_offset == 40
    assert offsets(log, 30, upper_bound=40) == [30]
    assert log.is_settling
    # An urgent flush runs before the truncation. It must not flush the segments that are being truncated.
    log.disk.worker.submit(log.flush, world.acknowledge("overtook"), urgent=True)
    log.truncations.when_none(lambda: world.acknowledged.add("cut"))
    while log.is_settling:
        assert world.worker.step() or world.worker.hear()
    for _ in range(3):
        append(log, batch(5), leader_epoch=1)
    log.disk.worker.submit(log.flush, world.acknowledge("flushed"), urgent=True)
    world.worker.drain()


def check_truncation(world: World, acknowledged: set[str]) -> None:
    log = world.log
    assert log.log_start_offset == 30
    assert offsets(log, 30)[0] == 30
    epochs = [log.leader_epochs.epoch_for(offset) for offset in range(40, log.log_end_offset, 5)]
    assert len(set(epochs)) <= 1, "found records from before and after the truncation"
    if "cut" in acknowledged:
        assert set(epochs) <= {1}
    if "flushed" in acknowledged:
        assert log.log_end_offset == 55
    assert world.dirs.clean_offsets.get(KEY, 0) <= 40
    recovery_point = world.dirs._directories["/data"].checkpoints._stored[checkpoints.RECOVERY_POINTS]
    assert recovery_point[KEY] <= log.log_end_offset


def test_truncated_records_never_return() -> None:
    steps = at_every_step(lambda world: world.fill(FIRST, 10), truncate_and_append, check_truncation)
    assert steps > 15


def truncate_fully(world: World) -> None:
    log = world.log
    log.truncate_fully_and_start_at(200)
    assert (log.log_start_offset, log.log_end_offset) == (200, 200)
    log.truncations.when_none(lambda: world.acknowledged.add("cut"))
    while log.is_settling:
        assert world.worker.step() or world.worker.hear()
    append(log, batch(5), leader_epoch=1)
    log.disk.worker.submit(log.flush, world.acknowledge("flushed"), urgent=True)
    world.worker.drain()


def check_full_truncation(world: World, acknowledged: set[str]) -> None:
    log = world.log
    if "cut" in acknowledged:
        assert log.log_start_offset == 200
    if "flushed" in acknowledged:
        assert log.log_end_offset == 205
    if log.log_start_offset < 200:
        assert log.log_end_offset <= 100
    assert len(offsets(log, log.log_start_offset)) > 0 or log.log_start_offset == log.log_end_offset


def test_a_crash_during_a_full_truncation_leaves_either_the_old_or_the_new_log() -> None:
    steps = at_every_step(lambda world: world.fill(FIRST, 10), truncate_fully, check_full_truncation)
    assert steps > 15


def delete_records(world: World) -> None:
    log = world.log
    for offset in (45, 70):
        log.advance_log_start_offset(offset)
        world.dirs.store_log_starts("/data", world.acknowledge(f"start {offset}"))
        log.apply_retention(world.clock.ms, high_watermark=0)
        world.worker.drain()


def check_deleted_records(world: World, acknowledged: set[str]) -> None:
    log = world.log
    assert log.log_end_offset == 100
    assert log.log_start_offset >= max(
        [30, *(int(what.removeprefix("start ")) for what in acknowledged)],
    )
    assert offsets(log, log.log_start_offset)


def test_deleted_records_never_return() -> None:
    steps = at_every_step(lambda world: world.fill(FIRST, 10), delete_records, check_deleted_records)
    assert steps >= 10


def test_a_log_is_not_created_while_another_log_with_the_same_name_is_being_deleted() -> None:
    disk = SimulatedFilesystem(random.Random(1))
    world = World(disk)
    world.load()
    world.fill(FIRST, 3)
    world.dirs.delete(*KEY)
    assert not world.dirs.is_ready(KEY)
    with pytest.raises(Exception, match="not on disk yet"):
        world.dirs.create(*KEY, SECOND)
    told: list[Exception | None] = []
    world.dirs.when_ready(KEY, told.append)
    assert told == []
    world.worker.drain()
    assert told == [None]
    assert world.dirs.create(*KEY, SECOND).log_end_offset == 0


def test_concurrent_truncations_share_a_checkpoint() -> None:
    disk = SimulatedFilesystem(random.Random(1))
    world = World(disk)
    world.load()
    logs = [world.dirs.create("t", number, UUID(int=number)) for number in range(200)]
    for log in logs:
        append(log, batch(10))
        append(log, batch(10))
        log.flush()
    world.dirs.checkpoint_recovery_points()
    world.worker.drain()
    written: list[str] = []
    store = disk.write_file_atomically

    def counted(path: str, content: bytes) -> None:
        written.append(path)
        store(path, content)

    disk.write_file_atomically = counted  # type: ignore[method-assign,assignment]
    for log in logs:
        log.truncate_to(10)
    world.worker.drain()
    assert all(log.log_end_offset == 10 and not log.is_settling for log in logs)
    assert len([path for path in written if path.startswith("/data/") and path.count("/") == 2]) <= 3


def test_a_shutdown_right_after_a_truncation_is_clean() -> None:
    disk = SimulatedFilesystem(random.Random(1))
    world = World(disk)
    world.load()
    world.fill(FIRST, 10)
    append(world.log, batch(10))
    world.log.truncate_to(105)
    while world.worker.step():
        """The truncation is complete on disk; the event loop has not received the result."""
    assert world.log.is_settling
    world.dirs.close()
    found = World(disk.after_crash())
    found.load()
    assert found.report.clean
    assert (found.log.log_end_offset, found.report.recovered_bytes) == (100, 0)


def test_waiting_requests_fail_when_their_disk_fails() -> None:
    disk = SimulatedFilesystem(random.Random(1))
    world = World(disk)
    world.load()
    world.fill(FIRST, 10)
    other = world.dirs.create("other", 0, SECOND)
    told: list[object] = []
    world.log.truncate_to(45)
    world.log.truncations.when_none(lambda: told.append("cut"))
    world.dirs.delete("other", 0, told.append)
    world.dirs.when_ready(("other", 0), told.append)
    disk.failing_syncs = True
    world.worker.drain()
    assert other.closed
    assert world.dirs.offline == {"/data"}
    assert [type(item).__name__ for item in told if item != "cut"] == ["LogDirFailure"] * 2
    assert "cut" in told
