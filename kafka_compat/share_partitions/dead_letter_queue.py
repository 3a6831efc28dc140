"""The dead letter queues of the share-partitions that this broker leads (KIP-1191).

Rules
1. The dead letters for one partition of a dead letter topic wait in order. At most one batch for each
   partition is being produced, and at most BATCHES_MAX on this broker. The content of records is read from
   the log only for these batches, so a waiting dead letter needs little memory.
2. A batch combines the dead letters of all share-partitions that are written to the same partition.
3. After a retriable error, the partition is attempted again with a doubling backoff. Dead letters that were
   waiting during ATTEMPTS_MAX failed attempts in a row are given up: their records are archived without being
   written. After any other error, those of the batch are given up at once, with the exception of rule 4.
4. If a batch is rejected because of its records, they are written one by one, so that only the rejected ones
   are given up. One that is too large is first attempted without its key and value.
5. Dead letters of a share-partition that has been forgotten are dropped, because its stored state makes the
   next leader write them.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable, Sequence
from functools import partial
from itertools import groupby
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol

from kafka_compat.errors import ErrorCode
from kafka_compat.share_partitions.counts import ShareCounts
from kafka_compat.share_partitions.dead_letters import (
    Contents,
    DeadLetterBatch,
    Origin,
    headers_of,
    read_contents,
    refusal,
)

if TYPE_CHECKING:
    from kafka_compat.config.group import ShareGroupConfig, ShareGroupLimits
    from kafka_compat.coordinator_runtime.scheduler import Scheduler, TimerHandle
    from kafka_compat.long_work import LongWork, Steps
    from kafka_compat.metadata.cache import MetadataCache
    from kafka_compat.metadata.topic_overrides import TopicOverrides
    from kafka_compat.replication.partition import Partition
    from kafka_compat.share_coordinator.persister import SharePartitionKey
    from kafka_compat.share_partitions.changes import DeadLetters

log = logging.getLogger(__name__)

ATTEMPTS_MAX: Final = 5
BATCHES_MAX: Final = 8
"""Maximum number of batches that are being produced at the same time."""
BACKOFF_MS: Final = 1_000
BACKOFF_MAX_MS: Final = 30_000
_WARNING_INTERVAL_MS: Final = 60_000
_WARNINGS_MAX: Final = 100
"""Maximum number of groups that are named in warnings during one interval."""
_UNPREPARED: Final = -1
"""The partition of dead letters whose topic is being created, or whose settings are being read."""
_RETRIABLE: Final = frozenset(
    (
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.LEADER_NOT_AVAILABLE,
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.REQUEST_TIMED_OUT,
        ErrorCode.NETWORK_EXCEPTION,
        ErrorCode.NOT_ENOUGH_REPLICAS,
        ErrorCode.NOT_CONTROLLER,
        ErrorCode.KAFKA_STORAGE_ERROR,
        ErrorCode.THROTTLING_QUOTA_EXCEEDED,
    )
)
_OF_RECORDS: Final = frozenset(
    (ErrorCode.MESSAGE_TOO_LARGE, ErrorCode.RECORD_LIST_TOO_LARGE, ErrorCode.INVALID_RECORD)
)
"""Errors that may be due to single records of a batch (rule 4)."""

Done = Callable[[ErrorCode], None]


class DeadLetterSource(Protocol):
    """A share-partition with dead letters."""

    key: SharePartitionKey
    replica: Partition
    is_closed: bool

    def dead_letters_written(self, letters: Sequence[DeadLetters]) -> None:
        """Archive the records, because they have been written or cannot be written."""


class DeadLetterTopics(Protocol):
    """The topics and partitions that dead letters are written to."""

    def prepare(self, topic: str, *, creates: bool, done: Done) -> None:
        """Read the settings of a topic. If it is missing and `creates` is true, create it."""

    def produce(self, topic: str, partition: int, batch: bytes, done: Done) -> None:
        """Append a batch to a partition on any broker, with acks=all."""


class _Job:
    """Dead letters that wait. Those before `next_offset` have been written."""

    __slots__ = ("failures_before", "letters", "next_offset", "source")

    def __init__(self, source: DeadLetterSource, letters: DeadLetters) -> None:
        self.source = source
        self.letters = letters
        self.next_offset = letters.first
        self.failures_before = 0
        """The number of failures of the destination when the job was added."""


class _Destination:
    """A partition of a dead letter topic."""

    __slots__ = (
        "failures",
        "failures_before_success",
        "jobs",
        "omits_content",
        "partition",
        "singles",
        "timer",
        "topic",
    )

    def __init__(self, topic: str, partition: int) -> None:
        self.topic = topic
        self.partition = partition
        self.jobs: deque[_Job] = deque()
        self.failures = 0
        self.failures_before_success = 0
        self.singles = 0
        """The number of dead letters to be written one by one."""
        self.omits_content = False
        """Whether the next dead letter is written without the key and value of its record."""
        self.timer: TimerHandle | None = None

    def requeue(self, parts: Sequence[_Part]) -> None:
        """Add jobs again, before those that wait."""
        self.jobs.extendleft(part.job for part in reversed(parts))

    def attempts(self, job: _Job) -> int:
        """Return the number of failures in a row since the job was added."""
        return self.failures - max(job.failures_before, self.failures_before_success)


class _Part(NamedTuple):
    """A job in a batch, and the offset after its last dead letter in the batch."""

    job: _Job
    next_offset: int


class _Batch(NamedTuple):
    """The bytes of a batch, or none if there are no dead letters, and what is in it."""

    content: bytes
    parts: list[_Part]
    letter_count: int = 0
    has_copies: bool = False


class DeadLetterQueue:
    """Writes dead letters, according to the rules of this module."""

    def __init__(
        self,
        *,
        settings: Callable[[str], ShareGroupConfig],
        limits: Callable[[], ShareGroupLimits],
        metadata: MetadataCache,
        overrides: TopicOverrides,
        topics: DeadLetterTopics,
        scheduler: Scheduler,
        long_work: LongWork,
        now_ms: Callable[[], int],
        counts: ShareCounts | None = None,
    ) -> None:
        """`settings` returns the settings of a group, and `limits` returns the limits of the broker."""
        self._settings = settings
        self._limits = limits
        self._metadata = metadata
        self._overrides = overrides
        self._topics = topics
        self._scheduler = scheduler
        self._long_work = long_work
        self._now_ms = now_ms
        self._counts = ShareCounts() if counts is None else counts
        self._destinations: dict[tuple[str, int], _Destination] = {}
        self._ready: deque[_Destination] = deque()
        self._batches = 0
        self._is_waking = False
        self._is_closed = False
        self._warned: set[str] = set()
        self._warned_at_ms = scheduler.monotonic_ms()

    def __len__(self) -> int:
        """Return the number of partitions for which dead letters wait."""
        return len(self._destinations)

    def write(self, source: DeadLetterSource, letters: Sequence[DeadLetters]) -> None:
        """Write dead letters, and pass them to `source.dead_letters_written` later."""
        if letters:
            self._enqueue(source, [_Job(source, each) for each in letters])

    def close(self) -> None:
        """Stop. The stored states make the next leader write what is waiting."""
        self._is_closed = True
        for destination in self._destinations.values():
            if destination.timer is not None:
                destination.timer.cancel()
        self._destinations.clear()
        self._ready.clear()

    def _enqueue(self, source: DeadLetterSource, jobs: Sequence[_Job]) -> None:
        """Add the jobs of a share-partition to their destination."""
        if self._is_closed:
            return
        topic = self._settings(source.key.group_id).dead_letter_topic
        known = None if topic is None else self._metadata.topics.get(topic)
        limits = self._limits()
        has_settings = topic is not None and topic in self._overrides
        problem = refusal(
            topic,
            limits.dead_letter_topic_prefix,
            exists=known is not None,
            is_enabled=topic is not None
            and (not has_settings or self._overrides.accepts_dead_letters(topic)),
            creates=limits.creates_dead_letter_topics,
        )
        if topic is None or problem is not None:
            self._scheduler.call_later(0, partial(self._give_up, jobs, problem or ""))
            return
        partition = _UNPREPARED
        if known is not None and has_settings:
            partition = source.replica.partition % len(known.partitions)
        destination = self._destinations.get((topic, partition))
        if destination is None:
            destination = self._destinations[topic, partition] = _Destination(topic, partition)
            self._ready.append(destination)
            self._wake()
        for job in jobs:
            job.failures_before = destination.failures
        destination.jobs.extend(jobs)

    # --- producing

    def _wake(self) -> None:
        """Produce after the current request, which may add more dead letters."""
        if not self._is_waking and not self._is_closed:
            self._is_waking = True
            self._scheduler.call_later(0, self._produce_ready)

    def _produce_ready(self) -> None:
        self._is_waking = False
        while self._ready and self._batches < BATCHES_MAX:
            destination = self._ready.popleft()
            if destination.partition == _UNPREPARED:
                self._prepare(destination)
            else:
                self._batches += 1
                self._long_work.start(self._build(destination), partial(self._built, destination))

    def _prepare(self, destination: _Destination) -> None:
        parts = [_Part(job, job.next_offset) for job in _take(destination)]
        self._topics.prepare(
            destination.topic,
            creates=self._limits().creates_dead_letter_topics,
            done=partial(self._prepared, destination, parts),
        )

    def _prepared(self, destination: _Destination, parts: list[_Part], code: ErrorCode) -> None:
        if self._is_closed:
            return
        if code == ErrorCode.NONE and destination.topic not in self._metadata.topics:
            code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        if code == ErrorCode.NONE:
            jobs = [*(part.job for part in parts), *_take(destination)]
            self._ended(destination)
            for _, of_source in groupby(jobs, lambda job: id(job.source)):
                same = list(of_source)
                self._enqueue(same[0].source, same)
        else:
            self._produced(destination, _Batch(b"", parts), code)

    def _build(self, destination: _Destination) -> Steps[_Batch]:
        """Build the next batch. It is empty if no dead letters are left."""
        max_message_bytes = self._overrides.log_config(destination.topic).max_message_bytes
        batch = DeadLetterBatch(max_message_bytes, self._now_ms(), is_single=destination.singles > 0)
        parts: list[_Part] = []
        jobs = destination.jobs
        try:
            while jobs:
                job = jobs.popleft()
                if job.source.is_closed:
                    continue
                parts.append(_Part(job, job.next_offset))
                next_offset = yield from self._add(batch, job, omits_content=destination.omits_content)
                parts[-1] = _Part(job, next_offset)
                if next_offset <= job.letters.last:
                    break
            return _Batch(batch.build() if len(batch) else b"", parts, len(batch), batch.has_copies)
        except Exception:
            # Catch all errors: an unhandled error would leave records in flight indefinitely.
            log.exception("Could not build dead letters for %s-%d", destination.topic, destination.partition)
            return _Batch(b"", [_Part(part.job, part.job.letters.last + 1) for part in parts])

    def _add(self, batch: DeadLetterBatch, job: _Job, *, omits_content: bool) -> Steps[int]:
        """Add the dead letters of a job, until the batch is full. Return the next offset."""
        key, replica = job.source.key, job.source.replica
        _, last, delivery_count, cause = job.letters
        origin = Origin(key.group_id, replica.topic, replica.partition)
        copies = self._settings(key.group_id).copies_dead_letters and not omits_content
        contents = Contents({}, last)
        offset = job.next_offset
        while offset <= last:
            if copies:
                contents = yield from read_contents(replica, offset, last, batch.max_bytes, batch.room_bytes)
            while offset <= contents.through:
                if offset % 100 == 0:
                    yield None
                if not batch.add(headers_of(origin, offset, delivery_count, cause), contents.get(offset)):
                    return offset
                offset += 1
        return offset

    def _built(self, destination: _Destination, batch: _Batch) -> None:
        if batch.content and not self._is_closed:
            for group_id in {part.job.source.key.group_id for part in batch.parts}:
                self._counts.group(group_id).dead_letter_requests += 1
            self._topics.produce(
                destination.topic,
                destination.partition,
                batch.content,
                partial(self._produced, destination, batch),
            )
        else:
            self._produced(destination, batch, ErrorCode.NONE)

    def _produced(self, destination: _Destination, batch: _Batch, code: ErrorCode) -> None:
        if self._is_closed:
            return
        parts = batch.parts
        self._count(parts, code)
        if code == ErrorCode.NONE:
            self._finish(destination, batch)
        elif code in _RETRIABLE:
            self._failed(destination, parts, code)
        elif code in _OF_RECORDS and batch.letter_count:
            self._rejected(destination, batch, code)
        else:
            self._give_up([part.job for part in parts], f"topic {destination.topic}: {code.name}")
        self._ended(destination)

    def _finish(self, destination: _Destination, batch: _Batch) -> None:
        """Continue after the dead letters of a batch, which have been written or given up."""
        destination.failures_before_success = destination.failures
        destination.singles = max(destination.singles - batch.letter_count, 0)
        destination.omits_content = False
        written = [part.job for part in batch.parts if part.next_offset > part.job.letters.last]
        left = [part for part in batch.parts if part.next_offset <= part.job.letters.last]
        for part in left:
            part.job.next_offset = part.next_offset
        destination.requeue(left)
        _report(written)

    def _rejected(self, destination: _Destination, batch: _Batch, code: ErrorCode) -> None:
        """Attempt the dead letters of a rejected batch again by rule 4, or give up its only one."""
        if batch.letter_count > 1:
            destination.singles = batch.letter_count
        elif batch.has_copies and code != ErrorCode.INVALID_RECORD:
            destination.singles = max(destination.singles, 1)
            destination.omits_content = True
        else:
            groups = (p.job.source.key.group_id for p in batch.parts if p.next_offset > p.job.next_offset)
            self._warn(next(groups), f"topic {destination.topic}: {code.name}")
            self._finish(destination, batch)
            return
        destination.requeue(batch.parts)

    def _count(self, parts: Sequence[_Part], code: ErrorCode) -> None:
        """Count what was written, or the failure for each group."""
        if code == ErrorCode.NONE:
            for job, next_offset in parts:
                self._counts.group(job.source.key.group_id).dead_letters += next_offset - job.next_offset
        else:
            for group_id in {part.job.source.key.group_id for part in parts}:
                self._counts.group(group_id).failed_dead_letter_requests += 1

    def _failed(self, destination: _Destination, parts: list[_Part], code: ErrorCode) -> None:
        """Attempt again after a backoff, and give up the dead letters that have been attempted often."""
        destination.failures += 1
        destination.requeue(parts)
        jobs = destination.jobs
        given_up = []
        while jobs and destination.attempts(jobs[0]) >= ATTEMPTS_MAX:
            given_up.append(jobs.popleft())
        if given_up:
            self._give_up(given_up, f"topic {destination.topic}: {code.name}")
        if jobs:
            backoff_ms = BACKOFF_MS << max(destination.attempts(jobs[0]) - 1, 0)
            destination.timer = self._scheduler.call_later(
                min(backoff_ms, BACKOFF_MAX_MS), partial(self._attempt_again, destination)
            )

    def _attempt_again(self, destination: _Destination) -> None:
        destination.timer = None
        self._ready.append(destination)
        self._wake()

    def _ended(self, destination: _Destination) -> None:
        """Continue after an attempt."""
        if destination.partition != _UNPREPARED:
            self._batches -= 1
        if not destination.jobs:
            del self._destinations[destination.topic, destination.partition]
        elif destination.timer is None:
            self._ready.append(destination)
        if self._ready:
            self._wake()

    # --- results

    def _give_up(self, jobs: Sequence[_Job], problem: str) -> None:
        """Archive the records without having written them."""
        for job in jobs:
            self._warn(job.source.key.group_id, problem)
        _report(jobs)

    def _warn(self, group_id: str, problem: str) -> None:
        """Log a warning, once a minute for each group."""
        now_ms = self._scheduler.monotonic_ms()
        if now_ms - self._warned_at_ms >= _WARNING_INTERVAL_MS:
            self._warned_at_ms = now_ms
            self._warned.clear()
        if group_id not in self._warned and len(self._warned) < _WARNINGS_MAX:
            self._warned.add(group_id)
            log.warning("Archived records of share group %s without dead letters: %s", group_id, problem)


def _take(destination: _Destination) -> list[_Job]:
    jobs = list(destination.jobs)
    destination.jobs.clear()
    return jobs


def _report(jobs: Sequence[_Job]) -> None:
    """Report the dead letters of each share-partition together, because they are stored together."""
    of_source: dict[int, tuple[DeadLetterSource, list[DeadLetters]]] = {}
    for job in jobs:
        of_source.setdefault(id(job.source), (job.source, []))[1].append(job.letters)
    for source, letters in of_source.values():
        if not source.is_closed:
            source.dead_letters_written(letters)
