"""Replication to a follower, and how nodes find the leader."""

from __future__ import annotations

import pytest

from kafka_compat.coordination.raft import effects, events
from kafka_compat.coordination.raft.events import RaftError
from kafka_compat.coordination.raft.following import InconsistentLog
from kafka_compat.coordination.raft.values import Batch, ElectionState, OffsetAndEpoch, Role
from tests.coordination.raft.bench import Bench, log_of, voters


def test_the_next_fetch_waits_until_the_records_are_flushed() -> None:
    bench = Bench().follow()
    bench.answer_fetch(bench.one(effects.SendFetch), Batch(0, 4, 1))
    assert bench.one(effects.AppendFetched).batches == (Batch(0, 4, 1),)
    assert bench.one(effects.Flush).end_offset == 5
    assert not bench.all(effects.SendFetch)
    bench.flush()
    fetch = bench.one(effects.SendFetch)
    assert (fetch.node_id, fetch.offset, fetch.last_epoch) == (2, 5, 1)


def test_records_are_committed_up_to_the_leaders_high_watermark() -> None:
    bench = Bench().follow()
    bench.answer_fetch(bench.one(effects.SendFetch), Batch(0, 4, 1), high_watermark=9)
    assert bench.one(effects.Committed).high_watermark == 5


def test_the_log_is_truncated_where_it_diverges() -> None:
    bench = Bench(log=log_of((1, 3), (2, 4))).follow(epoch=3)
    bench.answer_fetch(bench.one(effects.SendFetch), epoch=3, diverging=OffsetAndEpoch(2, 1))
    assert bench.one(effects.Truncate).offset == 2
    assert bench.one(effects.SendFetch).offset == 2


def test_a_log_that_diverges_below_the_high_watermark_stops_the_node() -> None:
    bench = Bench(log=log_of((1, 3))).follow()
    bench.answer_fetch(bench.one(effects.SendFetch), high_watermark=3)
    with pytest.raises(InconsistentLog, match="below the high watermark 3"):
        bench.answer_fetch(bench.one(effects.SendFetch), diverging=OffsetAndEpoch(1, 1))


def test_a_flush_counts_only_for_records_that_were_not_truncated() -> None:
    bench = Bench(log=log_of((1, 2))).follow(epoch=2)
    bench.answer_fetch(bench.one(effects.SendFetch), Batch(2, 5, 1), epoch=2)
    flush = bench.one(effects.Flush)
    bench.log.truncate(3)
    bench.log.append(Batch(3, 5, 2))
    bench.send(events.Flushed(flush.end_offset))
    assert bench.log.flushed_end == 3
    assert bench.one(effects.Flush).end_offset == 6


def test_a_snapshot_is_fetched_and_installed() -> None:
    bench = Bench().follow()
    snapshot = OffsetAndEpoch(50, 1)
    bench.answer_fetch(bench.one(effects.SendFetch), snapshot=snapshot)
    assert bench.one(effects.FetchSnapshot) == effects.FetchSnapshot(2, 1, snapshot)
    for _ in range(5):
        bench.pass_time(1000)
        bench.send(events.SnapshotProgressed(snapshot))
    assert bench.machine.role is Role.FOLLOWER
    bench.send(events.SnapshotFetched(snapshot, None))
    assert bench.one(effects.InstallSnapshot).snapshot == snapshot
    assert bench.one(effects.Committed).high_watermark == 50
    assert bench.one(effects.SendFetch).offset == 50


def test_a_snapshot_that_comes_after_a_change_of_the_leader_is_not_installed() -> None:
    bench = Bench().follow()
    snapshot = OffsetAndEpoch(50, 1)
    bench.answer_fetch(bench.one(effects.SendFetch), snapshot=snapshot)
    bench.follow(3, epoch=2)
    bench.send(events.SnapshotFetched(snapshot, None))
    assert not bench.all(effects.InstallSnapshot)


def test_an_answer_that_is_late_is_ignored() -> None:
    bench = Bench().follow()
    late = bench.one(effects.SendFetch)
    bench.follow(3, epoch=2)
    bench.answer_fetch(late, Batch(0, 0, 1))
    assert not bench.all(effects.AppendFetched)


def test_a_follower_that_cannot_fetch_becomes_prospective_after_the_fetch_timeout() -> None:
    bench = Bench().follow()
    bench.until(effects.SendVote)
    assert bench.now_ms == 2000


