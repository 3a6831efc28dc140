"""One scrape of the brokers of this process: all families of metrics, for /metrics and to be pushed."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncGenerator, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from kafka_compat.metrics.client_telemetry import client_telemetry
from kafka_compat.metrics.cluster_view import ClusterView, running_brokers
from kafka_compat.metrics.dialects import DIALECTS, SETTING
from kafka_compat.metrics.family import Family
from kafka_compat.metrics.fetcher_beans import fetching, lags
from kafka_compat.metrics.group_lag import GroupLags
from kafka_compat.metrics.kafka_exporter import KafkaExporter
from kafka_compat.metrics.kafka_names import Watches, by_kafkas_names, connection_counts
from kafka_compat.metrics.loop_watch import LoopWatch
from kafka_compat.metrics.partition_beans import held_partitions, partition_families
from kafka_compat.metrics.prometheus_text import lines, next_piece
from kafka_compat.metrics.record_times import RecordTimes
from kafka_compat.metrics.remote_lag import remote_lags
from kafka_compat.metrics.zookeeper_sessions import ZooKeeperSessions

if TYPE_CHECKING:
    from kafka_compat.broker import Broker
    from kafka_compat.metadata.feed import MetadataDelta
    from kafka_compat.telemetry.pushed import PushedMetrics


class Scraper:
    """Of the brokers of this process, as they are at the time of a scrape, and with their counters."""

    def __init__(self, brokers: Sequence[Broker[Any]], pushed: PushedMetrics | None = None) -> None:
        """Brokers that have started; on their event loop. `pushed`: what clients push, if they may."""
        self._brokers = brokers
        self._pushed = pushed
        self._dialect = DIALECTS[brokers[0].config.str(SETTING) or ""]
        self._times = RecordTimes()
        self._scraping = asyncio.Lock()
        self._watch = LoopWatch(lambda: connection_counts(running_brokers(self._brokers)), self._second)
        self._sessions = ZooKeeperSessions(brokers)
        self._watch.start()
        for broker in brokers:
            broker.subscribe(self._on_metadata)

    def _on_metadata(self, delta: MetadataDelta) -> None:
        for topic in delta.deleted:
            self._times.forget_topic(topic.name)

    def close(self) -> None:
        """Look at the loop no more."""
        self._watch.stop()

    def _second(self, second_s: float) -> None:
        self._sessions.look()
        running = running_brokers(self._brokers)
        for each in running:
            each.requests.pace(second_s)
        now_s = time.monotonic()
        for one in fetching(running):
            one.fetcher.pace(now_s)

    def look(self) -> ClusterView:
        """What the brokers know now. NoBrokerRuns."""
        return ClusterView(self._brokers)

    async def families(
        self, view: ClusterView, *, by_partition: bool = True
    ) -> AsyncGenerator[Iterable[Family], None]:
        """One scrape, some families at a time, each made when those before it have been taken. Topics and
        groups are looked at before this returns. `by_partition=False`: without samples of single partitions
        and clients.
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
        # Its rows are as large as what follows.
        del first
        finish, watches = view.long_work.finish, Watches(self._watch, self._sessions)
        beans = await finish(by_kafkas_names(view, watches, self._dialect, by_partition=by_partition))
        yield beans.families()
        if by_partition:
            held = await finish(held_partitions(view))
            yield partition_families(self._dialect, held)
            yield await finish(lags(view.brokers, self._dialect))
        if self._pushed is not None:
            reported = client_telemetry(self._pushed, view.monotonic_ms(), by_client=by_partition)
            yield await finish(reported)

    async def text(self, view: ClusterView, *, by_partition: bool = True) -> AsyncGenerator[bytes, None]:
        """One scrape as Prometheus's text, in pieces of whole lines."""
        return _pieces(view, await self.families(view, by_partition=by_partition))


async def _pieces(
    view: ClusterView, families: AsyncGenerator[Iterable[Family], None]
) -> AsyncGenerator[bytes, None]:
    async with contextlib.aclosing(families):
        async for some in families:
            text = lines(some)
            while piece := await view.long_work.finish(next_piece(text)):
                yield piece
