"""GET /metrics and GET /public_metrics, for Prometheus."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Sequence
from typing import TYPE_CHECKING, Any

from kafka_compat.http.routes import Answer, BadCall, Call, Route, Stream
from kafka_compat.metrics.client_telemetry import client_telemetry
from kafka_compat.metrics.dialects import DIALECTS, SETTING
from kafka_compat.metrics.elsewhere import look_elsewhere
from kafka_compat.metrics.fetcher_beans import fetching, lags
from kafka_compat.metrics.kafka_names import Watches, by_kafkas_names, connection_counts
from kafka_compat.metrics.loop_watch import LoopWatch
from kafka_compat.metrics.partition_beans import FAMILIES, family, held_partitions
from kafka_compat.metrics.record_times import RecordTimes
from kafka_compat.metrics.scrape import scrape
from kafka_compat.metrics.sight import NobodyRuns, Sight, counted
from kafka_compat.metrics.text import CONTENT_TYPE
from kafka_compat.metrics.zookeeper_sessions import ZooKeeperSessions

if TYPE_CHECKING:
    from kafka_compat.broker import Broker
    from kafka_compat.telemetry.pushed import PushedMetrics

_UNAVAILABLE = 503


class Metrics:
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

    def routes(self) -> list[Route]:
        """What is served."""
        return [
            Route(
                "GET",
                "/metrics",
                self._all,
                "metrics for Prometheus, by the names of kafka_exporter and the JMX exporter",
            ),
            Route(
                "GET",
                "/public_metrics",
                self._few,
                "the same without samples of single partitions and clients",
            ),
        ]

    async def _all(self, call: Call) -> Answer:
        return await self._scraped(by_partition=True)

    async def _few(self, call: Call) -> Answer:
        return await self._scraped(by_partition=False)

    async def _scraped(self, *, by_partition: bool) -> Answer:
        sight = self._look()
        async with self._scraping:
            elsewhere = await look_elsewhere(sight)
            steps = scrape(sight, self._times, elsewhere, by_partition=by_partition)
            first = await sight.long_work.finish(steps)
        return Stream(self._pieces(first, sight, by_partition=by_partition), CONTENT_TYPE)

    def _look(self) -> Sight:
        try:
            return Sight(self._brokers)
        except NobodyRuns:
            raise BadCall("the broker stops, or starts anew", _UNAVAILABLE) from None

    async def _pieces(self, first: list[bytes], sight: Sight, *, by_partition: bool) -> AsyncIterator[bytes]:
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
