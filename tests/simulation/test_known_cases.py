"""Data loss scenarios that leader epochs prevent, and planted faults that the simulation must detect."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from kafka_compat.coordination.controller import isr_changes as controller_isr
from kafka_compat.coordination.controller.context import ControllerContext
from kafka_compat.coordination.controller.effects import StateWrite
from kafka_compat.coordination.controller.events import IsrChange
from kafka_compat.coordination.controller.outcomes import TopicPartition
from kafka_compat.errors import ErrorCode
from kafka_compat.protocol.messages.fetch import FetchPartition
from kafka_compat.replication import follower_requests
from kafka_compat.replication.follower import Follower
from kafka_compat.replication.in_sync import InSyncReplicas
from kafka_compat.replication.partition import Partition
from kafka_compat.storage.records.records import Record, build_batch
from tests.simulation.cluster import Cluster
from tests.simulation.controller import Controller
from tests.simulation.producer import Violation


def partition_of(cluster: Cluster, broker_id: int) -> Partition:
    held = cluster.brokers[broker_id].partition
    assert held is not None
    return held


def scripted(cluster: Cluster) -> Controller:
    assert isinstance(cluster.controller, Controller)
    return cluster.controller


def write(partition: Partition, leader_epoch: int, count: int) -> None:
    for number in range(count):
        value = b"%d/%d" % (leader_epoch, number)
        batch = memoryview(bytearray(build_batch([Record(timestamp=1, value=value)])))
        partition.log.append_as_leader(batch, leader_epoch=leader_epoch, now_ms=1)
    partition.log.flush()
    partition.flushed(None)


def started(flush_messages: int | None = None, seed: int = 1) -> Cluster:
    """Return a cluster in which broker 1 is the leader and the others follow."""
    cluster = Cluster(seed, flush_messages=flush_messages)
    run_until(
        cluster,
        lambda: all(broker.partition is not None for broker in cluster.brokers.values()),
    )
    cluster.run(200)
    return cluster


def run_until(cluster: Cluster, condition: Callable[[], bool]) -> None:
    for _ in range(5_000):
        if condition():
            return
        cluster.run(1)
    raise AssertionError("the expected state was not reached")


def acknowledged_while_a_follower_does_not_know_it() -> Cluster:
    """KIP-101, first case: a follower has a record above its high watermark, and its leader changes before it
    becomes leader itself.
    """
    cluster = started(flush_messages=0)
    cluster.produce()
    run_until(cluster, lambda: len(cluster.acknowledged) == 1)
    second = partition_of(cluster, 2)
    assert second.log.log_end_offset > second.high_watermark
    scripted(cluster).elect(3, (1, 2, 3))
    run_until(cluster, lambda: second.leader_epoch == 1)
    scripted(cluster).elect(2, (1, 2, 3))
    return cluster


def test_kip_101_a_follower_keeps_records_acknowledged_above_its_high_watermark() -> None:
    cluster = acknowledged_while_a_follower_does_not_know_it()
    cluster.heal()


def test_kip_101_truncation_to_the_high_watermark_would_lose_acknowledged_records(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    truncate_to_high_watermark(monkeypatch)
    cluster = acknowledged_while_a_follower_does_not_know_it()
    with pytest.raises(Violation):
        cluster.heal()


@pytest.mark.parametrize(
    ("leader", "follower_"),
    [
        ([(0, 10), (3, 5)], [(0, 10), (1, 2), (2, 3)]),
        ([(0, 10), (1, 2), (4, 3)], [(0, 8), (2, 6)]),
        ([(0, 5), (2, 5), (4, 5)], [(0, 5), (1, 2), (3, 10)]),
        ([(0, 5), (1, 1), (3, 1), (5, 9)], [(0, 4), (2, 1), (4, 6)]),
        ([(5, 3)], [(4, 3)]),
    ],
)
def test_kip_279_logs_that_diverged_several_times_converge_after_quick_leader_changes(
    leader: list[tuple[int, int]], follower_: list[tuple[int, int]]
) -> None:
    cluster = Cluster(1)
    cluster._events.clear()
    scripted(cluster).leader_epoch = 6
    for broker_id, epochs in ((1, leader), (2, follower_), (3, follower_)):
        cluster.brokers[broker_id].leader_and_isr(-1, 6, (1,), 0)
        for epoch, count in epochs:
            write(partition_of(cluster, broker_id), epoch, count)
    scripted(cluster).elect(1, (1,))
    cluster.heal()
    assert partition_of(cluster, 2).log.log_end_offset == sum(count for _, count in leader)


@pytest.mark.parametrize("delay_ms", range(52, 92, 4))
def test_a_high_watermark_sent_during_a_leader_epoch_change_is_sent_again(
    delay_ms: int,
) -> None:
    """The leader's fetch session considers the high watermark sent, but the follower ignores responses of an
    earlier epoch.
    """
    cluster = started(flush_messages=0)
    cluster.produce()
    cluster.run(delay_ms)
    scripted(cluster).elect(1, (1, 2, 3))
    cluster.heal()


@pytest.mark.parametrize("flush_messages", [0, 1])
def test_a_follower_behind_the_log_start_offset_restarts_from_that_offset(
    flush_messages: int,
) -> None:
    cluster = started(flush_messages=flush_messages)
    cluster.cuts.add(frozenset((1, 2)))
    leader, follower_ = partition_of(cluster, 1), partition_of(cluster, 2)
    cluster.produce()
    run_until(cluster, lambda: 2 not in leader.isr)
    leader.log.update_config(leader.log.config._replace(segment_bytes=200, retention_bytes=0))
    for _ in range(5):
        cluster.produce()
        cluster.run(200)
    leader.log.apply_retention(cluster.now_ms(), leader.high_watermark)
    assert leader.log.log_start_offset > follower_.log.log_end_offset
    cluster.heal()
    assert follower_.log.log_start_offset == leader.log.log_start_offset


def test_a_killed_last_replica_becomes_leader_again_without_data_loss() -> None:
    cluster = started(flush_messages=0)
    cluster.min_insync_replicas = 1
    partition_of(cluster, 1).min_insync_replicas = 1
    for broker_id in (2, 3):
        cluster.crash(cluster.brokers[broker_id], power=False)
        run_until(cluster, lambda lost=broker_id: lost not in scripted(cluster).isr)  # type: ignore[misc]
    run_until(cluster, lambda: partition_of(cluster, 1).isr == (1,))
    cluster.produce()
    assert len(cluster.acknowledged) == 1
    cluster.crash(cluster.brokers[1], power=False)
    cluster.heal()


# Planted faults


def truncate_to_high_watermark(monkeypatch: pytest.MonkeyPatch) -> None:
    """Truncate followers to their high watermark, as before KIP-101."""
    add = Follower.add

    def truncating_add(self: Follower, partition: Partition, topic_id: Any) -> None:
        partition.truncate_to(partition.high_watermark)
        add(self, partition, topic_id)

    monkeypatch.setattr(Follower, "add", truncating_add)


def no_truncation_by_epoch(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        follower_requests,
        "FetchPartition",
        lambda **fields: FetchPartition(**(fields | {"last_fetched_epoch": -1})),
    )


def no_epoch_check(monkeypatch: pytest.MonkeyPatch) -> None:
    """The leader ignores the epochs in fetch requests."""
    monkeypatch.setattr(
        Partition,
        "check_leader_epoch",
        lambda self, epoch, leader_only=True: (
            ErrorCode.NONE if self.is_leader else ErrorCode.NOT_LEADER_OR_FOLLOWER
        ),
    )
    no_truncation_by_epoch(monkeypatch)


def high_watermark_too_early(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(InSyncReplicas, "committed_end", lambda self, local_end, log_end, now_ms: local_end)


def no_isr_fence(monkeypatch: pytest.MonkeyPatch) -> None:
    """The controller accepts any ISR from any leader."""

    def decide(
        context: ControllerContext, broker_id: int, partition: TopicPartition, change: IsrChange
    ) -> StateWrite:
        state = context.states[partition]
        wanted = state._replace(isr=change.isr, controller_epoch=context.controller_epoch)
        return StateWrite(partition, wanted, state.partition_epoch)

    monkeypatch.setattr(controller_isr, "_decide", decide)


@pytest.mark.parametrize(
    ("fault", "terms"),
    [
        (truncate_to_high_watermark, False),
        pytest.param(
            *(no_truncation_by_epoch, False),
            marks=pytest.mark.interpreted("replaces the message FetchPartition"),
        ),
        pytest.param(
            *(no_epoch_check, False), marks=pytest.mark.interpreted("replaces the message FetchPartition")
        ),
        pytest.param(
            *(high_watermark_too_early, False),
            marks=pytest.mark.interpreted("replaces InSyncReplicas.committed_end"),
        ),
        (no_isr_fence, True),
    ],
)
def test_the_simulation_finds_each_planted_fault(
    monkeypatch: pytest.MonkeyPatch, fault: Callable[[pytest.MonkeyPatch], None], terms: bool
) -> None:
    fault(monkeypatch)
    with pytest.raises(Violation):
        for seed in range(100):
            cluster = Cluster(seed, terms=terms)
            cluster.live(60)
            cluster.heal()
