"""Kafka's metrics of the group and transaction coordinators."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from kafka_compat.groups.requests import GroupState
from kafka_compat.long_work import Steps, batched
from kafka_compat.metrics.beans import Beans
from kafka_compat.metrics.dialects import Bean

if TYPE_CHECKING:
    from kafka_compat.metrics.cluster_view import ClusterView

GROUPS, TRANSACTIONS = "group-coordinator-metrics", "transaction-coordinator-metrics"
_PURGATORY: Final = ("PurgatorySize", "NumDelayedOperations")


def groups(view: ClusterView, beans: Beans) -> Steps[None]:
    """Of the groups that this process coordinates."""
    states: Counter[GroupState] = Counter()
    offsets = 0
    for coordinator in view.coordinators():
        for some in batched(coordinator.group_ids(), 200):
            for group_id in some:
                progress = coordinator.progress(group_id)
                if progress is not None:
                    states[progress.state] += 1
                    offsets += len(progress.committed)
            yield None
    beans.gauge(_group_manager("NumGroups"), states.total())
    beans.gauge(_group_manager("NumOffsets"), offsets)
    for state in GroupState:
        beans.gauge(_group_manager(f"NumGroups{state}"), states[state])
    for name in _PURGATORY:
        # A group that prepares a rebalance is what Kafka has a delayed join for.
        bean = Bean("server", "DelayedOperationPurgatory", name)
        beans.gauge(bean, states[GroupState.PREPARING_REBALANCE], {"delayedOperation": "Rebalance"})


def loading(view: ClusterView, beans: Beans) -> None:
    """How long it took to load their partitions (ms), the last ones of each; not a number before."""
    of_groups = [took for each in view.coordinators() for took in each.load_times_ms]
    of_transactions: list[int] = []
    for services in view.services:
        made = services.coordinators.transactions.made
        of_transactions += [] if made is None else made.load_times_ms
    for type_name, times_ms in ((GROUPS, of_groups), (TRANSACTIONS, of_transactions)):
        beans.attribute(type_name, "partition-load-time-avg", _average(times_ms))
        beans.attribute(type_name, "partition-load-time-max", max(times_ms, default=math.nan))


def _average(values: Sequence[float]) -> float:
    return sum(values) / len(values) if values else math.nan


def _group_manager(name: str) -> Bean:
    return Bean("coordinator.group", "GroupMetadataManager", name)
