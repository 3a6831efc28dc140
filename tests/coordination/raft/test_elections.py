"""Elections: votes, pre-votes, and the messages of leaders about their epochs."""

from __future__ import annotations

from kafka_compat.coordination.raft import effects, events
from kafka_compat.coordination.raft.events import RaftError
from kafka_compat.coordination.raft.quorum_state import SUCCESSION_STEP_MS
from kafka_compat.coordination.raft.values import (
    Batch,
    ElectionState,
    OffsetAndEpoch,
    RaftSettings,
    Role,
)
from tests.coordination.raft.bench import Bench, key, log_of


def test_a_vote_is_granted_once_in_an_epoch_and_saved_before_it_is_answered() -> None:
    bench = Bench()
    assert bench.vote(1, 2)
    kinds = [type(effect) for effect in bench.effects]
    assert kinds.index(effects.SaveElection) < kinds.index(effects.AnswerVote)
    assert not bench.vote(1, 3)
    assert bench.vote(1, 2)


def test_a_vote_is_remembered_after_a_restart() -> None:
    bench = Bench(election=ElectionState(4, -1, key(2)))
    assert not bench.vote(4, 3)
    assert bench.vote(4, 2)


def test_a_log_is_compared_by_its_last_epoch_first() -> None:
    bench = Bench(election=ElectionState(3), log=log_of((1, 5), (3, 1)))
    assert not bench.vote(4, 2, OffsetAndEpoch(9, 2))
    assert not bench.vote(4, 2, OffsetAndEpoch(5, 3))
    assert bench.vote(4, 2, OffsetAndEpoch(6, 3))


def test_no_vote_is_granted_once_the_leader_is_known() -> None:
    assert not Bench().follow(epoch=3).vote(3, 3)


def test_a_pre_vote_changes_nothing() -> None:
    bench = Bench()
    assert bench.vote(0, 2, pre=True)
    assert not bench.all(effects.SaveElection)
    assert bench.vote(0, 3, pre=True)


def test_a_follower_refuses_pre_votes_once_it_has_fetched() -> None:
    bench = Bench().follow()
    fetch = bench.one(effects.SendFetch)
    assert bench.vote(1, 3, pre=True)
    bench.answer_fetch(fetch)
    assert not bench.vote(1, 3, pre=True)


def test_a_follower_grants_pre_votes_when_the_process_of_its_leader_is_gone() -> None:
    bench = Bench().follow()
    bench.answer_fetch(bench.one(effects.SendFetch))
    fetch = bench.one(effects.SendFetch)
    bench.send(events.RequestFailed(fetch.correlation_id, 2, is_refused=True))
    assert bench.vote(1, 3, pre=True)


def test_a_leader_refuses_pre_votes() -> None:
    bench = Bench().lead()
    assert not bench.vote(1, 2, OffsetAndEpoch(9, 1), pre=True)


def test_an_older_epoch_is_fenced() -> None:
    bench = Bench(election=ElectionState(5))
    assert not bench.vote(4, 2)
    assert bench.one(effects.AnswerVote).error is RaftError.FENCED_LEADER_EPOCH


def test_a_request_with_a_higher_epoch_deposes_the_leader_even_if_it_is_a_pre_vote() -> None:
    bench = Bench().lead()
    bench.vote(9, 3, pre=True)
    assert (bench.machine.role, bench.machine.epoch) == (Role.UNATTACHED, 9)


def test_a_request_whose_epoch_would_exhaust_the_epochs_is_rejected() -> None:
    for epoch in (2**30 + 1, 2**31 - 1):
        bench = Bench().lead()
        bench.vote(epoch, 3, pre=True)
        assert bench.one(effects.AnswerVote).error is RaftError.INVALID_REQUEST
        bench.send(events.BeginQuorumEpochRequested(0, epoch, 3, key(1)))
        assert bench.one(effects.AnswerEpoch).error is RaftError.INVALID_REQUEST
        bench.send(events.EndQuorumEpochRequested(0, epoch, 3, ()))
        assert bench.one(effects.AnswerEpoch).error is RaftError.INVALID_REQUEST
        assert (bench.machine.role, bench.machine.epoch) == (Role.LEADER, 1)


def test_a_quorum_with_a_very_high_epoch_goes_on_electing_leaders() -> None:
    bench = Bench(election=ElectionState(2**30 + 5))
    assert bench.vote(2**30 + 6, 2)


def test_a_vote_meant_for_another_directory_is_rejected() -> None:
    bench = Bench()
    bench.send(events.VoteRequested(0, 1, key(2), key(3), OffsetAndEpoch(0, 0), False))
    assert bench.one(effects.AnswerVote).error is RaftError.INVALID_VOTER_KEY


def test_a_voter_without_leader_asks_for_pre_votes_in_the_same_epoch() -> None:
    bench = Bench()
    votes = bench.until(effects.SendVote)
    assert [(vote.node_id, vote.epoch, vote.pre_vote) for vote in votes] == [(2, 0, True), (3, 0, True)]
    assert bench.machine.role is Role.PROSPECTIVE


def test_a_majority_of_pre_votes_makes_a_candidate_and_of_votes_a_leader() -> None:
    bench = Bench().lead()
    assert (bench.machine.role, bench.machine.epoch) == (Role.LEADER, 1)
    change = bench.one(effects.AppendLeaderChange)
    assert (change.base_offset, change.epoch, change.granting) == (0, 1, (key(1), key(2)))


