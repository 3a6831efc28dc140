"""Kafka's metrics of the metadata quorum: kafka.server:type=raft-metrics and type=broker-metadata-metrics."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from kafka_compat.metrics.beans import Beans
from kafka_compat.metrics.dialects import Dialect
from kafka_compat.metrics.family import Family

if TYPE_CHECKING:
    from kafka_compat.metrics.cluster_view import ClusterView
    from kafka_compat.quorum.status import QuorumStatus


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


def of_controller(node: QuorumStatus, dialect: Dialect) -> list[Family]:
    """Return the metrics of a process that is only a controller."""
    beans = Beans(dialect)
    raft(node, beans)
    return beans.families()


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
        for kind, value_ms in (("avg", latency.average_ms(now_ms)), ("max", latency.max_ms(now_ms))):
            # Kafka reports NaN if there are no values.
            if value_ms is not None:
                yield f"{name}-latency-{kind}", value_ms
