"""Compaction scheduler of one broker: selects the dirtiest log, starts a child process that cleans it, and
installs the cleaned segments.

Rules
1. A child works on one log at a time, and up to log.cleaner.threads children may run. The dirtiest log is
   cleaned first.
2. A child only writes `.cleaned` files. Only the broker changes the log, on its loop, between two requests.
3. If a child fails or is killed, the log keeps the segments that were already swapped and is otherwise
   unchanged; it is cleaned again later. A log that cannot be cleaned is skipped until the broker restarts.
4. The clean offset of a log is recorded after its new files are durable.
"""

import asyncio
import json
import logging
import os
import subprocess
import tempfile
from collections.abc import Callable, Iterable
from typing import Any

from kafka_compat import own_processes
from kafka_compat.config import BrokerConfig
from kafka_compat.metadata.feed import MetadataDelta, MetadataFeed
from kafka_compat.replication.partition import Partition
from kafka_compat.storage.clock import Clock
from kafka_compat.storage.compaction.cleaner_job import CleanedGroup, CleaningDone, CleaningJob
from kafka_compat.storage.directories.checkpoints import TopicPartition
from kafka_compat.storage.directories.log_dirs import LogDirs
from kafka_compat.storage.errors import StorageError
from kafka_compat.storage.log import cleaning as log_cleaning
from kafka_compat.storage.log.log import Log
from kafka_compat.upkeep.cleaner_stats import CleanerStats, Cleaning

logger = logging.getLogger(__name__)

READ_BYTES = 64 * 1024
EXIT_POLL_S = 0.05
STOP_TIMEOUT_S = 5


