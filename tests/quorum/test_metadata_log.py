"""The metadata log: appends, truncations, snapshots and recovery after kills and power failures."""

from __future__ import annotations

import random
from pathlib import Path
from uuid import UUID

import pytest

from kafka_compat.coordination.raft.effects import AppendLeaderChange, AppendVoters
from kafka_compat.coordination.raft.values import Batch, OffsetAndEpoch, ReplicaKey, Voter
from kafka_compat.coordination.replicated_store.record_frames import frame
from kafka_compat.quorum.checkpoints import BOOTSTRAP
from kafka_compat.quorum.metadata_log import MetadataLog
from kafka_compat.quorum.metadata_partition import TOPIC_ID
from kafka_compat.storage.errors import CorruptFile, CorruptRecord
from kafka_compat.storage.records.records import Record, build_batch
from kafka_compat.testing.simulation.filesystem import Crash, SimulatedFilesystem
from tests.quorum.log_models import DIRECTORY, VOTERS, Model, Workload, content, opened
from tests.storage.log_support import Clock
from tests.support.campaign import rounds

VOTER_SET = {
    node_id: Voter(ReplicaKey(node_id, UUID(int=node_id << 100)), {"CONTROLLER": ("127.0.0.1", 9093)})
    for node_id in (1, 2)
}


@pytest.fixture
def log(tmp_path: Path) -> MetadataLog:
    return MetadataLog.open(str(tmp_path), Clock())


def reopened(log: MetadataLog) -> MetadataLog:
    return MetadataLog.open(str(Path(log.directory).parent), Clock())


@pytest.mark.parametrize("seed", range(rounds(everyday=60, campaign=6_000)))
def test_log_matches_a_list_of_batches_after_crashes(seed: int) -> None:
    chance = random.Random(seed)
    disk = SimulatedFilesystem(chance)
    disk.mkdir(DIRECTORY)
    disk.sync_directory("/")
    model = Model()
    for _ in range(3):
        work = Workload(opened(disk), model, chance)
        disk.crash_at = disk.steps + chance.randint(1, 250) if chance.random() < 0.8 else None
        try:
            for _ in range(chance.randint(1, 60)):
                work.step()
                assert content(work.log) == work.model.batches
            if chance.random() < 0.5:
                work.log.close()
                work.model.flushed_end = work.model.end
            disk = disk.after_kill()
        except Crash:
            disk = disk.after_crash()
        model = check_recovered(disk, work)


def check_recovered(disk: SimulatedFilesystem, work: Workload) -> Model:
    """Check the log after a crash, and return the model of what was found."""
    log = opened(disk)
    found = log.found()
    batches = content(log)
    assert [each[1] for each in found.epochs] == sorted({each[1] for each in found.epochs})
    matching = []
    for model in (work.model, work.after):
        # A deleted segment may still be on disk, so the log may start earlier than in memory.
        expected = [batch for batch in model.batches if batch[0] >= found.start.offset]
        overlapping = [batch for batch in batches if batch[0] >= model.start.offset]
        if work.is_appending:
            overlapping = overlapping[: len(expected)]
        is_prefix = overlapping == expected[: len(overlapping)]
        if is_prefix and log.end_offset >= model.flushed_end and found.start.offset <= log.end_offset:
            matching.append(model)
    assert matching, (batches, work.model, work.after)
    if found.start.offset:
        assert found.start in log.checkpoints.all
    again = opened(disk)
    assert (content(again), again.found()) == (batches, found)
    return Model(found.start, batches, log.end_offset)


def test_an_empty_log_has_no_epoch_and_no_snapshot(log: MetadataLog) -> None:
    found = log.found()
    assert found == (OffsetAndEpoch(0, 0), 0, (), None, ())
    assert log.size_bytes == 0
    assert log._log.topic_id == TOPIC_ID


