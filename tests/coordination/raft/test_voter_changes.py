"""Voters that are added and removed (KIP-853)."""

from __future__ import annotations

from kafka_compat.coordination.raft import effects, events
from kafka_compat.coordination.raft.events import RaftError, VoterChange
from kafka_compat.coordination.raft.values import Batch, OffsetAndEpoch, ReplicaKey, Role
from tests.coordination.raft.bench import Bench, key, log_of, voters


def change(bench: Bench, kind: VoterChange, voter: ReplicaKey, timeout_ms: int = 60_000) -> None:
    bench.send(events.VoterChangeRequested("r", kind, voter, {"C": ("h", voter.node_id)}, timeout_ms))


def leader(*nodes: int) -> Bench:
    """A leader of dynamic voters that has committed the voters that were only in its snapshot."""
    bench = Bench(nodes, dynamic=True)
    if len(nodes) > 1:
        bench.lead()
    bench.flush()
    if len(nodes) > 1:
        bench.fetch(2, 3, 1)
    return bench


def answer(bench: Bench) -> RaftError:
    return bench.one(effects.AnswerVoterChange).error


def test_the_voters_of_the_snapshot_0_0_are_appended_by_the_first_leader() -> None:
    bench = Bench((1, 2, 3), dynamic=True).lead()
    appended = bench.one(effects.AppendVoters)
    assert (appended.base_offset, appended.with_version, sorted(appended.voters)) == (1, True, [1, 2, 3])


def test_static_voters_cannot_be_changed() -> None:
    bench = Bench().lead()
    change(bench, VoterChange.REMOVE, key(2))
    assert answer(bench) is RaftError.UNSUPPORTED_VERSION


def test_a_follower_rejects_a_change() -> None:
    bench = Bench().follow()
    change(bench, VoterChange.REMOVE, key(3))
    assert answer(bench) is RaftError.NOT_LEADER_OR_FOLLOWER


def test_a_voter_must_have_caught_up_to_be_added() -> None:
    bench = leader(1)
    change(bench, VoterChange.ADD, key(2))
    assert answer(bench) is RaftError.REQUEST_TIMED_OUT
    bench.fetch(2, 3, 1)
    change(bench, VoterChange.ADD, key(2))
    assert sorted(bench.one(effects.AppendVoters).voters) == [1, 2]


def test_a_change_counts_when_it_is_appended_and_is_answered_when_it_is_committed() -> None:
    bench = leader(1)
    bench.fetch(2, 3, 1)
    change(bench, VoterChange.ADD, key(2))
    assert sorted(bench.machine.voters) == [1, 2]
    bench.flush()
    assert not bench.all(effects.Committed)
    bench.fetch(2, 4, 1)
    assert bench.one(effects.Committed).high_watermark == 4
    assert answer(bench) is RaftError.NONE


def test_only_one_change_is_under_way() -> None:
    bench = leader(1, 2, 3)
    change(bench, VoterChange.REMOVE, key(3), timeout_ms=100)
    change(bench, VoterChange.REMOVE, key(2))
    assert answer(bench) is RaftError.REQUEST_TIMED_OUT
    bench.until(effects.AnswerVoterChange)
    assert answer(bench) is RaftError.REQUEST_TIMED_OUT
    change(bench, VoterChange.REMOVE, key(2))
    assert answer(bench) is RaftError.REQUEST_TIMED_OUT


def test_a_voter_with_another_directory_is_another_voter() -> None:
    bench = leader(1, 2, 3)
    change(bench, VoterChange.REMOVE, ReplicaKey(3, key(9).directory_id))
    assert answer(bench) is RaftError.VOTER_NOT_FOUND
    change(bench, VoterChange.ADD, ReplicaKey(3, key(9).directory_id))
    assert answer(bench) is RaftError.DUPLICATE_VOTER


def test_the_last_voter_cannot_be_removed() -> None:
    bench = leader(1)
    change(bench, VoterChange.REMOVE, key(1))
    assert answer(bench) is RaftError.INVALID_REQUEST


def test_a_leader_that_removes_itself_does_not_count_itself_and_resigns_when_that_is_committed() -> None:
    bench = leader(1, 2, 3)
    change(bench, VoterChange.REMOVE, key(1))
    bench.flush()
    bench.fetch(2, 4, 1)
    assert not bench.all(effects.Committed)
    bench.fetch(3, 4, 1)
    assert answer(bench) is RaftError.NONE
    assert bench.machine.role is Role.RESIGNED


def test_a_change_is_rejected_when_the_leadership_ends() -> None:
    bench = leader(1, 2, 3)
    change(bench, VoterChange.REMOVE, key(3))
    bench.vote(7, 2)
    assert answer(bench) is RaftError.NOT_LEADER_OR_FOLLOWER


def test_a_truncation_undoes_a_set_of_voters() -> None:
    log = log_of((1, 2))
    bench = Bench((1, 2, 3), log=log, dynamic=True).follow(epoch=2)
    bench.answer_fetch(bench.one(effects.SendFetch), Batch(2, 2, 1, voters(1, 2)), epoch=2)
    assert sorted(bench.machine.voters) == [1, 2]
    bench.flush()
    bench.answer_fetch(bench.one(effects.SendFetch), epoch=2, diverging=OffsetAndEpoch(2, 1))
    assert sorted(bench.machine.voters) == [1, 2, 3]


def test_a_removed_node_stands_until_it_knows_that_its_removal_is_committed() -> None:
    """Its log may be the only one that can win."""
    bench = Bench((1, 2), dynamic=True).follow()
    bench.answer_fetch(bench.one(effects.SendFetch), Batch(0, 0, 1, voters(2)), high_watermark=0)
    bench.flush()
    assert [vote.node_id for vote in bench.until(effects.SendVote)] == [2]


def test_a_removed_node_does_not_stand_after_its_removal_is_committed() -> None:
    bench = Bench((1, 2), dynamic=True).follow()
    bench.answer_fetch(bench.one(effects.SendFetch), Batch(0, 0, 1, voters(2)), high_watermark=1)
    bench.flush()
    bench.pass_time(10_000)
    assert not bench.all(effects.SendVote)
