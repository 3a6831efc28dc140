"""Scrape the brokers of this process: collect all metric families, for /metrics and OTLP pushes."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncGenerator, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from kafka_compat.long_work import Steps
from kafka_compat.metrics import (
    broker_beans,
    controller_beans,
    own_beans,
    quorum_beans,
    replica_beans,
    request_beans,
    share_beans,
)
from kafka_compat.metrics.beans import Beans
from kafka_compat.metrics.broker_beans import ZooKeeperSessions
from kafka_compat.metrics.client_telemetry import client_telemetry
from kafka_compat.metrics.cluster_view import ClusterView, RunningBroker, running_brokers
from kafka_compat.metrics.dialects import DIALECTS, SETTING
from kafka_compat.metrics.family import Family
from kafka_compat.metrics.group_lag import GroupLags, RecordTimes, remote_lags
from kafka_compat.metrics.kafka_exporter import KafkaExporter
from kafka_compat.metrics.loop_watch import LoopWatch
from kafka_compat.metrics.prometheus_text import next_piece, text_of
from kafka_compat.metrics.replica_beans import held_partitions, partition_families

if TYPE_CHECKING:
    from kafka_compat.broker import Broker
    from kafka_compat.metadata.feed import MetadataDelta
    from kafka_compat.telemetry.pushed import PushedMetrics


class Scraper:
    """Scraper of this process's brokers. Each scrape reads their current state."""

    def __init__(self, brokers: Sequence[Broker], pushed: PushedMetrics | None = None) -> None:
        """Create this object on the event loop of running brokers. `pushed` contains metrics from clients."""
        self._brokers = brokers
        self._pushed = pushed
        self._dialect = DIALECTS[brokers[0].config.str(SETTING) or ""]
        self._times = RecordTimes()
        self._scraping = asyncio.Lock()
        self.loop = LoopWatch(
            lambda: list(_connections(running_brokers(self._brokers)).values()), self._second
        )
        """Idle time and stalls of the event loop."""
        self._sessions = ZooKeeperSessions(brokers)
        self.loop.start()
        for broker in brokers:
            broker.subscribe(self._on_metadata)

    def _on_metadata(self, delta: MetadataDelta) -> None:
        for topic in delta.deleted:
            self._times.forget_topic(topic.name)

    def close(self) -> None:
        """Stop watching the event loop."""
        self.loop.stop()

    def _second(self, second_s: float) -> None:
        self._sessions.look()
        running = running_brokers(self._brokers)
        for each in running:
            each.requests.pace(second_s)
        now_s = time.monotonic()
        for one in replica_beans.fetching(running):
            one.fetcher.sample_rate(now_s)

    def look(self) -> ClusterView:
        """Return the current view of the cluster. Raises NoBrokerRuns if no broker is running."""
        return ClusterView(self._brokers)

    async def families(
        self, view: ClusterView, *, by_partition: bool = True
    ) -> AsyncGenerator[Iterable[Family], None]:
        """Return one scrape as a generator that creates a few families at a time on demand. Topics and groups
        are read before this call returns. `by_partition=False` omits samples of individual partitions and
        clients.
        """
        async with self._scraping:
            remote = await remote_lags(view)
            self._times.begin()
            exporter = KafkaExporter(view, GroupLags(view, self._times, remote), by_partition=by_partition)
            first = await view.long_work.finish(exporter.collect())
        return self._families(first, view, by_partition=by_partition)

    async def _families(
        self, first: Iterator[Family], view: ClusterView, *, by_partition: bool
    ) -> AsyncGenerator[Iterable[Family], None]:
        yield first
        # Release the rows in `first`, because they are as large as the rest of the scrape.
        del first
        finish = view.long_work.finish
        yield (await finish(self._beans(view, by_partition=by_partition))).families()
        if by_partition:
            yield partition_families(self._dialect, await finish(held_partitions(view)))
            yield await finish(replica_beans.lags(view.brokers, self._dialect))
        if self._pushed is not None:
            yield await finish(client_telemetry(self._pushed, view.monotonic_ms(), by_client=by_partition))

    def _beans(self, view: ClusterView, *, by_partition: bool) -> Steps[Beans]:
        """Return Kafka's MBeans, except those of individual partitions. `by_partition=False` limits the
        request metrics to Produce and Fetch, and omits the quota metrics of clients.
        """
        beans, watch, brokers = Beans(self._dialect), self.loop, view.brokers
        yield from request_beans.topics(brokers, beans)
        yield from request_beans.requests(brokers, beans, all_apis=by_partition)
        for each in brokers:
            yield from broker_beans.broker(each, beans)
        yield from controller_beans.controller(view, beans)
        quorum_beans.quorum(view, beans)
        if by_partition:
            yield from request_beans.quotas(brokers, beans)
        broker_beans.cleaner(brokers, beans)
        yield from replica_beans.fetchers(brokers, beans)
        replica_beans.throttled(brokers, beans)
        replica_beans.moves(brokers, beans)
        yield from controller_beans.groups(view, beans)
        yield from share_beans.share_groups(view, beans)
        controller_beans.loading(view, beans)
        broker_beans.flushes(view, beans)
        broker_beans.zookeeper(view, self._sessions, beans)
        broker_beans.idleness(beans, watch.idle(), watch.idle_s)
        for (listener, attribute), rate in zip(_connections(brokers), watch.rates(), strict=True):
            beans.socket(f"{attribute}_rate", rate, {"listener": listener, **broker_beans.PROCESSOR})
        own_beans.loop(watch, beans)
        own_beans.requests(brokers, beans)
        yield from own_beans.process(beans)
        return beans

    async def text(self, view: ClusterView, *, by_partition: bool = True) -> AsyncGenerator[bytes, None]:
        """Return one scrape in Prometheus's text format, in chunks of whole lines."""
        return _pieces(view, await self.families(view, by_partition=by_partition))


async def _pieces(
    view: ClusterView, families: AsyncGenerator[Iterable[Family], None]
) -> AsyncGenerator[bytes, None]:
    async with contextlib.aclosing(families):
        async for some in families:
            text = text_of(some)
            while piece := await view.long_work.finish(next_piece(text)):
                yield piece


def _connections(brokers: Sequence[RunningBroker]) -> dict[tuple[str, str], int]:
    counts = {}
    for listener in sorted({listener for each in brokers for listener in each.server.bound}):
        opened = sum(each.server.accepted.get(listener, 0) for each in brokers)
        open_now = sum(one.listener_name == listener for each in brokers for one in each.server.connections)
        counts[listener, "connection_creation"] = opened
        counts[listener, "connection_close"] = opened - open_now
    return counts