def test_committed_records_are_read_batch_by_batch(log: MetadataLog) -> None:
    log.append_leader_change(AppendLeaderChange(0, 3, 1, VOTERS, VOTERS))
    log.append_records(1, 3, [frame(1000, 2, b"first"), b"\x07unknown"])
    log.append_records(3, 3, [frame(70_000, 0, b"")])
    log.append_records(4, 3, [frame(1000, 0, b"not committed")])
    batches = list(log.committed(0, 100, 4))
    assert [[tuple(record) for record in batch.records] for batch in batches] == [
        [],
        [(1, 1000, 2, b"first"), (2, -1, 0, b"\x07unknown")],
        [(3, 70_000, 0, b"")],
    ]
    assert [(batch.end_offset, batch.epoch) for batch in batches] == [(1, 3), (3, 3), (4, 3)]
    assert [batch.end_offset for batch in log.committed(1, 10_000, 3)] == [3]


def test_voters_in_the_log_are_found_again(log: MetadataLog) -> None:
    log.append_leader_change(AppendLeaderChange(0, 1, 1, VOTERS, VOTERS))
    log.append_voters(AppendVoters(1, 1, VOTER_SET))
    log.append_records(2, 1, [frame(1000, 0, b"")])
    log.append_voters(AppendVoters(3, 1, {1: VOTER_SET[1]}))
    found = reopened(log).found()
    assert found.voter_sets == ((1, VOTER_SET), (3, {1: VOTER_SET[1]}))
    part = log.read(0, 4, 1 << 20)
    assert part is not None
    log.truncate(0)
    fetched = log.read_fetched(part.read())
    assert fetched.batches[1] == Batch(1, 1, 1, VOTER_SET)
    log.append_fetched(fetched.data)
    assert reopened(log).found() == found


def test_voters_in_the_snapshot_replace_earlier_ones(log: MetadataLog) -> None:
    log.append_voters(AppendVoters(0, 1, VOTER_SET))
    log.append_records(1, 1, [frame(1000, 0, b"")])
    log.append_voters(AppendVoters(2, 1, {1: VOTER_SET[1]}))
    with log.checkpoints.write(OffsetAndEpoch(2, 1), voters=VOTER_SET) as writing:
        writing.complete()
    assert reopened(log).found().voter_sets == ((1, VOTER_SET), (2, {1: VOTER_SET[1]}))


def test_fetched_batches_must_continue_the_log(log: MetadataLog) -> None:
    first = batch_at(0, epoch=2)
    torn = first + batch_at(1, epoch=2)[:-1]
    assert log.read_fetched(torn).data == first
    assert log.read_fetched(first[:20]) == ((), b"")
    damaged = bytearray(first)
    damaged[-1] ^= 1
    for data, text in [
        (bytes(damaged), "CRC mismatch"),
        (batch_at(1, epoch=2), "0 was expected"),
        (first + batch_at(2, epoch=2), "1 was expected"),
        (first + batch_at(1, epoch=1), "below the epoch before"),
    ]:
        with pytest.raises(CorruptRecord, match=text):
            log.read_fetched(data)
    with pytest.raises(CorruptRecord):
        log.append_fetched(batch_at(1, epoch=2))
    with pytest.raises(CorruptRecord):
        log.append_fetched(bytes(damaged))
    assert log.end_offset == 0


def batch_at(offset: int, *, epoch: int) -> bytes:
    return build_batch([Record(timestamp=5, value=b"x")], base_offset=offset, leader_epoch=epoch)


def test_the_log_start_moves_to_a_snapshot_and_segments_below_are_deleted(tmp_path: Path) -> None:
    log = MetadataLog.open(str(tmp_path), Clock(), segment_bytes=300)
    for offset in range(10):
        log.append_records(offset, 1, [frame(1000, 0, b"x" * 100)])
    size_bytes = log.size_bytes
    with log.checkpoints.write(OffsetAndEpoch(7, 1)) as writing:
        writing.complete()
    log.move_start(7)
    log.flush()
    for _ in log.delete_files():
        pass
    assert log.start_offset == 7
    assert log.size_bytes < size_bytes / 2
    assert not list(Path(log.directory).glob("*.deleted"))
    found = reopened(log).found()
    assert (found.start, found.end_offset, found.epochs) == (OffsetAndEpoch(7, 1), 10, ((1, 7),))


