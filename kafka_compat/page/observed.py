"""State that the web console keeps between requests: rates, charts, log lines, rejected clients, copies."""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from kafka_compat.broker import Broker
from kafka_compat.config.logger_levels import level_name
from kafka_compat.long_work import Steps, batched
from kafka_compat.metadata.feed import MetadataDelta
from kafka_compat.metrics.cluster_view import ClusterView, NoBrokerRuns
from kafka_compat.metrics.group_lag import RecordTimes
from kafka_compat.network.refusals import Refusals
from kafka_compat.network.server import Server
from kafka_compat.page.copies import Copies
from kafka_compat.page.remote_leaders import RemoteLeaders
from kafka_compat.status.hour import Hour

if TYPE_CHECKING:
    from kafka_compat.decoding.registry import Registry

EVERY_S: Final = 5.0
_SAMPLES: Final = 13
"""Number of samples, which cover the last minute."""
_PARTITIONS_AT_ONCE: Final = 200

Counts = Mapping[str, tuple[int, int]]
"""For each topic, the number of partitions that this process leads, and the sum of their end offsets."""


class Rates:
    """Records written per second to the partitions that this process leads, computed from log end offsets."""

    def __init__(self) -> None:
        self._samples: deque[tuple[float, Counts]] = deque(maxlen=_SAMPLES)

    def add(self, now_s: float, counts: Counts) -> None:
        """Add a sample of the end offsets."""
        self._samples.append((now_s, counts))

    def forget(self) -> None:
        """Discard all samples."""
        self._samples.clear()

    def forget_topic(self, topic: str) -> None:
        """Discard a deleted topic's samples, so that a new topic with the same name starts from scratch."""
        for number, (at_s, counts) in enumerate(self._samples):
            if topic in counts:
                kept = {name: count for name, count in counts.items() if name != topic}
                self._samples[number] = at_s, kept

    def of(self, topic: str) -> float | None:
        """Return a topic's records per second over the last minute, or None if unknown."""
        if len(self._samples) < 2:
            return None
        last_s, last = self._samples[-1]
        if topic not in last:
            return None
        led, end = last[topic]
        for first_s, first in self._samples:
            # Skip samples from before a leader change or the recreation of the topic.
            if first_s < last_s and topic in first and first[topic][0] == led and first[topic][1] <= end:
                return (end - first[topic][1]) / (last_s - first_s)
        return None


def record_counts(cluster: ClusterView) -> Steps[Counts]:
    """Return for each topic the number of partitions led by this process and the sum of their end offsets."""
    found: dict[str, tuple[int, int]] = {}
    looked_at = 0
    for topic in list(cluster.metadata.topics.values()):
        led = end = 0
        for some in batched(topic.partitions, _PARTITIONS_AT_ONCE):
            for known in some:
                partition = cluster.led(topic.name, known)
                if partition is not None:
                    led += 1
                    end += partition.log.log_end_offset
            looked_at += len(some)
            if looked_at >= _PARTITIONS_AT_ONCE:
                looked_at = 0
                yield None
        if led:
            found[topic.name] = led, end
    return found


LINES_MAX: Final = 1000
_TEXT_MAX: Final = 4000
AUDIT: Final = "kafka.authorizer.logger"
_DENIED: Final = "Denied"


class LogLines(logging.Handler):
    """Buffer of the latest log lines. Calls `refused` with host and reason for each denied operation."""

    def __init__(self, refused: Callable[[str, str], None]) -> None:
        super().__init__()
        self._refused = refused
        self._kept: deque[dict[str, Any]] = deque(maxlen=LINES_MAX)
        self._number = 0

    def emit(self, record: logging.LogRecord) -> None:
        """Append a line to the buffer. Thread-safe."""
        try:
            text = record.getMessage()
            if record.exc_info and record.exc_info[0] is not None:
                text += "\n" + (logging.Formatter().formatException(record.exc_info))
            if record.name == AUDIT:
                self._hear_audit(record)
        except Exception:
            self.handleError(record)
            return
        self._number += 1
        self._kept.append(
            {
                "number": self._number,
                "time_ms": int(record.created * 1000),
                "level": level_name(record.levelno),
                "level_number": record.levelno,
                "logger": record.name,
                "text": text[:_TEXT_MAX],
            }
        )

    def _hear_audit(self, record: logging.LogRecord) -> None:
        if isinstance(record.args, tuple) and len(record.args) == 6 and record.args[1] == _DENIED:
            principal, _, operation, host, resource, why = record.args
            self._refused(str(host), f"{principal} may not {operation} {resource}: {why}")

    def lines(self) -> list[dict[str, Any]]:
        """Return all lines in the buffer, oldest first."""
        return list(self._kept)


log = logging.getLogger(__name__)


class Observed:
    """State that the web console keeps between requests."""

    def __init__(self, brokers: Sequence[Broker], registry: Registry | None) -> None:
        """Start observing. Call this on the brokers' event loop while the brokers are running."""
        self._brokers = brokers
        self.registry = registry
        """Client of the schema registry, with cached schemas, or None if no registry is configured."""
        self.remote = RemoteLeaders()
        """Sizes and offsets of partitions that other processes lead."""
        self.copies = Copies()
        self.rates = Rates()
        self.hour = Hour()
        """The figures of the last hour, which `Sampler` adds."""
        self.times = RecordTimes()
        """Timestamps of the first records at or after groups' committed offsets."""
        self.refusals = Refusals(brokers[0].services.clock.now_ms)
        self.log = LogLines(self.refusals.note)
        for broker in brokers:
            broker.subscribe(self._on_metadata)

    def _on_metadata(self, delta: MetadataDelta) -> None:
        for topic in delta.deleted:
            self.rates.forget_topic(topic.name)
            self.times.forget_topic(topic.name)

    def servers(self) -> list[tuple[int, Server]]:
        """Return the IDs and servers of the running brokers."""
        return [(broker.broker_id, broker.server) for broker in self._brokers if broker.is_running]

    def cluster(self) -> ClusterView:
        """Return the current view of the cluster. Raises NoBrokerRuns if all brokers are stopped."""
        return ClusterView(self._brokers)

    async def watch(self) -> None:
        """Sample the brokers every EVERY_S seconds until canceled."""
        loop = asyncio.get_running_loop()
        number = 0
        logging.root.addHandler(self.log)
        try:
            while True:
                # Set `refusals` each time, because a restarted broker has a new server.
                for _, server in self.servers():
                    server.refusals = self.refusals
                if number % _SAMPLES == 0:
                    # Views add entries, so discard those that no view has used for a while.
                    self.times.begin()
                number += 1
                try:
                    cluster = ClusterView(self._brokers)
                    counts = await cluster.long_work.finish(record_counts(cluster))
                    self.rates.add(loop.time(), counts)
                except NoBrokerRuns:
                    # The brokers are stopping or restarting, so earlier samples no longer apply.
                    self.rates.forget()
                except Exception:
                    log.exception("Could not collect the rates for the web console")
                await asyncio.sleep(EVERY_S)
        finally:
            logging.root.removeHandler(self.log)
            await self.copies.close()
