"""Metrics of a quorum node, in both naming schemes."""

from __future__ import annotations

from kafka_compat.coordination.raft.values import QuorumDescription, ReplicaDescription, ReplicaKey
from kafka_compat.metrics.beans import Beans
from kafka_compat.metrics.dialects import DIALECTS
from kafka_compat.metrics.quorum_beans import raft
from kafka_compat.quorum.statistics import QuorumStatistics
from kafka_compat.quorum.status import NodeState


class Node:
    """A leader with one observer. Implements QuorumStatus."""

    def __init__(self) -> None:
        self.statistics = QuorumStatistics()
        self.statistics.appended(120, 90, 1000)
        self.statistics.committed(90, 1030)

    def now_ms(self) -> int:
        return 2000

    def state(self) -> NodeState:
        voters = {1: ("kafka-1", 9093), 2: ("kafka-2", 9093), 3: None}
        return NodeState(1, "leader", 1, 7, 1, 90, 92, 7, 88, voters)

    def describe(self) -> QuorumDescription:
        return QuorumDescription(1, 7, 90, (), (ReplicaDescription(ReplicaKey(4), 80, 1990, 1900),))


def samples(dialect: str) -> dict[str, float]:
    """Return the values by name and labels."""
    beans = Beans(DIALECTS[dialect])
    raft(Node(), beans)
    return {
        f"{family.name}{labels.text if labels else ''}": value
        for family in beans.families()
        for labels, value in family.samples
    }


def test_the_names_are_those_of_the_rules_for_kraft() -> None:
    found = samples("jmx-exporter")
    assert found["kafka_server_raftmetrics_current_leader"] == 1
    assert found["kafka_server_raftmetrics_current_epoch"] == 7
    assert found["kafka_server_raftmetrics_high_watermark"] == 90
    assert found["kafka_server_raftmetrics_log_end_offset"] == 92
    assert found["kafka_server_raftmetrics_number_of_voters"] == 3
    assert found["kafka_server_raftmetrics_number_of_observers"] == 1
    assert found["kafka_server_raftmetrics_number_unknown_voter_connections"] == 1
    assert found["kafka_server_raftmetrics_append_records_rate"] == 2
    assert found["kafka_server_raftmetrics_commit_latency_max"] == 30
    assert "kafka_server_raftmetrics_election_latency_avg" not in found
    assert found["kafka_server_broker_metadata_metrics_last_applied_record_offset"] == 88
    (state,) = [name for name in found if "current_state" in name]
    assert state.startswith("kafka_server_raftmetrics_current_state")
    assert 'current_state="leader"' in state


def test_confluents_names_have_the_types_in_two_words() -> None:
    found = samples("confluent")
    assert found["kafka_server_raft_metrics_current_vote"] == 1
    assert found["kafka_server_raft_metrics_fetch_records_rate"] == 0
    assert any('state="leader"' in name for name in found)
