"""Kafka's metrics of the metadata quorum: kafka.server:type=raft-metrics and type=broker-metadata-metrics."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from kafka_compat.metrics.beans import Beans

if TYPE_CHECKING:
    from kafka_compat.metrics.cluster_view import ClusterView
    from kafka_compat.quorum.status import QuorumStatus

_UNKNOWN_VALUE: Final = float("nan")


def quorum(view: ClusterView, beans: Beans) -> None:
    """Add the metrics of this process's quorum node, or nothing if the cluster has no quorum."""
    node = next((each.quorum for each in view.services if each.quorum is not None), None)
    if node is not None:
        raft(node, beans)


def raft(node: QuorumStatus, beans: Beans) -> None:
    """Add the metrics of a quorum node."""
    state = node.state()
    beans.raft_state(state.state)
    for attribute, value in _values(node):
        beans.raft(attribute, value)
    beans.attribute("broker-metadata-metrics", "last-applied-record-offset", state.applied_offset)


def _values(node: QuorumStatus) -> Iterator[tuple[str, float]]:
    state, statistics, now_ms = node.state(), node.statistics, node.now_ms()
    yield "current-leader", state.leader_id
    yield "current-vote", state.voted_id
    yield "current-epoch", state.epoch
    yield "high-watermark", state.high_watermark
    yield "log-end-offset", state.log_end_offset
    yield "log-end-epoch", state.log_end_epoch
    yield "number-unknown-voter-connections", sum(each is None for each in state.voters.values())
    yield "number-of-voters", len(state.voters)
    found = node.describe()
    if found is not None:
        # As in Kafka, only the leader reports observers.
        yield "number-of-observers", len(found.observers)
    yield "append-records-rate", statistics.appended_records.per_second(now_ms)
    yield "fetch-records-rate", statistics.fetched_records.per_second(now_ms)
    for name, latency in (("commit", statistics.commits), ("election", statistics.elections)):
        average_ms, max_ms = latency.average_ms(now_ms), latency.max_ms(now_ms)
        yield f"{name}-latency-avg", _UNKNOWN_VALUE if average_ms is None else average_ms
        yield f"{name}-latency-max", _UNKNOWN_VALUE if max_ms is None else max_ms