def test_a_follower_whose_leader_has_no_process_becomes_prospective_soon() -> None:
    bench = Bench().follow()
    fetch = bench.one(effects.SendFetch)
    bench.send(events.RequestFailed(fetch.correlation_id, 2, is_refused=True))
    bench.until(effects.SendVote)
    assert bench.now_ms <= 25


def test_a_connection_that_breaks_is_no_reason_to_stand() -> None:
    bench = Bench().follow()
    fetch = bench.one(effects.SendFetch)
    bench.send(events.RequestFailed(fetch.correlation_id, 2, is_refused=False))
    bench.pass_time(1000)
    assert bench.machine.role is Role.FOLLOWER


def test_an_observer_finds_the_leader_by_asking_the_voters() -> None:
    bench = Bench((2, 3))
    fetch = bench.one(effects.SendFetch)
    error = RaftError.NOT_LEADER_OR_FOLLOWER
    bench.answer_fetch(fetch, error=error, epoch=4, leader=3 if fetch.node_id == 2 else 2)
    assert bench.machine.role is Role.FOLLOWER
    assert bench.one(effects.SendFetch).node_id == bench.machine.leader_id
    assert bench.one(effects.SaveElection).state.epoch == 4


def test_a_node_without_any_voters_asks_the_bootstrap_addresses() -> None:
    bench = Bench((), log=log_of())
    fetch = bench.one(effects.SendFetch)
    assert fetch.node_id == -1
    bench.answer_fetch(fetch, error=RaftError.NOT_LEADER_OR_FOLLOWER, epoch=1, leader=2)
    bench.answer_fetch(bench.one(effects.SendFetch), Batch(0, 0, 1, voters(2)))
    assert (bench.machine.role, sorted(bench.machine.voters)) == (Role.FOLLOWER, [2])


def test_a_follower_asks_other_voters_while_its_leader_does_not_answer() -> None:
    bench = Bench().follow()
    fetch = bench.one(effects.SendFetch)
    bench.send(events.RequestFailed(fetch.correlation_id, 2, is_refused=False))
    assert bench.one(effects.SendFetch).node_id == 3


def test_only_one_fetch_is_under_way() -> None:
    bench = Bench().follow()
    bench.pass_time(400)
    bench.follow()
    assert not bench.all(effects.SendFetch)


def test_a_prospective_node_follows_its_leader_again_when_the_leader_calls() -> None:
    bench = Bench().follow()
    assert bench.until(effects.SendVote)
    bench.follow()
    assert bench.machine.role is Role.FOLLOWER


def test_a_follower_remembers_its_leader_after_a_restart() -> None:
    bench = Bench(election=ElectionState(3, 2))
    assert (bench.machine.role, bench.one(effects.SendFetch).node_id) == (Role.FOLLOWER, 2)


def test_a_node_hears_its_leader_once_a_fetch_is_answered_and_until_its_process_is_gone() -> None:
    bench = Bench().follow()
    assert not bench.machine.hears_leader
    bench.answer_fetch(bench.one(effects.SendFetch))
    assert bench.machine.hears_leader
    fetch = bench.one(effects.SendFetch)
    bench.send(events.RequestFailed(fetch.correlation_id, 2, is_refused=True))
    assert not bench.machine.hears_leader
    bench.until(effects.SendVote)
    bench.pass_time(5000)
    assert bench.machine.leader_id == 2
    assert not bench.machine.hears_leader


def test_a_node_that_seeks_a_leader_in_vain_expects_none_until_it_hears_the_known_one() -> None:
    bench = Bench().follow()
    bench.answer_fetch(bench.one(effects.SendFetch))
    assert bench.machine.expected_leader_id == 2
    expected = set()
    for _ in range(20):
        bench.pass_time(1000)
        expected.add((bench.machine.role, bench.machine.leader_id, bench.machine.expected_leader_id))
    # The node alternates between both roles, and goes on naming the leader.
    lost = {(Role.FOLLOWER, 2, -1), (Role.PROSPECTIVE, 2, -1)}
    assert expected - {(Role.FOLLOWER, 2, 2)} == lost
    assert bench.machine.expected_leader_id == -1
    bench.until(effects.SendFetch)
    bench.answer_fetch(next(fetch for fetch in bench.all(effects.SendFetch) if fetch.node_id == 2))
    assert bench.machine.expected_leader_id == 2
