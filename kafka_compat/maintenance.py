"""What a broker does by the clock: retention, compaction, rolling, timed flushes, checkpoints, deletions, and
the collector of garbage.

One timer, one short look each second, or as often as log.cleaner.backoff.ms asks for; work that a disk could
hold up goes to the flusher's thread.
"""

from __future__ import annotations

import asyncio
import contextlib
import gc
import logging
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from kafka_compat.error_mapping import code_of
from storage.errors import StorageError

if TYPE_CHECKING:
    from kafka_compat.broker import Broker
    from kafka_compat.cleaning import LogCleaner

log = logging.getLogger(__name__)

TICK_S = 1.0
TICK_S_MIN = 0.05
GC_INTERVAL_MS = 300_000


class Maintenance:
    """Runs each job of one broker when its interval is over."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        config = broker.config
        self._jobs: list[tuple[Callable[[int], None], int]] = [
            (
                self._flush_due,
                max(int(TICK_S * 1000), min(config.int("log.flush.scheduler.interval.ms"), 3000)),
            ),
            (self._roll_due, 1000),
            (self._delete_due, 1000),
            (self._retention, config.int("log.retention.check.interval.ms")),
            (self._expire_producers, config.int("producer.id.expiration.check.interval.ms")),
            (self._checkpoint_high_watermarks, config.int("replica.high.watermark.checkpoint.interval.ms")),
            (self._checkpoint_recovery_points, config.int("log.flush.offset.checkpoint.interval.ms")),
            (self._checkpoint_start_offsets, config.int("log.flush.start.offset.checkpoint.interval.ms")),
            (self._collect_garbage, GC_INTERVAL_MS),
        ]
        self._tick_s = TICK_S
        self._cleaner: LogCleaner | None = None
        if config.bool("log.cleaner.enable"):
            backoff_ms = config.int("log.cleaner.backoff.ms")
            self._jobs.append((self._clean, backoff_ms))
            self._tick_s = max(min(TICK_S, backoff_ms / 1000), TICK_S_MIN)
        now_ms = broker.clock.now_ms()
        self._due_ms = [now_ms + interval_ms for _, interval_ms in self._jobs]
        # The first look at retention comes soon after the start (Kafka: log.initial.task.delay.ms).
        self._due_ms[3] = now_ms + min(self._jobs[3][1], config.int("log.initial.task.delay.ms"))
        self._timer: asyncio.TimerHandle | None = None
        self._checkpointed: dict[tuple[str, int], int] = {}

    def start(self) -> None:
        self._timer = self._broker.loop.call_later(self._tick_s, self._tick)

    def stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        if self._cleaner is not None:
            self._cleaner.stop()

    def _tick(self) -> None:
        now_ms = self._broker.clock.now_ms()
        for index, (job, interval_ms) in enumerate(self._jobs):
            if now_ms >= self._due_ms[index]:
                self._due_ms[index] = now_ms + interval_ms
                try:
                    job(now_ms)
                except Exception:
                    log.exception("%s failed; it is tried again in %d ms", job.__name__, interval_ms)
        self._timer = self._broker.loop.call_later(self._tick_s, self._tick)

    def _flush_due(self, now_ms: int) -> None:
        for partition in self._broker.replicas:
            target = partition.log
            if target.flush_due(now_ms):
                self._broker.flusher.request(target, partition.flushed)

    def _roll_due(self, now_ms: int) -> None:
        for partition in self._broker.replicas:
            with _logged(f"new segment of {partition.topic}-{partition.partition}"):
                partition.log.roll_if_due(now_ms)

    def _delete_due(self, now_ms: int) -> None:
        self._broker.flusher.run(lambda: self._broker.log_dirs.tick(now_ms))

    def _retention(self, now_ms: int) -> None:
        for partition in self._broker.replicas:
            with _logged(f"retention of {partition.topic}-{partition.partition}"):
                partition.log.apply_retention(now_ms, partition.high_watermark)

    def _clean(self, now_ms: int) -> None:
        if self._cleaner is None:
            if not any(partition.log.config.compact for partition in self._broker.replicas):
                return
            from kafka_compat.cleaning import LogCleaner

            self._cleaner = LogCleaner(self._broker)
        self._cleaner.look(now_ms)

    def _expire_producers(self, now_ms: int) -> None:
        for partition in self._broker.replicas:
            partition.log.producers.remove_expired(now_ms)

    def _checkpoint_high_watermarks(self, now_ms: int) -> None:
        high_watermarks = self._broker.replicas.high_watermarks()
        if high_watermarks != self._checkpointed:
            self._checkpointed = high_watermarks
            self._broker.flusher.run(
                lambda: self._broker.log_dirs.checkpoint_high_watermarks(high_watermarks)
            )

    def _checkpoint_recovery_points(self, now_ms: int) -> None:
        self._broker.flusher.run(self._broker.log_dirs.checkpoint_recovery_points)

    def _checkpoint_start_offsets(self, now_ms: int) -> None:
        self._broker.flusher.run(self._broker.log_dirs.checkpoint_log_start_offsets)

    def _collect_garbage(self, now_ms: int) -> None:
        # The thresholds are high, so that a collection seldom falls into a request; cycles are collected
        # here.
        gc.collect()


@contextlib.contextmanager
def _logged(job: str) -> Iterator[None]:
    """What one log's disk refuses does not keep the others from their turns."""
    try:
        yield
    except StorageError as error:
        log.error("%s failed: %s (%s)", job, error, code_of(error).name)
