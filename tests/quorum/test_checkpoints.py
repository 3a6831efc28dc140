"""Snapshots of the metadata log: writing, receiving, reading and deletion."""

from __future__ import annotations

from pathlib import Path
from uuid import UUID

import pytest

from kafka_compat.coordination.raft.values import OffsetAndEpoch, ReplicaKey, Voter
from kafka_compat.coordination.replicated_store.record_frames import frame
from kafka_compat.quorum.checkpoints import Checkpoints, PositionOutOfRange, file_name, snapshot_of
from kafka_compat.storage.errors import CorruptFile

SNAPSHOT = OffsetAndEpoch(1234, 5)
VOTERS = {1: Voter(ReplicaKey(1, UUID(int=1 << 100)), {"CONTROLLER": ("127.0.0.1", 9093)})}


def checkpoints_in(directory: Path) -> Checkpoints:
    directory.mkdir(exist_ok=True)
    return Checkpoints(str(directory), lambda: 1_700_000_000_000)


@pytest.fixture
def checkpoints(tmp_path: Path) -> Checkpoints:
    return checkpoints_in(tmp_path)


def write(checkpoints: Checkpoints, snapshot: OffsetAndEpoch, count: int = 3, size_bytes: int = 10) -> None:
    with checkpoints.write(snapshot, voters=VOTERS) as writing:
        for number in range(count):
            writing.add(frame(1010, 0, number.to_bytes(4) + b"x" * size_bytes))
        writing.complete()


def names(checkpoints: Checkpoints) -> list[str]:
    return sorted(path.name for path in Path(checkpoints.directory).iterdir())


def test_file_names_are_those_of_kafka() -> None:
    assert file_name(SNAPSHOT) == "00000000000000001234-0000000005.checkpoint"
    assert snapshot_of(file_name(SNAPSHOT)) == SNAPSHOT
    for name in (
        "1234-5.checkpoint",
        file_name(SNAPSHOT) + ".part",
        "leader-epoch-checkpoint",
        "a.checkpoint",
    ):
        assert snapshot_of(name) is None


def test_a_snapshot_contains_its_records_and_voters(checkpoints: Checkpoints) -> None:
    write(checkpoints, SNAPSHOT, count=30, size_bytes=100_000)
    assert checkpoints.latest == SNAPSHOT
    records = list(checkpoints.records(SNAPSHOT))
    assert [int.from_bytes(record.value[:4]) for record in records] == list(range(30))
    assert {(record.type, record.version) for record in records} == {(1010, 0)}
    # The header, kraft.version and the voters have the first offsets.
    assert [record.offset for record in records] == list(range(3, 33))
    assert checkpoints.voters(SNAPSHOT) == VOTERS
    checkpoints.check(SNAPSHOT)
    assert Checkpoints(checkpoints.directory, lambda: 0).all == (SNAPSHOT,)


def test_a_snapshot_without_voters_names_none(checkpoints: Checkpoints) -> None:
    with checkpoints.write(SNAPSHOT) as writing:
        writing.complete()
    assert checkpoints.voters(SNAPSHOT) is None
    assert list(checkpoints.records(SNAPSHOT)) == []


def test_an_incomplete_snapshot_leaves_no_file(checkpoints: Checkpoints) -> None:
    with checkpoints.write(SNAPSHOT) as writing:
        writing.add(frame(1010, 0, b""))
        assert [name.endswith(".checkpoint.part") for name in names(checkpoints)] == [True]
    assert names(checkpoints) == []
    checkpoints.write(SNAPSHOT)
    assert len(names(checkpoints)) == 1
    assert Checkpoints(checkpoints.directory, lambda: 0).all == ()
    assert names(checkpoints) == []


@pytest.mark.parametrize("part_bytes", [1, 100, 1 << 20])
def test_a_snapshot_is_sent_in_parts(tmp_path: Path, part_bytes: int) -> None:
    ours, theirs = checkpoints_in(tmp_path / "ours"), checkpoints_in(tmp_path / "theirs")
    write(ours, SNAPSHOT)
    with theirs.receive(SNAPSHOT) as receiving:
        while True:
            part, size_bytes = ours.read(SNAPSHOT, receiving.position, part_bytes)
            assert 0 < part.size_bytes <= part_bytes
            receiving.write(part.read())
            if receiving.position == size_bytes:
                break
        assert theirs.latest is None
        receiving.complete()
    assert theirs.latest == SNAPSHOT
    assert list(theirs.records(SNAPSHOT)) == list(ours.records(SNAPSHOT))
    for position in (-1, size_bytes, size_bytes + 1):
        with pytest.raises(PositionOutOfRange):
            ours.read(SNAPSHOT, position, 10)
    with pytest.raises(FileNotFoundError):
        ours.read(OffsetAndEpoch(1, 1), 0, 10)


@pytest.mark.parametrize("damage", ["short", "changed", "no header", "empty"])
def test_a_damaged_snapshot_is_not_accepted(tmp_path: Path, damage: str) -> None:
    ours, theirs = checkpoints_in(tmp_path / "ours"), checkpoints_in(tmp_path / "theirs")
    write(ours, SNAPSHOT)
    data = bytearray(Path(ours.path(SNAPSHOT)).read_bytes())
    if damage == "short":
        del data[-70:]
    elif damage == "changed":
        data[len(data) // 2] ^= 1
    elif damage == "no header":
        del data[: int.from_bytes(data[8:12]) + 12]
    else:
        data.clear()
    with theirs.receive(SNAPSHOT) as receiving:
        receiving.write(data)
        with pytest.raises(CorruptFile):
            receiving.complete()
    assert theirs.latest is None
    assert names(theirs) == []
    Path(ours.path(SNAPSHOT)).write_bytes(data)
    with pytest.raises(CorruptFile, match="restore it from a backup"):
        ours.check(SNAPSHOT)


def test_old_snapshots_are_deleted_except_the_first(checkpoints: Checkpoints) -> None:
    for offset in (0, 10, 20, 30):
        write(checkpoints, OffsetAndEpoch(offset, 1 if offset else 0))
    reading, _ = checkpoints.read(OffsetAndEpoch(10, 1), 0, 100)
    checkpoints.delete_old()
    assert [each.offset for each in checkpoints.all] == [0, 20, 30]
    assert names(checkpoints) == [file_name(each) for each in checkpoints.all]
    assert len(reading.read()) == 100
