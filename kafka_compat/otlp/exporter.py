"""Push the metrics of this process's brokers at intervals: scrape, encode, send, wait.

A push is split into requests with a few thousand points, because receivers limit the size of a request. Each
request is encoded after the receiver has accepted the previous request, to save memory. An unresponsive
receiver does not delay other work: the exporter waits at most REQUEST_S for a response.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections.abc import AsyncGenerator
from functools import partial
from typing import TYPE_CHECKING, Final

from kafka_compat.http_client import Unreachable, ask
from kafka_compat.metrics.cluster_view import NoBrokerRuns
from kafka_compat.otlp.encoding import Request, points_of, refused
from kafka_compat.otlp.schedule import Outcome, Schedule
from kafka_compat.tasks import Tasks

if TYPE_CHECKING:
    from kafka_compat.metrics.cluster_view import ClusterView
    from kafka_compat.metrics.scraper import Scraper
    from kafka_compat.otlp.settings import OtlpSettings

log = logging.getLogger(__name__)

REQUEST_S: Final = 10.0
"""Request timeout in seconds, OTLP's default."""
_SERVICE: Final = "kafka-compat"
_HEADERS: Final = {
    "Accept": "application/x-protobuf",
    "Content-Type": "application/x-protobuf",
    "Content-Encoding": "gzip",
    "User-Agent": _SERVICE,
}


class OtlpExporter:
    """OTLP exporter for the brokers of one process."""

    def __init__(self, settings: OtlpSettings) -> None:
        """Create the exporter before the brokers, because it records the start time of their counters."""
        self._settings = settings
        self._started_ns = time.time_ns()
        self._schedule = Schedule(settings.shown, settings.interval_ms / 1000)
        self._resource: dict[str, str] = {}
        self._tasks = Tasks()

    def start(self, scraper: Scraper) -> None:
        """Start pushing, on the brokers' event loop."""
        log.info("Pushing metrics to %s every %d ms", self._settings.shown, self._settings.interval_ms)
        self._tasks.spawn("pushing metrics", partial(self._run, scraper), restarts=True)

    async def close(self) -> None:
        """Stop pushing, and cancel any push in progress."""
        await self._tasks.close()

    async def _run(self, scraper: Scraper) -> None:
        clock_s = asyncio.get_running_loop().time
        await asyncio.to_thread(_import)
        while True:
            began_s = clock_s()
            # Skip the push if all brokers are stopping or restarting.
            with contextlib.suppress(NoBrokerRuns):
                self._schedule.note(await self._push(scraper, scraper.look()))
            await asyncio.sleep(self._schedule.pause_s(clock_s() - began_s))

    async def _push(self, scraper: Scraper, view: ClusterView) -> Outcome:
        self._resource = self._resource or _resource(view)
        not_taken, reason = 0, ""
        async with contextlib.aclosing(self._bodies(scraper, view)) as bodies:
            async for body in bodies:
                try:
                    answer = await ask(
                        self._settings.where,
                        body=body,
                        headers={**_HEADERS, **self._settings.headers},
                        timeout_s=REQUEST_S,
                    )
                except Unreachable as error:
                    return Outcome(failure=str(error))
                count, why = refused(answer)
                not_taken += count
                reason = reason or why
        return Outcome(None, not_taken, reason)

    async def _bodies(self, scraper: Scraper, view: ClusterView) -> AsyncGenerator[bytes, None]:
        """Yield the requests of one push, each encoded after the previous request was accepted."""
        finish = view.long_work.finish
        request = self._new_request()
        async with contextlib.aclosing(await scraper.families(view)) as families:
            async for some in families:
                points = points_of(some)
                while await finish(request.fill(points)):
                    yield await finish(request.body())
                    request = self._new_request()
        if request.points:
            yield await finish(request.body())

    def _new_request(self) -> Request:
        return Request(self._resource, self._started_ns, time.time_ns())


def _import() -> None:
    """Import the OTLP messages. Call this in a thread, because it takes 50 ms."""
    from opentelemetry.proto.collector.metrics.v1 import metrics_service_pb2  # noqa: F401


def _resource(view: ClusterView) -> dict[str, str]:
    """Return the OTLP resource attributes of this process, whose brokers together are one instance."""
    cluster_id = view.metadata.cluster_id
    ids = ",".join(str(each) for each in sorted(services.broker_id for services in view.services))
    return {
        "service.name": _SERVICE,
        "service.instance.id": f"{cluster_id}/{ids}",
        "kafka.cluster.id": cluster_id,
        "kafka.node.id": ids,
    }
