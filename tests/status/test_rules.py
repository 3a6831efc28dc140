"""What counts as wrong, and in which words."""

from __future__ import annotations

import pytest

from kafka_compat.status.rules import problems
from kafka_compat.status.snapshot import Broker, Quorum, QuorumReplica, Snapshot, rates
from tests.status.found import GIB, away, group, log_dir, partition, snapshot, topic, up


def told(found: Snapshot) -> list[tuple[str, str]]:
    return [(problem.kind, problem.text) for problem in problems(found)]


def test_a_healthy_cluster_has_no_problems() -> None:
    lagging = group("billing", lag=1_000_000)
    assert told(snapshot([topic("orders")], [lagging, group("idle", state="Empty")], [log_dir()])) == []


def test_partitions_without_a_leader_are_reported_with_the_eligible_brokers() -> None:
    orders = topic(
        "orders",
        partition(0, None, (3,)),
        partition(1, 1, (1,)),
        partition(3, None, (2, 3), (3,)),
    )
    assert told(snapshot([orders], brokers=[up(1), up(2), away(3)])) == [
        ("broker-not-up", "broker 3 is down: it is not in the cluster; it has 2 replicas"),
        (
            "no-leader",
            "2 partitions of orders have no leader and cannot be written or read (partitions 0, 3); "
            "broker 3 can become leader again once available",
        ),
    ]


def test_partitions_below_min_isr_are_reported_as_rejecting_producers() -> None:
    orders = topic("orders", partition(0, 1, (1, 2, 3), (1,)), partition(1, 1, (1, 2, 3)), min_isr=2)
    assert told(snapshot([orders], brokers=[up(1), up(2), up(3)])) == [
        (
            "under-min-isr",
            "1 partition of orders has fewer in-sync replicas than min.insync.replicas: writes with acks=all "
            "fail (partition 0)",
        )
    ]


def test_min_isr_above_the_number_of_replicas_is_no_problem() -> None:
    states = topic("__share_group_state", partition(0, 1, (1,)), min_isr=2)
    assert told(snapshot([states], brokers=[up(1)])) == []


def test_out_of_sync_replicas_are_grouped_by_broker() -> None:
    orders = topic("orders", partition(0, 1, (1, 2, 3), (1, 3)))
    assert told(snapshot([orders], brokers=[up(1), up(2), up(3)])) == [
        (
            "under-replicated",
            "1 partition of orders has replicas out of sync on broker 2 (partition 0)",
        )
    ]


def test_replicas_added_by_a_reassignment_are_not_reported_as_missing() -> None:
    orders = topic("orders", partition(0, 1, (1, 2), (1,), adding=(2,)))
    assert told(snapshot([orders], brokers=[up(1), up(2)])) == []


def test_problems_of_the_same_kind_are_reported_as_one_problem_with_all_topics() -> None:
    topics = [topic(f"t{number:04}", partition(0, None, (2,))) for number in range(1000)]
    found = problems(snapshot(topics, brokers=[up(1), away(2)]))
    assert [problem.kind for problem in found] == ["broker-not-up", "no-leader"]
    assert found[1].text.startswith(
        "1,000 partitions of 1,000 topics (t0000, t0001, t0002, t0003, t0004 and 995 more)"
    )
    assert len(found[1].subjects) == 1000 and found[1].subjects[7] == "t0007-0"


def test_a_broker_that_does_not_respond_is_reported_with_its_address() -> None:
    silent = Broker(2, "127.0.0.1", 9092, fault="Connection refused")
    assert told(snapshot(brokers=[up(1), silent])) == [
        ("broker-not-up", "broker 2 at 127.0.0.1:9092 cannot be reached from here: Connection refused")
    ]


@pytest.mark.parametrize("controller_id", [None, 2])
def test_a_missing_controller_is_reported(controller_id: int | None) -> None:
    found = snapshot(brokers=[up(1), away(2)], controller_id=controller_id)
    assert "no-controller" in dict(told(found))


def test_a_controller_that_is_only_unreachable_is_not_reported_as_down() -> None:
    silent = Broker(2, "127.0.0.1", 9092, fault="no response in time")
    text = dict(told(snapshot(brokers=[up(1), silent], controller_id=2)))["no-controller"]
    assert text.startswith("the controller, broker 2, cannot be reached from here: if no broker can reach it")
    text = dict(told(snapshot(brokers=[up(1), away(2)], controller_id=2)))["no-controller"]
    assert text == "the controller, broker 2, is down: topics and leaders cannot change"


def test_no_missing_controller_is_reported_for_a_kraft_cluster() -> None:
    assert told(snapshot(controller_id=None, is_kraft=True)) == []


def test_a_quorum_without_a_leader_and_a_silent_voter_are_reported() -> None:
    without = snapshot(controller_id=None, is_kraft=True, quorum=Quorum(error="NOT_LEADER_OR_FOLLOWER"))
    assert dict(told(without))["no-quorum-leader"].endswith("topics and leaders cannot change")
    replicas = (
        QuorumReplica(1, True, 0, 0),
        QuorumReplica(2, True, 40, 12_000),
        QuorumReplica(3, True, 0, 200),
        QuorumReplica(4, False, 90, 60_000),
    )
    found = snapshot(controller_id=None, is_kraft=True, quorum=Quorum(1, 7, 90, replicas))
    assert told(found) == [
        (
            "quorum-voter-silent",
            "voter 2 of the metadata quorum has not fetched for 12 s: the quorum needs 2 of its 3 voters",
        )
    ]


def test_failed_and_nearly_full_disks_are_reported() -> None:
    failed = log_dir("/failed", None, "KAFKA_STORAGE_ERROR")
    assert told(snapshot(log_dirs=[log_dir(), failed, log_dir("/full", 4 * GIB)])) == [
        ("log-dir-failed", "log directory /failed of broker 1 has failed: KAFKA_STORAGE_ERROR"),
        ("disk-nearly-full", "log directory /full of broker 1 is almost full: 4.0 GiB of 100.0 GiB left"),
    ]


def test_brokers_that_do_not_serve_their_groups_are_reported() -> None:
    groups = [
        group("a", error="NOT_COORDINATOR"),
        group("b", error="NOT_COORDINATOR"),
        group("ahead", lag=-5),
    ]
    assert told(snapshot(groups=groups, unserved=[(1, "COORDINATOR_LOAD_IN_PROGRESS")])) == [
        (
            "groups-not-served",
            "broker 1 does not serve its groups: COORDINATOR_LOAD_IN_PROGRESS",
        ),
        ("group-error", "2 groups cannot be described (a, b): NOT_COORDINATOR"),
        (
            "committed-beyond-end",
            "1 group has committed offsets beyond the end of a partition (ahead; orders-0)",
        ),
    ]


def test_rates_are_calculated_between_two_snapshots() -> None:
    before = snapshot(
        [topic("orders", partition(0, end=10), partition(1, end=5)), topic("anew", partition(end=9))]
    )
    now = snapshot(
        [
            topic("orders", partition(0, end=40), partition(1, end=15)),
            topic("anew", partition(end=2)),
            topic("other"),
        ],
        taken_at_s=104.0,
    )
    found = rates(before, now)
    assert found is not None and found.by_topic == {"orders": 10.0} and found.total == 10.0
    assert rates(None, now) is None
