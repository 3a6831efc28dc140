"""The work of a leader: records, high watermark, fetches, and when it resigns."""

from __future__ import annotations

import pytest

from kafka_compat.coordination.raft import effects, events
from kafka_compat.coordination.raft.events import RaftError
from kafka_compat.coordination.raft.leader_state import OBSERVER_SESSION_TIMEOUT_MS
from kafka_compat.coordination.raft.values import ElectionState, OffsetAndEpoch, Role
from tests.coordination.raft.bench import Bench, key, log_of


def leader(bench: Bench | None = None) -> Bench:
    """Return a bench whose leader has flushed its first record."""
    bench = (bench or Bench()).lead()
    bench.flush()
    return bench


def test_a_proposal_is_appended_at_once_and_shares_the_next_flush() -> None:
    bench = leader()
    bench.send(events.Proposed("a", 2))
    assert bench.one(effects.AppendProposal) == effects.AppendProposal("a", 1, 1)
    assert bench.one(effects.Flush).end_offset == 3
    bench.send(events.Proposed("b", 1))
    bench.send(events.Proposed("c", 1))
    assert not bench.all(effects.Flush)
    bench.send(events.Flushed(3))
    assert bench.one(effects.Flush).end_offset == 5


@pytest.mark.parametrize("epoch", [0, 2])
def test_a_proposal_for_another_epoch_is_rejected(epoch: int) -> None:
    bench = leader()
    bench.send(events.Proposed("a", 1, epoch))
    assert bench.one(effects.RejectProposal).proposal_id == "a"


def test_a_follower_rejects_proposals() -> None:
    bench = Bench().follow()
    bench.send(events.Proposed("a", 1))
    assert bench.one(effects.RejectProposal).proposal_id == "a"


def test_records_are_committed_when_a_majority_has_flushed_them() -> None:
    bench = Bench().lead()
    bench.fetch(2, 1, 1)
    assert not bench.all(effects.Committed)
    bench.flush()
    assert bench.one(effects.Committed).high_watermark == 1


def test_records_of_earlier_epochs_are_committed_only_with_one_of_this_epoch() -> None:
    bench = leader(Bench(log=log_of((1, 5)), election=ElectionState(1)))
    bench.fetch(2, 5, 1)
    assert not bench.all(effects.Committed)
    bench.fetch(2, 6, 2)
    assert bench.one(effects.Committed).high_watermark == 6


def test_a_fetch_is_answered_with_records_that_are_not_flushed() -> None:
    bench = leader()
    bench.send(events.Proposed("a", 3))
    bench.fetch(2, 1, 1)
    answer = bench.one(effects.AnswerFetch)
    assert (answer.offset, answer.end_offset) == (1, 4)


def test_a_waiting_fetch_is_answered_when_the_log_grows() -> None:
    bench = leader()
    bench.fetch(2, 1, 1, high_watermark=1)
    assert not bench.all(effects.AnswerFetch)
    bench.send(events.Proposed("a", 1))
    assert bench.one(effects.AnswerFetch).end_offset == 2


def test_a_waiting_fetch_is_answered_when_the_high_watermark_passes_the_one_it_names() -> None:
    bench = leader()
    bench.fetch(3, 1, 1, high_watermark=1)
    bench.fetch(2, 1, 1, high_watermark=0)
    answer = bench.one(effects.AnswerFetch)
    assert (answer.request_id, answer.high_watermark, answer.end_offset) == (2, 1, 1)


def test_a_waiting_fetch_is_answered_at_its_deadline() -> None:
    bench = leader()
    bench.fetch(2, 1, 1, high_watermark=1)
    bench.until(effects.AnswerFetch)
    assert bench.one(effects.AnswerFetch).request_id == 2


def test_a_waiting_fetch_is_answered_when_the_leadership_ends() -> None:
    bench = leader()
    bench.fetch(2, 1, 1, high_watermark=1)
    bench.vote(5, 3)
    answer = bench.one(effects.AnswerFetch)
    assert (answer.error, answer.epoch) == (RaftError.NOT_LEADER_OR_FOLLOWER, 5)


def test_a_newer_fetch_of_a_replica_ends_the_older_one() -> None:
    bench = leader()
    bench.fetch(2, 1, 1, high_watermark=1)
    bench.fetch(2, 1, 1, high_watermark=1)
    assert len(bench.all(effects.AnswerFetch)) == 1


@pytest.mark.parametrize(
    ("epoch", "error"),
    [(0, RaftError.FENCED_LEADER_EPOCH), (2, RaftError.UNKNOWN_LEADER_EPOCH)],
)
def test_a_fetch_in_another_epoch_is_rejected(epoch: int, error: RaftError) -> None:
    bench = leader()
    bench.fetch(2, 0, 0, epoch=epoch)
    assert bench.one(effects.AnswerFetch).error is error
    assert bench.machine.role is Role.LEADER


