"""All that the JMX exporter would tell of the brokers of this process, in steps."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, NamedTuple

from kafka_compat.long_work import Steps
from kafka_compat.metrics import (
    broker_beans,
    cleaner_beans,
    controller_beans,
    coordinator_beans,
    fetcher_beans,
    own_beans,
    quota_beans,
    request_beans,
)
from kafka_compat.metrics.beans import Beans
from kafka_compat.metrics.dialects import Dialect

if TYPE_CHECKING:
    from kafka_compat.metrics.cluster_view import ClusterView, RunningBroker
    from kafka_compat.metrics.loop_watch import LoopWatch
    from kafka_compat.metrics.zookeeper_sessions import ZooKeeperSessions


class Watches(NamedTuple):
    """What is looked at between scrapes."""

    loop: LoopWatch
    sessions: ZooKeeperSessions


def by_kafkas_names(
    view: ClusterView, watches: Watches, dialect: Dialect, *, by_partition: bool
) -> Steps[Beans]:
    """See the module; without what single partitions have. `by_partition=False`: of few APIs,
    and without clients with quotas.
    """
    beans, watch = Beans(dialect), watches.loop
    yield from request_beans.topics(view.brokers, beans)
    yield from request_beans.requests(view.brokers, beans, all_apis=by_partition)
    for each in view.brokers:
        yield from broker_beans.broker(each, beans)
    yield from controller_beans.controller(view, beans)
    if by_partition:
        yield from quota_beans.quotas(view.brokers, beans)
    cleaner_beans.cleaner(view.brokers, beans)
    yield from fetcher_beans.fetchers(view.brokers, beans)
    fetcher_beans.throttled(view.brokers, beans)
    fetcher_beans.moves(view.brokers, beans)
    yield from coordinator_beans.groups(view, beans)
    coordinator_beans.loading(view, beans)
    broker_beans.flushes(view, beans)
    broker_beans.zookeeper(view, watches.sessions, beans)
    broker_beans.idleness(beans, watch.idle(), watch.idle_s)
    for (listener, attribute), rate in zip(connection_kinds(view.brokers), watch.rates(), strict=True):
        beans.socket(f"{attribute}_rate", rate, {"listener": listener, **broker_beans.PROCESSOR})
    own_beans.loop(watch, beans)
    own_beans.requests(view.brokers, beans)
    yield from own_beans.process(beans)
    return beans


def connection_kinds(brokers: Iterable[RunningBroker]) -> list[tuple[str, str]]:
    """What `connection_counts` counts: listeners, and what becomes of their connections."""
    listeners = sorted({listener for each in brokers for listener in each.server.bound})
    attributes = ("connection_creation", "connection_close")
    return [(listener, attribute) for listener in listeners for attribute in attributes]


def connection_counts(brokers: list[RunningBroker]) -> list[int]:
    """How many connections came, and went, by listener."""
    counts = []
    for listener in sorted({listener for each in brokers for listener in each.server.bound}):
        came = sum(each.server.accepted.get(listener, 0) for each in brokers)
        here = sum(one.listener_name == listener for each in brokers for one in each.server.connections)
        counts += [came, came - here]
    return counts