class LogCleaner:
    def __init__(
        self,
        config: BrokerConfig,
        clock: Clock,
        candidates: Callable[[], Iterable[Partition]],
        log_dirs: LogDirs,
        feed: MetadataFeed,
    ) -> None:
        """`candidates` returns at least all partitions whose logs may be compacted."""
        self.loop = asyncio.get_running_loop()
        self._config = config
        self._clock = clock
        self._candidates = candidates
        self._log_dirs = log_dirs
        self._clean_up_to = log_dirs.clean_offsets
        self._running: dict[TopicPartition, _Child] = {}
        self._waiting: dict[TopicPartition, list[asyncio.Future[None]]] = {}
        """Futures that are completed when a child exits."""
        self._uncleanable: set[Log] = set()
        self._stopped = False
        self._reported = ""
        self.stats = CleanerStats()
        feed.subscribe(self._on_metadata)

    def look(self, now_ms: int) -> None:
        """Start cleanings that are due, and stop those whose results would be useless (`is_pointless`)."""
        for child in list(self._running.values()):
            if child.is_pointless:
                child.kill()
        while not self._stopped and len(self._running) < self._config.int("log.cleaner.threads"):
            found = self._dirtiest(now_ms)
            if found is None:
                return
            try:
                self._start(*found, now_ms)
            except OSError as error:
                # The next check retries, so log a lack of processes, descriptors or space only once.
                if str(error) != self._reported:
                    self._reported = str(error)
                    key = found[0].topic, found[0].partition
                    logger.warning("Could not start cleaning %s-%d: %s; retrying", *key, error)
                return
            self._reported = ""

    async def clean_due(self, now_ms: int) -> None:
        """Attempt all cleanings that are due, and return when they have ended."""
        self.look(now_ms)
        while self._running:
            await self._end_of(next(iter(self._running)))

    async def clean_now(self, partition: Partition) -> None:
        """Attempt to clean a log, even if its dirty part is small. Return when the attempt has ended."""
        log, key = partition.log, (partition.topic, partition.partition)
        while key in self._running:
            await self._end_of(key)
        now_ms = self._clock.now_ms()
        dirty = log_cleaning.find_dirty_part(
            log, self._clean_up_to.get(key), partition.last_stable_offset, now_ms
        )
        if dirty.dirty_bytes and not self._stopped and not self.is_moving(log):
            self._start(log, dirty, now_ms)
            await self._end_of(key)

    def _end_of(self, key: TopicPartition) -> asyncio.Future[None]:
        end: asyncio.Future[None] = self.loop.create_future()
        self._waiting.setdefault(key, []).append(end)
        return end

    def _start(self, log: Log, dirty: log_cleaning.DirtyPart, now_ms: int) -> None:
        config = self._config
        children_max = config.int("log.cleaner.threads")
        job = log_cleaning.new_job(
            log,
            dirty,
            now_ms=now_ms,
            dedupe_buffer_bytes=config.int("log.cleaner.dedupe.buffer.size") // children_max,
            load_factor=config.double("log.cleaner.io.buffer.load.factor"),
            io_bytes_per_s=max(config.double("log.cleaner.io.max.bytes.per.second") / children_max, 1.0),
        )
        cleaning = Cleaning(job, self._clock.monotonic_ms())
        self._running[log.topic, log.partition] = _Child(self, log, job, cleaning)

    def is_moving(self, log: Log) -> bool:
        """Return whether the log is being moved. As in Kafka, moving logs are not cleaned: a tombstone could
        be removed after the record that it deletes was copied, but before the tombstone itself is copied.
        """
        return (log.topic, log.partition) in self._log_dirs.futures

    def uncleanable(self) -> list[tuple[Log, int]]:
        """Return the logs that cannot be cleaned, each with the number of its dirty bytes."""
        found: list[tuple[Log, int]] = []
        for partition in self._candidates() if self._uncleanable else ():
            log, key = partition.log, (partition.topic, partition.partition)
            if log in self._uncleanable:
                end = partition.last_stable_offset
                now_ms = self._clock.now_ms()
                dirty = log_cleaning.find_dirty_part(log, self._clean_up_to.get(key), end, now_ms)
                found.append((log, dirty.dirty_bytes))
        return found

    def _dirtiest(self, now_ms: int) -> tuple[Log, log_cleaning.DirtyPart] | None:
        best: tuple[Log, log_cleaning.DirtyPart] | None = None
        self.stats.look_begins(self._clock.monotonic_ms())
        for partition in self._candidates():
            log, key = partition.log, (partition.topic, partition.partition)
            if not log.config.compact or key in self._running or log in self._uncleanable:
                continue
            if self.is_moving(log):
                continue
            dirty = log_cleaning.find_dirty_part(
                log, self._clean_up_to.get(key), partition.last_stable_offset, now_ms
            )
            self.stats.saw(dirty)
            if log_cleaning.is_due(log, dirty) and (best is None or dirty.ratio > best[1].ratio):
                best = log, dirty
        return best

    def stop(self) -> None:
        """Kill the children and wait for their exit. Unfinished cleanings are discarded."""
        self._stopped = True
        for child in list(self._running.values()):
            child.kill(wait=True)

    def group_ready(self, child: "_Child", group: CleanedGroup) -> None:
        """Install a cleaned segment."""
        child.cleaning.copied(group)
        key = child.log.topic, child.log.partition
        # Checkpoint the offset before a gap appears: recovery treats gaps in an uncleaned log as damage.
        if key not in self._clean_up_to:
            self._clean_up_to[key] = child.job.first_dirty_offset
            self._log_dirs.checkpoint_clean_offsets()
        if not log_cleaning.swap(child.log, child.job, group):
            logger.info("Stopped cleaning %s-%d: its log has changed; retrying later", *key)
            child.kill()

    def finished(self, child: "_Child", done: CleaningDone) -> None:
        """Record a log's clean offset. It is checkpointed after the cleaned segments are durable."""
        child.cleaning.ended(done.key_count, self._clock.monotonic_ms())
        self.stats.last = child.cleaning
        log = child.log
        key = log.topic, log.partition
        self._clean_up_to[key] = done.end_offset
        logger.info("Cleaned %s-%d up to offset %d", *key, done.end_offset)
        self._log_dirs.checkpoint_clean_offsets(flush_before=log)

    def failed(self, child: "_Child", reason: str, *, may_try_again: bool) -> None:
        """Log a failed cleaning. If it must not be retried, skip the log until the broker restarts."""
        later = "retrying later" if may_try_again else "not retrying"
        logger.error("Could not clean %s-%d: %s; %s", child.log.topic, child.log.partition, reason, later)
        if not may_try_again:
            self._uncleanable.add(child.log)

    def exited(self, child: "_Child") -> None:
        """Handle the exit of a child process, and start the next cleaning that is due."""
        key = child.log.topic, child.log.partition
        del self._running[key]
        for end in self._waiting.pop(key, ()):
            if not end.done():
                end.set_result(None)
        if child.done and not self._stopped:
            self.look(self._clock.now_ms())

    def _on_metadata(self, delta: MetadataDelta) -> None:
        for topic in delta.deleted:
            for partition in topic.partitions:
                child = self._running.get((topic.name, partition.partition))
                if child is not None:
                    child.kill()