def test_a_follower_names_the_leader_to_replicas_that_fetch_from_it() -> None:
    bench = Bench().follow()
    bench.fetch(3, 0, 0)
    answer = bench.one(effects.AnswerFetch)
    assert (answer.error, answer.leader_id) == (RaftError.NOT_LEADER_OR_FOLLOWER, 2)


def test_a_fetch_with_impossible_values_is_rejected() -> None:
    bench = leader()
    bench.fetch(2, -1, 0)
    assert bench.one(effects.AnswerFetch).error is RaftError.INVALID_REQUEST
    bench.fetch(2, 5, 9)
    assert bench.one(effects.AnswerFetch).error is RaftError.INVALID_REQUEST


@pytest.mark.parametrize(
    ("offset", "last_epoch", "diverging"),
    [
        (4, 1, OffsetAndEpoch(3, 1)),
        (2, 2, OffsetAndEpoch(3, 1)),
        (9, 2, OffsetAndEpoch(3, 1)),
        (9, 3, OffsetAndEpoch(5, 3)),
        (9, 4, OffsetAndEpoch(6, 4)),
    ],
)
def test_a_fetch_of_another_log_is_told_where_they_diverge(
    offset: int, last_epoch: int, diverging: OffsetAndEpoch
) -> None:
    bench = leader(Bench(log=log_of((1, 3), (3, 2)), election=ElectionState(3)))
    bench.fetch(2, offset, last_epoch)
    assert bench.one(effects.AnswerFetch).diverging == diverging


def test_a_fetch_from_the_start_needs_the_snapshot_wherever_the_log_begins() -> None:
    snapshot = OffsetAndEpoch(2, 1)
    bench = leader(Bench(log=log_of((1, 3), snapshot=snapshot), election=ElectionState(1)))
    bench.fetch(2, 0, 0)
    assert bench.one(effects.AnswerFetch).snapshot == snapshot


def test_a_fetch_below_the_start_of_the_log_needs_the_snapshot() -> None:
    snapshot = OffsetAndEpoch(2, 1)
    bench = leader(Bench(log=log_of((1, 3), snapshot=snapshot), election=ElectionState(1)))
    bench.send(events.LogStartMoved(2))
    bench.fetch(2, 1, 1)
    assert bench.one(effects.AnswerFetch).snapshot == snapshot
    bench.fetch(2, 2, 1)
    assert bench.one(effects.AnswerFetch).snapshot is None


def test_the_snapshot_that_a_format_wrote_is_never_sent() -> None:
    bench = leader(Bench(log=log_of(snapshot=OffsetAndEpoch(0, 0))))
    bench.fetch(2, 0, 0)
    assert bench.one(effects.AnswerFetch).snapshot is None


def test_a_leader_without_fetches_of_a_majority_resigns() -> None:
    bench = leader()
    begun = bench.now_ms
    bench.fetch(9, 1, 1)
    bench.until(effects.SendEndQuorumEpoch)
    assert bench.now_ms - begun == 3000


def test_fetches_of_a_majority_keep_the_leader() -> None:
    bench = leader()
    for _ in range(10):
        bench.pass_time(1000)
        bench.fetch(2, 1, 1, high_watermark=1)
    assert bench.machine.role is Role.LEADER


def test_voters_that_do_not_fetch_are_told_about_the_leader() -> None:
    bench = Bench().lead()
    assert {begin.node_id for begin in bench.all(effects.SendBeginQuorumEpoch)} == {2, 3}
    for begin in bench.all(effects.SendBeginQuorumEpoch):
        bench.send(events.EpochAnswered(begin.correlation_id, begin.node_id, RaftError.NONE, 1, 1))
    bench.pass_time(900)
    bench.fetch(2, 0, 0)
    assert [begin.node_id for begin in bench.until(effects.SendBeginQuorumEpoch)] == [3]


def test_the_quorum_is_described_with_voters_and_observers() -> None:
    bench = leader()
    bench.fetch(2, 1, 1)
    bench.fetch(7, 0, 0)
    described = bench.machine.describe(bench.now_ms)
    assert described is not None
    assert (described.leader_id, described.epoch, described.high_watermark) == (1, 1, 1)
    ends = {item.key.node_id: item.log_end_offset for item in described.voters}
    assert ends == {1: 1, 2: 1, 3: -1}
    assert [item.key for item in described.observers] == [key(7)]
    assert described.voters[1].last_caught_up_ms == bench.now_ms


def test_observers_that_do_not_fetch_are_forgotten() -> None:
    bench = Bench((1,))
    bench.flush()
    bench.fetch(7, 0, 0)
    bench.pass_time(OBSERVER_SESSION_TIMEOUT_MS + 2000)
    described = bench.machine.describe(bench.now_ms)
    assert described is not None and not described.observers


def test_a_fetch_shows_that_the_process_of_a_replica_is_alive() -> None:
    bench = leader()
    bench.fetch(7, 0, 0)
    assert bench.one(effects.FetchedFrom).node_id == 7