def test_a_log_whose_snapshot_is_missing_is_refused(tmp_path: Path) -> None:
    log = MetadataLog.open(str(tmp_path), Clock())
    with log.checkpoints.write(OffsetAndEpoch(7, 1)) as writing:
        writing.complete()
    log.install(OffsetAndEpoch(7, 1))
    log.append_records(7, 1, [frame(1000, 0, b"")])
    log.close()
    Path(log.checkpoints.path(OffsetAndEpoch(7, 1))).unlink()
    with pytest.raises(CorruptFile, match="begins at offset 7, but the snapshot"):
        reopened(log)


def snapshot_at(log: MetadataLog, offset: int) -> Path:
    """Take a snapshot with one record, and return its path."""
    with log.checkpoints.write(OffsetAndEpoch(offset, 1)) as writing:
        writing.add(frame(1000, 0, b"record"))
        writing.complete()
    return Path(log.checkpoints.path(OffsetAndEpoch(offset, 1)))


def damage(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)


@pytest.mark.parametrize("has_earlier", [False, True])
def test_a_damaged_snapshot_is_not_used_if_the_log_contains_its_records(
    log: MetadataLog, has_earlier: bool, caplog: pytest.LogCaptureFixture
) -> None:
    for offset in range(10):
        log.append_records(offset, 1, [frame(1000, 0, b"x" * 100)])
    earlier = OffsetAndEpoch(4, 1) if has_earlier else None
    if has_earlier:
        snapshot_at(log, 4)
    path = snapshot_at(log, 8)
    log.close()
    damage(path)
    opened = reopened(log)
    found = opened.found()
    assert (found.end_offset, found.snapshot, opened.checkpoints.latest) == (10, earlier, earlier)
    assert Path(f"{path}.damaged").exists()
    assert not path.exists()
    assert "continues without the snapshot" in caplog.text
    assert reopened(log).found() == found


@pytest.mark.parametrize("case", ["the log ends before", "the log begins there", "the first voters"])
def test_a_damaged_snapshot_that_is_needed_stops_the_node(log: MetadataLog, case: str) -> None:
    if case == "the first voters":
        with log.checkpoints.write(BOOTSTRAP, voters=VOTER_SET) as writing:
            writing.complete()
        path = Path(log.checkpoints.path(BOOTSTRAP))
    else:
        path = snapshot_at(log, 8)
        if case == "the log begins there":
            log.install(OffsetAndEpoch(8, 1))
            log.append_records(8, 1, [frame(1000, 0, b"")])
        else:
            log.append_records(0, 1, [frame(1000, 0, b"")])
    log.close()
    damage(path)
    with pytest.raises(CorruptFile, match="restore it from a backup"):
        reopened(log)
    assert path.exists()


def test_the_age_of_the_log_is_that_of_its_oldest_records(tmp_path: Path) -> None:
    clock = Clock()
    log = MetadataLog.open(str(tmp_path), clock, segment_bytes=200)
    assert log.age_ms() == 0
    for offset in range(5):
        log.append_records(offset, 1, [frame(1000, 0, b"x" * 100)])
        clock.ms += 10
    assert log.age_ms() == 50
    log.checkpoints.write(OffsetAndEpoch(3, 1)).complete()
    log.move_start(3)
    assert log.age_ms() == 20


def test_a_log_that_ends_before_its_snapshot_is_emptied(log: MetadataLog) -> None:
    log.append_records(0, 1, [frame(1000, 0, b"")])
    with log.checkpoints.write(OffsetAndEpoch(7, 4)) as writing:
        writing.complete()
    found = reopened(log).found()
    assert found[:4] == (OffsetAndEpoch(7, 4), 7, (), OffsetAndEpoch(7, 4))