class _Child:
    """A process that cleans a log, and the messages from it."""

    def __init__(self, cleaner: LogCleaner, log: Log, job: CleaningJob, cleaning: Cleaning) -> None:
        self.log = log
        self.job = job
        self.cleaning = cleaning
        self.done = False
        self._truncations = log.truncation_count
        self._cleaner = cleaner
        self._closed = False
        self._loop = cleaner.loop
        self._said = b""
        with tempfile.TemporaryFile() as file:
            file.write(job.encode())
            file.seek(0)
            self._process = subprocess.Popen(
                own_processes.command("kafka_compat.storage.compaction.cleaner_process", str(file.fileno())),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                pass_fds=[file.fileno(), *own_processes.descriptors()],
                env=own_processes.environment(),
            )
        assert self._process.stdout is not None
        self._output = self._process.stdout.fileno()
        os.set_blocking(self._output, False)
        self._loop.add_reader(self._output, self._read)

    @property
    def is_gone(self) -> bool:
        """Whether the log is closed or its disk has failed."""
        return self.log.closed or self.log.disk.failure is not None

    @property
    def is_pointless(self) -> bool:
        """Whether to stop the cleaning: the log is moving, was closed or truncated, or its disk failed."""
        log = self.log
        return self.is_gone or log.truncation_count != self._truncations or self._cleaner.is_moving(log)

    def kill(self, *, wait: bool = False) -> None:
        """Kill the process. `exited` is called later or, with `wait`, before this method returns."""
        self._process.kill()
        if wait:
            try:
                self._process.wait(STOP_TIMEOUT_S)
            except subprocess.TimeoutExpired:
                blocked = self._process.pid
                logger.warning("Log cleaner process %d is blocked in disk I/O: check the disk", blocked)
            self._close()

    def _read(self) -> None:
        data = os.read(self._output, READ_BYTES)
        if not data:
            self._loop.remove_reader(self._output)
            self._await_exit()
            return
        *lines, self._said = (self._said + data).split(b"\n")
        for line in lines:
            try:
                self._obey(json.loads(line))
            except StorageError as error:
                logger.error("Could not clean %s-%d: %s", self.log.topic, self.log.partition, error)
                self._process.kill()
            except Exception:
                logger.exception("Could not clean %s-%d", self.log.topic, self.log.partition)
                self._process.kill()

    def _obey(self, message: dict[str, Any]) -> None:
        if self.is_pointless:
            self._process.kill()
        elif "group" in message:
            group = message["group"]
            self._cleaner.group_ready(
                self,
                CleanedGroup(tuple(group["sources"]), group["size_bytes"], group["has_transaction_index"]),
            )
        elif "done" in message:
            self.done = True
            self._cleaner.finished(self, CleaningDone(**message["done"]))
        else:
            self._cleaner.failed(self, message["failed"], may_try_again=message["is_disk"])

    def _await_exit(self) -> None:
        if self._closed:
            return
        if self._process.poll() is None:
            self._loop.call_later(EXIT_POLL_S, self._await_exit)
        else:
            self._close()

    def _close(self) -> None:
        if self._closed:
            return
        self._closed = True
        self._loop.remove_reader(self._output)
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None and not pipe.closed:
                pipe.close()
        if not self.done and not self.is_gone:
            try:
                log_cleaning.discard(self.log)
            except StorageError as error:
                logger.error("Could not clean %s-%d: %s", self.log.topic, self.log.partition, error)
        self._cleaner.exited(self)
