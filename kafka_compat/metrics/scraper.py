"""All that is told of the brokers of this process, as Prometheus's text: for /metrics, and to be pushed."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, Sequence
from typing import TYPE_CHECKING, Any

from kafka_compat.metrics.client_telemetry import client_telemetry
from kafka_compat.metrics.dialects import DIALECTS, SETTING
from kafka_compat.metrics.elsewhere import look_elsewhere
from kafka_compat.metrics.fetcher_beans import fetching, lags
from kafka_compat.metrics.kafka_names import Watches, by_kafkas_names, connection_counts
from kafka_compat.metrics.loop_watch import LoopWatch
from kafka_compat.metrics.partition_beans import FAMILIES, family, held_partitions
from kafka_compat.metrics.record_times import RecordTimes
from kafka_compat.metrics.scrape import scrape
from kafka_compat.metrics.sight import Sight, counted
from kafka_compat.metrics.zookeeper_sessions import ZooKeeperSessions

if TYPE_CHECKING:
    from kafka_compat.broker import Broker
    from kafka_compat.metadata.feed import MetadataDelta
    from kafka_compat.telemetry.pushed import PushedMetrics


class Scraper:
    """Of the brokers of this process, as they are when somebody asks, and as they have counted."""

    def __init__(self, brokers: Sequence[Broker[Any]], pushed: PushedMetrics | None = None) -> None:
        """Brokers that have started; on their event loop. `pushed`: what clients push, if they may."""
        self._brokers = brokers
        self._pushed = pushed
        self._dialect = DIALECTS[brokers[0].config.str(SETTING) or ""]
        self._times = RecordTimes()
        self._scraping = asyncio.Lock()
        self._watch = LoopWatch(lambda: connection_counts(counted(self._brokers)), self._second)
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
        running = counted(self._brokers)
        for each in running:
            each.requests.pace(second_s)
        now_s = time.monotonic()
        for one in fetching(running):
            one.fetcher.pace(now_s)

    def look(self) -> Sight:
        """What the brokers know now. NobodyRuns."""
        return Sight(self._brokers)

    async def text(self, sight: Sight, *, by_partition: bool = True) -> AsyncGenerator[bytes, None]:
        """One scrape, in pieces of whole lines, each made when the one before it has been taken. Topics and
        groups are looked at before this returns. `by_partition=False`: without samples of single partitions
        and clients.
        """
        async with self._scraping:
            elsewhere = await look_elsewhere(sight)
            steps = scrape(sight, self._times, elsewhere, by_partition=by_partition)
            first = await sight.long_work.finish(steps)
        return self._pieces(first, sight, by_partition=by_partition)

    async def _pieces(
        self, first: list[bytes], sight: Sight, *, by_partition: bool
    ) -> AsyncGenerator[bytes, None]:
        first.reverse()
        while first:
            yield first.pop()
        finish, watches = sight.long_work.finish, Watches(self._watch, self._sessions)
        beans = await finish(by_kafkas_names(sight, watches, self._dialect, by_partition=by_partition))
        for piece in beans.pieces():
            yield piece
        if by_partition:
            held = await finish(held_partitions(sight))
            for bean, value in FAMILIES:
                for piece in await finish(family(bean, value, self._dialect, held)):
                    yield piece
            for piece in await finish(lags(sight.counted, self._dialect)):
                yield piece
        if self._pushed is not None:
            told = client_telemetry(self._pushed, sight.monotonic_ms(), by_client=by_partition)
            for piece in await finish(told):
                yield piece
