"""GET /metrics and GET /public_metrics, for Prometheus."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from kafka_compat.http.routes import Answer, BadCall, Call, Route, Text
from kafka_compat.metrics.client_telemetry import client_telemetry
from kafka_compat.metrics.elsewhere import look_elsewhere
from kafka_compat.metrics.record_times import RecordTimes
from kafka_compat.metrics.scrape import scrape
from kafka_compat.metrics.sight import NobodyRuns, Sight
from kafka_compat.metrics.text import CONTENT_TYPE

if TYPE_CHECKING:
    from kafka_compat.broker import Broker
    from kafka_compat.telemetry.pushed import PushedMetrics

_UNAVAILABLE = 503


class Metrics:
    """Of the brokers of this process, as they are when somebody asks: requests cost nothing more."""

    def __init__(self, brokers: Sequence[Broker[Any]], pushed: PushedMetrics | None = None) -> None:
        """`pushed`: what clients push, if they may."""
        self._brokers = brokers
        self._pushed = pushed
        self._times = RecordTimes()
        self._scraping = asyncio.Lock()

    def routes(self) -> list[Route]:
        """What is served."""
        return [
            Route("GET", "/metrics", self._all, "metrics for Prometheus, by kafka_exporter's names"),
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
        async with self._scraping:
            try:
                sight = Sight(self._brokers)
            except NobodyRuns:
                raise BadCall("the broker stops, or starts anew", _UNAVAILABLE) from None
            elsewhere = await look_elsewhere(sight)
            steps = scrape(sight, self._times, elsewhere, by_partition=by_partition)
            pieces = await sight.long_work.finish(steps)
            if self._pushed is not None:
                told = client_telemetry(self._pushed, sight.monotonic_ms(), by_client=by_partition)
                pieces += await sight.long_work.finish(told)
            return Text(pieces, CONTENT_TYPE)
