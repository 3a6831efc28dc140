"""Schedule of a broker's periodic work: retention, compaction, rolling, timed flushes, checkpoints,
deletions, and garbage collection.

The schedule runs every second, or every log.cleaner.backoff.ms if that is shorter. Work on all partitions
yields to the event loop (long_work.py), and work that waits for a disk runs in the workers of the log
directories. Intervals use the monotonic clock; ages use the time of day, like record timestamps.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from typing import TYPE_CHECKING

from kafka_compat.error_mapping import code_of
from kafka_compat.long_work import LongWork, Steps, batched
from kafka_compat.metadata.topic_names import INTERNAL_TOPICS
from kafka_compat.storage.errors import StorageError
from kafka_compat.tasks import Tasks
from kafka_compat.upkeep.garbage import GarbageCollection

if TYPE_CHECKING:
    from kafka_compat.config import BrokerConfig
    from kafka_compat.metadata.feed import MetadataFeed
    from kafka_compat.metadata.topic_overrides import TopicOverrides
    from kafka_compat.replication.flusher import Flusher
    from kafka_compat.replication.partition import Partition
    from kafka_compat.replication.replica_manager import ReplicaManager
    from kafka_compat.storage.clock import Clock
    from kafka_compat.storage.directories.log_dirs import LogDirs
    from kafka_compat.upkeep.log_cleaner import LogCleaner

log = logging.getLogger(__name__)

TICK_S = 1.0
TICK_S_MIN = 0.05
IDLE_LATE_S = 0.003
"""The loop counts as idle if it runs the upkeep at most this much later than scheduled."""
PARTITIONS_AT_ONCE = 100
"""Number of partitions per step, unless their logs must be changed."""
SEGMENTS_AT_ONCE = 4
"""Number of segments of one log that retention deletes per step. Each deletion renames several files."""
ROLLS_PER_LOOK = 5_000
"""Maximum number of active segments examined per second."""
PARTITIONS_PER_CHECKPOINT_MS = 10
"""Number of partitions that add 1 ms to the checkpoint interval. Each checkpoint contains all partitions."""

_Job = tuple[Callable[[int], Steps[None] | None], int]
"""A periodic job and its interval in ms. The job gets the time of day in ms, and does the work or returns a
generator of steps.
"""


class Maintenance:
    """The periodic jobs of one broker. Each job runs when its interval has passed."""

    def __init__(
        self,
        config: BrokerConfig,
        clock: Clock,
        replicas: ReplicaManager,
        log_dirs: LogDirs,
        flusher: Flusher,
        feed: MetadataFeed,
        long_work: LongWork,
        overrides: TopicOverrides,
    ) -> None:
        self._config = config
        self._clock = clock
        self._replicas = replicas
        self._log_dirs = log_dirs
        self._flusher = flusher
        self._feed = feed
        self._long_work = long_work
        self._overrides = overrides
        self._rolling: Iterator[Partition] = iter(())
        self._checkpointed_ms = 0
        self._garbage = GarbageCollection(clock.monotonic_ms())
        self._is_idle = False
        retention = self._retention, config.int("log.retention.check.interval.ms")
        self._jobs: list[_Job] = [
            (
                self._flush_due,
                max(int(TICK_S * 1000), min(config.int("log.flush.scheduler.interval.ms"), 3000)),
            ),
            (self._roll_due, 1000),
            (self._delete_due, 1000),
            retention,
            (self._expire_producers, config.int("producer.id.expiration.check.interval.ms")),
            (self._checkpoint_high_watermarks, config.int("replica.high.watermark.checkpoint.interval.ms")),
            (self._checkpoint_recovery_points, config.int("log.flush.offset.checkpoint.interval.ms")),
            (self._checkpoint_start_offsets, config.int("log.flush.start.offset.checkpoint.interval.ms")),
            (self._collect_garbage, 1000),
        ]
        self._tick_s = TICK_S
        self.cleaner: LogCleaner | None = None
        """The log cleaner, or None until a log can be compacted."""
        if replicas.may_have_followers:
            interval_ms = config.int("replica.lag.time.max.ms") // 2
            self._jobs.append((self._shrink_isrs, interval_ms))
            self._tick_s = max(min(TICK_S, interval_ms / 1000), TICK_S_MIN)
        if config.bool("log.cleaner.enable"):
            backoff_ms = config.int("log.cleaner.backoff.ms")
            self._jobs.append((self._clean, backoff_ms))
            self._tick_s = max(min(self._tick_s, backoff_ms / 1000), TICK_S_MIN)
        now_ms = clock.monotonic_ms()
        self._due_ms = {(run, interval_ms): now_ms + interval_ms for run, interval_ms in self._jobs}
        # Run the first retention check soon after startup (Kafka's log.initial.task.delay.ms).
        self._due_ms[retention] = now_ms + min(retention[1], config.int("log.initial.task.delay.ms"))

    def start(self, tasks: Tasks) -> None:
        """Start the schedule in a background task."""
        self._garbage.start()
        tasks.spawn("maintenance", self._run, restarts=True)

    def stop(self) -> None:
        """Stop the work outside the background task: garbage collection and the log cleaner."""
        self._garbage.stop()
        if self.cleaner is not None:
            self.cleaner.stop()

    async def do_all(self) -> None:
        """Run every job now, and wait until all cleanings that are due have ended."""
        self._due_ms = dict.fromkeys(self._jobs, 0)
        await self._tick()
        if self.cleaner is not None:
            await self.cleaner.clean_due(self._clock.now_ms())

    async def _run(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            due_s = loop.time() + self._tick_s
            await asyncio.sleep(self._tick_s)
            self._is_idle = loop.time() - due_s <= IDLE_LATE_S
            await self._tick()

    async def _tick(self) -> None:
        now_ms, time_of_day_ms = self._clock.monotonic_ms(), self._clock.now_ms()
        for job in self._jobs:
            if now_ms >= self._due_ms[job]:
                run, interval_ms = job
                self._due_ms[job] = now_ms + interval_ms
                try:
                    steps = run(time_of_day_ms)
                    if steps is not None:
                        await self._long_work.finish(steps)
                except Exception:
                    name = run.__name__.strip("_")
                    log.exception("Maintenance job %s failed; retrying in %d ms", name, interval_ms)

    def _each(
        self, what: str, look: Callable[[Partition], object], partitions: Iterable[Partition]
    ) -> Steps[None]:
        """Process these partitions, except those deleted in the meantime. A disk error on one partition does
        not affect the others.

        If `look` returns true, it has changed files, which takes long: it is called again for the same
        partition in the next step.
        """
        for some in batched(partitions, PARTITIONS_AT_ONCE):
            for partition in some:
                while self._looked_at(what, look, partition):
                    yield None
            yield None

    def _looked_at(self, what: str, look: Callable[[Partition], object], partition: Partition) -> object:
        if self._replicas.get(partition.topic, partition.partition) is not partition:
            return None
        try:
            return look(partition)
        except StorageError as error:
            code = code_of(error).name
            log.error("Maintenance of %s failed during %s: %s (%s)", partition, what, error, code)
        return None

    def _shrink_isrs(self, _: int) -> Steps[None]:
        """Propose to remove lagging followers from the ISRs of the partitions that this broker leads."""
        now_ms = self._clock.monotonic_ms()

        def look(partition: Partition) -> None:
            partition.maybe_shrink_isr(now_ms)

        return self._each("the check for lagging followers", look, self._replicas)

    def _flush_due(self, now_ms: int) -> Steps[None]:
        from kafka_compat.storage.config import LONG_MAX

        def look(partition: Partition) -> None:
            if partition.log.flush_due():
                self._flusher.request(partition.log, partition.flushed)

        # If flush.ms is not set for the broker, check only the topics that override it.
        asks_by_default = self._overrides.defaults.flush_ms < LONG_MAX
        asking = self._replicas.of_topics(self._overrides.topics_with("flush.ms"))
        return self._each("a flush", look, self._replicas if asks_by_default else asking)

    def _roll_due(self, now_ms: int) -> Steps[None]:
        some = list(islice(self._rolling, ROLLS_PER_LOOK))
        if len(some) < ROLLS_PER_LOOK:
            # Start over, although the first partitions may be examined twice within a second.
            self._rolling = iter(self._replicas)
            some += islice(self._rolling, ROLLS_PER_LOOK - len(some))
        return self._each("a segment roll", lambda partition: partition.log.roll_if_due(now_ms), some)

    def _delete_due(self, now_ms: int) -> None:
        self._log_dirs.tick(self._clock.monotonic_ms())

    def _retention(self, now_ms: int) -> Steps[None]:
        def look(partition: Partition) -> bool:
            held = partition.log
            return held.size_bytes > 0 and bool(
                held.apply_retention(now_ms, partition.high_watermark, SEGMENTS_AT_ONCE)
            )

        return self._each("retention", look, self._replicas)

    def _compacted(self) -> Iterable[Partition]:
        """Return a superset of the partitions whose logs may be compacted."""
        if self._overrides.defaults.compact:
            return self._replicas
        return self._replicas.of_topics({*self._overrides.topics_with("cleanup.policy"), *INTERNAL_TOPICS})

    def _clean(self, now_ms: int) -> None:
        if self.cleaner is not None or any(item.log.config.compact for item in self._compacted()):
            self._the_cleaner().look(now_ms)

    def _the_cleaner(self) -> LogCleaner:
        if self.cleaner is None:
            from kafka_compat.upkeep.log_cleaner import LogCleaner

            self.cleaner = LogCleaner(self._config, self._clock, self._compacted, self._log_dirs, self._feed)
        return self.cleaner

    async def compact(self, partition: Partition) -> None:
        """Compact a partition's log now, except for records younger than min.compaction.lag.ms."""
        if partition.log.segments.active.size_bytes:
            partition.log.roll(self._clock.now_ms())
        await self._the_cleaner().clean_now(partition)

    def _expire_producers(self, now_ms: int) -> Steps[None]:
        return self._each(
            "producer expiry",
            lambda partition: partition.log.producers.remove_expired(now_ms),
            self._replicas,
        )

    def _checkpoint_high_watermarks(self, now_ms: int) -> None:
        monotonic_ms = self._clock.monotonic_ms()
        if monotonic_ms - self._checkpointed_ms >= len(self._replicas) // PARTITIONS_PER_CHECKPOINT_MS:
            self._checkpointed_ms = monotonic_ms
            self._log_dirs.checkpoint_high_watermarks(self._replicas.take_moved_high_watermarks())

    def _checkpoint_recovery_points(self, now_ms: int) -> None:
        self._log_dirs.checkpoint_recovery_points()

    def _checkpoint_start_offsets(self, now_ms: int) -> None:
        self._log_dirs.checkpoint_log_start_offsets()

    def _collect_garbage(self, now_ms: int) -> None:
        self._garbage.look(self._clock.monotonic_ms(), is_idle=self._is_idle)