def test_a_voter_that_does_not_know_pre_votes_makes_a_candidate() -> None:
    bench = Bench()
    vote = bench.until(effects.SendVote)[0]
    error = RaftError.UNSUPPORTED_VERSION
    bench.send(events.VoteAnswered(vote.correlation_id, vote.node_id, error, 0, -1, False, True))
    assert bench.machine.role is Role.CANDIDATE


def test_a_prospective_node_that_cannot_win_follows_the_leader_that_it_knew() -> None:
    bench = Bench().follow()
    for vote in bench.until(effects.SendVote):
        answer = events.VoteAnswered(vote.correlation_id, vote.node_id, RaftError.NONE, 1, 2, False, True)
        bench.send(answer)
    assert (bench.machine.role, bench.machine.leader_id) == (Role.FOLLOWER, 2)


def test_a_voter_that_rejected_a_pre_vote_is_asked_again_soon() -> None:
    """It may notice later than this node that the leader, node 2, is gone."""
    bench = Bench().follow()
    vote = next(each for each in bench.until(effects.SendVote) if each.node_id == 3)
    bench.send(events.VoteAnswered(vote.correlation_id, 3, RaftError.NONE, 1, 2, False, True))
    rejected_ms = bench.now_ms
    (again,) = bench.until(effects.SendVote)
    assert (again.node_id, bench.now_ms - rejected_ms) == (3, SUCCESSION_STEP_MS)
    bench.send(events.VoteAnswered(again.correlation_id, 3, RaftError.NONE, 1, 2, True, True))
    assert bench.machine.role is Role.CANDIDATE


def test_a_candidate_that_has_split_the_vote_does_not_wait_for_its_election_timeout() -> None:
    bench = Bench()
    vote = next(each for each in bench.until(effects.SendVote) if each.node_id == 3)
    bench.send(events.VoteAnswered(vote.correlation_id, 3, RaftError.NONE, 0, -1, True, True))
    to_2, to_3 = bench.all(effects.SendVote)
    bench.send(events.RequestFailed(to_2.correlation_id, 2, is_refused=True))
    bench.send(events.VoteAnswered(to_3.correlation_id, 3, RaftError.NONE, 1, -1, False, False))
    assert not bench.all(effects.RoleChanged)
    bench.pass_time(RaftSettings().election_backoff_max_ms)
    assert bench.machine.role is Role.PROSPECTIVE


def test_a_late_vote_does_not_count() -> None:
    bench = Bench()
    vote = bench.until(effects.SendVote)[0]
    answer = events.VoteAnswered(vote.correlation_id + 100, vote.node_id, RaftError.NONE, 0, -1, True, True)
    bench.send(answer)
    assert bench.machine.role is Role.PROSPECTIVE


def test_the_only_voter_leads_at_once() -> None:
    assert Bench((1,)).machine.role is Role.LEADER


def test_an_observer_never_asks_for_votes() -> None:
    bench = Bench((2, 3))
    bench.pass_time(10_000)
    assert bench.machine.role is Role.UNATTACHED
    assert not bench.all(effects.SendVote)


def test_a_leader_that_restarts_is_resigned_and_leaves_its_epoch() -> None:
    bench = Bench(election=ElectionState(3, 1, key(1)), log=log_of((3, 2)))
    assert bench.machine.role is Role.RESIGNED
    assert {effect.node_id for effect in bench.all(effects.SendEndQuorumEpoch)} == {2, 3}
    assert bench.until(effects.SendVote)[0].epoch == 4


def test_the_first_successor_of_a_resigning_leader_stands_at_once() -> None:
    bench = Bench().follow()
    bench.send(events.EndQuorumEpochRequested(0, 1, 2, (key(1), key(3))))
    assert bench.machine.role is Role.PROSPECTIVE


def test_later_successors_wait_but_grant_pre_votes() -> None:
    bench = Bench().follow()
    bench.answer_fetch(bench.one(effects.SendFetch))
    bench.send(events.EndQuorumEpochRequested(0, 1, 2, (key(3), key(1))))
    assert bench.machine.role is Role.FOLLOWER
    assert bench.vote(1, 3, pre=True)
    assert bench.until(effects.SendVote) and bench.now_ms == 500


def test_a_leader_that_stops_names_its_successors_by_their_logs() -> None:
    bench = Bench().lead()
    bench.flush()
    bench.fetch(3, 1, 1)
    bench.fetch(2, 0, 0)
    bench.send(events.Resigning())
    ends = bench.all(effects.SendEndQuorumEpoch)
    assert [end.successors for end in ends] == [(key(3), key(2))] * 2
    bench.pass_time(10_000)
    assert bench.machine.role is Role.RESIGNED


def test_a_second_leader_of_an_epoch_is_not_believed() -> None:
    bench = Bench().follow(2)
    bench.send(events.BeginQuorumEpochRequested(0, 1, 3, key(1)))
    assert bench.one(effects.AnswerEpoch).error is RaftError.INVALID_REQUEST
    assert bench.machine.leader_id == 2


def test_a_node_does_not_believe_that_it_leads_an_epoch_which_it_has_lost() -> None:
    bench = Bench()
    fetch = bench.pass_time(100) and bench.machine
    assert fetch is not None
    bench.send(events.VoteRequested(0, 4, key(2), key(1), OffsetAndEpoch(0, 0), True))
    assert (bench.machine.epoch, bench.machine.leader_id) == (4, -1)


def test_a_log_with_a_higher_epoch_than_quorum_state_counts() -> None:
    log = log_of()
    log.append(Batch(0, 0, 7))
    assert Bench(log=log).machine.epoch == 7
