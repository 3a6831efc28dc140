"""The file quorum-state."""

from __future__ import annotations

import json
import random
from pathlib import Path
from uuid import UUID

import pytest

from kafka_compat.coordination.raft.values import ElectionState, ReplicaKey
from kafka_compat.quorum.election_file import ElectionFile
from kafka_compat.storage.errors import CorruptFile
from kafka_compat.testing.simulation.filesystem import Crash, SimulatedFilesystem

DIRECTORY_ID = UUID("f81d4fae-7dec-11d0-a765-00a0c91e6bf6")


def test_a_missing_file_is_the_initial_state(tmp_path: Path) -> None:
    assert ElectionFile(str(tmp_path), [1]).load() == ElectionState()


@pytest.mark.parametrize("voters", [[2, 1], None])
@pytest.mark.parametrize(
    "state",
    [
        ElectionState(3, 1, None),
        ElectionState(7, -1, ReplicaKey(2, DIRECTORY_ID)),
        ElectionState(8, 2, ReplicaKey(2, DIRECTORY_ID)),
    ],
)
def test_a_saved_state_is_loaded_again(
    tmp_path: Path, voters: list[int] | None, state: ElectionState
) -> None:
    file = ElectionFile(str(tmp_path), voters)
    file.save(state)
    if voters is not None and state.voted is not None:
        # Version 0 has no directory IDs.
        state = state._replace(voted=ReplicaKey(state.voted.node_id))
    assert file.load() == state


def test_files_have_the_fields_of_kafka(tmp_path: Path) -> None:
    file = ElectionFile(str(tmp_path), [2, 1])
    file.save(ElectionState(7, -1, ReplicaKey(2)))
    assert json.loads((tmp_path / "quorum-state").read_text()) == {
        "clusterId": "",
        "leaderId": -1,
        "leaderEpoch": 7,
        "votedId": 2,
        "appliedOffset": 0,
        "currentVoters": [{"voterId": 1}, {"voterId": 2}],
        "data_version": 0,
    }
    ElectionFile(str(tmp_path), None).save(ElectionState(7, 2))
    assert json.loads((tmp_path / "quorum-state").read_text()) == {
        "leaderId": 2,
        "leaderEpoch": 7,
        "votedId": -1,
        "votedDirectoryId": "AAAAAAAAAAAAAAAAAAAAAA",
        "data_version": 1,
    }


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"{}",
        b"[1]",
        b"null",
        b'{"leaderId":1,"leaderEpoch":1,"votedId":-1,"data_version":2}',
        b'{"leaderId":1,"leaderEpoch":"x","votedId":-1,"data_version":0}',
        b'{"leaderId":1,"leaderEpoch":1,"votedId":-1,"votedDirectoryId":"?","data_version":1}',
        b"\xff\xfe",
    ],
)
def test_a_damaged_file_is_refused_with_advice(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "quorum-state").write_bytes(content)
    with pytest.raises(CorruptFile, match=r"quorum-state is damaged .*empty the metadata directory"):
        ElectionFile(str(tmp_path), [1]).load()


@pytest.mark.parametrize("seed", range(40))
def test_a_power_failure_leaves_the_old_or_the_new_state(seed: int) -> None:
    disk = SimulatedFilesystem(random.Random(seed))
    disk.mkdir("/data")
    disk.sync_directory("/")
    states = [ElectionState(epoch, 1, ReplicaKey(1)) for epoch in range(1, 4)]
    disk.crash_at = disk.steps + seed % 20 + 1
    saved = ElectionState()
    for state in states:
        try:
            ElectionFile("/data", [1], disk).save(state)
        except Crash:
            assert ElectionFile("/data", [1], disk.after_crash()).load() in (saved, state)
            return
        saved = state
    assert ElectionFile("/data", [1], disk.after_kill()).load() == saved
