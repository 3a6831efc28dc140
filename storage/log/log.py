"""One partition's log: segments end to end, appended at one end and deleted at the other.

Appends are here; reads across the segments in `log_segments`, files in `log_folder`, flushes in `log_flush`,
retention and truncation in `log_deletion`.

Everything but `flush` and the second half of a truncation runs on one thread. Those run in the worker of the
log's directory: a flush takes the end offset, syncs what lies before it, and only then moves
`flushed_end_offset`, unless the log was truncated meanwhile. Neither waits for the other.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Final
from uuid import UUID

from kafka_compat.storage.clock import Clock
from kafka_compat.storage.config import LogConfig
from kafka_compat.storage.directories.deletions import Deletions
from kafka_compat.storage.directories.disk import Disk
from kafka_compat.storage.errors import (
    CorruptRecord,
    LogDirFailure,
    MessageTooLarge,
    OffsetOutOfRange,
    StorageError,
)
from kafka_compat.storage.filesystem import Filesystem
from kafka_compat.storage.log import deletion as log_deletion
from kafka_compat.storage.log import flush as log_flush
from kafka_compat.storage.log.leader_epochs import LeaderEpochs
from kafka_compat.storage.log.log_folder import LogFolder
from kafka_compat.storage.log.log_segments import LogSegments
from kafka_compat.storage.log.producers import ProducerState
from kafka_compat.storage.log.state import LogState
from kafka_compat.storage.log.timestamp_lookup import Lookup, first_at_or_after, first_with_max
from kafka_compat.storage.records.batch import (
    COMPRESSION_MASK,
    LOG_OVERHEAD,
    MAGIC_POSITION,
    BatchHeader,
    read_checked_headers,
    read_headers,
    stamp,
)
from kafka_compat.storage.records.compression import NAMES
from kafka_compat.storage.records.records import read_marker
from kafka_compat.storage.records.validation import ValidatedBatches, policy_of, validate_batches
from kafka_compat.storage.segments.open_segments import OpenSegments
from kafka_compat.storage.segments.segment import FileSlice, Segment
from kafka_compat.storage.segments.txn_index import AbortedTransaction, AbortedTxn

logger = logging.getLogger(__name__)

ATTRIBUTES_LOW_BYTE: Final = 22


class AppendInfo:
    """Where a request's batches went. `log_append_time` is -1 for CreateTime; `duplicate`: they were here
    already.
    """

    __slots__ = ("duplicate", "first_offset", "last_offset", "log_append_time", "log_start_offset")

    def __init__(
        self,
        first_offset: int,
        last_offset: int,
        log_append_time: int,
        log_start_offset: int,
        duplicate: bool,
    ) -> None:
        self.first_offset = first_offset
        self.last_offset = last_offset
        self.log_append_time = log_append_time
        self.log_start_offset = log_start_offset
        self.duplicate = duplicate


class Log(LogState):
    """See the module. Built by `loader`, owned by `directories.log_dirs`."""

    __slots__ = (
        "_codec",
        "_policy",
        "_reported_damage",
        "_roll_ms",
        "_segment_bytes",
        "partition",
        "topic",
        "topic_id",
    )

    def __init__(
        self,
        *,
        filesystem: Filesystem,
        open_segments: OpenSegments,
        disk: Disk,
        deletions: Deletions,
        directory: str,
        topic: str,
        partition: int,
        topic_id: UUID | None,
        config: LogConfig,
        segments: list[Segment],
        log_start_offset: int,
        log_end_offset: int,
        producers: ProducerState,
        leader_epochs: LeaderEpochs,
        clock: Clock,
    ) -> None:
        super().__init__(
            name=f"{topic}-{partition}",
            disk=disk,
            folder=LogFolder(filesystem, open_segments, deletions, disk.path, directory),
            segments=LogSegments(segments),
            config=config,
            log_start_offset=log_start_offset,
            log_end_offset=log_end_offset,
            producers=producers,
            leader_epochs=leader_epochs,
            clock=clock,
        )
        self.topic = topic
        self.partition = partition
        self.topic_id = topic_id
        self._reported_damage = ""
        self.update_config(config)

    def __repr__(self) -> str:
        return f"Log({self.name}, {self.log_start_offset}..{self.log_end_offset})"

    def update_config(self, config: LogConfig) -> None:
        """Obey `config` from now on."""
        self.config = config
        self._segment_bytes = config.segment_bytes
        self._roll_ms = config.roll_ms
        self._policy = policy_of(config, self.name)
        self._codec = None if config.compression_type == "producer" else NAMES[config.compression_type]
        for segment in self.segments.all:
            segment.index_interval_bytes = config.index_interval_bytes

    @property
    def directory(self) -> str:
        """Path of the folder."""
        return self.folder.path

    @property
    def segment_count(self) -> int:
        return len(self.segments.all)

    def segment_starts(self) -> list[tuple[int, int]]:
        """Base offset and time (ms) of the last modification of each segment, oldest first. Raises
        LogDirFailure.
        """
        with self.disk.reading(self.name):
            return [(max(s.base_offset, self.log_start_offset), s.modified_ms) for s in self.segments.all]

    # --- append

    def compresses_anew(self, data: memoryview) -> bool:
        """Whether a batch comes in another codec than the topic's."""
        return self._codec is not None and (
            data[MAGIC_POSITION] != 2 or data[ATTRIBUTES_LOW_BYTE] & COMPRESSION_MASK != self._codec
        )

    def validate(
        self, data: memoryview, now_ms: int, produce_version: int | None = None, *, quick: bool = False
    ) -> ValidatedBatches:
        """The part of `append_as_leader` that does not touch the log; another thread may do it. With `quick`
        it raises TakesLong instead of taking more than a few milliseconds.
        """
        return validate_batches(data, self._policy, now_ms, produce_version=produce_version, quick=quick)

    def append_as_leader(
        self,
        data: memoryview,
        *,
        leader_epoch: int,
        now_ms: int,
        produce_version: int | None = None,
        internal: bool = False,
        validated: ValidatedBatches | None = None,
    ) -> AppendInfo:
        """Check, stamp and store the batches of one request.

        `data` is stamped in place when it is writable. `internal` batches come from this broker's own
        coordinators and skip what only clients can get wrong. `validated` is what `validate` made of `data`.
        Raises a StorageError by cause; then nothing was stored.
        """
        if self.disk.failure is not None or self.cuts.count:
            self._check_writable()
        log_append_time = -1
        if internal:
            headers: Sequence[BatchHeader] = read_headers(data)
            if len(data) > self.config.max_message_bytes:
                raise MessageTooLarge(
                    f"{len(data)} bytes of a coordinator exceed "
                    f"max.message.bytes={self.config.max_message_bytes}"
                )
        else:
            if validated is None:
                validated = validate_batches(data, self._policy, now_ms, produce_version=produce_version)
            data = validated.data
            headers = validated.headers
            log_append_time = validated.log_append_time
        if data.readonly:
            data = memoryview(bytearray(data))
        producers = self.producers
        first_offset = next_offset = self.log_end_offset
        max_timestamp = -1
        position = 0
        for header in headers:
            if header.producer_id >= 0:
                marker = read_marker(data) if header.is_control else None
                duplicate = producers.check(header, now_ms, marker, sequenced=not internal)
                if duplicate is not None:
                    return AppendInfo(
                        duplicate.base_offset,
                        duplicate.last_offset,
                        duplicate.timestamp,
                        self.log_start_offset,
                        True,
                    )
            stamp(data, position, next_offset, leader_epoch)
            position += LOG_OVERHEAD + header.batch_length
            next_offset += header.last_offset_delta + 1
            if header.max_timestamp > max_timestamp:
                max_timestamp = header.max_timestamp
        if leader_epoch != self.latest_leader_epoch:
            self._assign_epoch(leader_epoch, first_offset)
        self._store(data, headers, first_offset, next_offset, max_timestamp, now_ms)
        return AppendInfo(first_offset, next_offset - 1, log_append_time, self.log_start_offset, False)

    def append_as_follower(self, data: memoryview) -> AppendInfo:
        """Store batches as the leader has them, offsets and epochs included.

        Raises CorruptRecord for a bad CRC, or for offsets that do not continue the log.
        """
        self._check_writable()
        headers = read_checked_headers(data, self.log_end_offset)
        if not headers:
            return AppendInfo(self.log_end_offset, self.log_end_offset - 1, -1, self.log_start_offset, False)
        for header in headers:
            leader_epoch = header.partition_leader_epoch
            if leader_epoch != self.latest_leader_epoch and leader_epoch >= 0:
                self._assign_epoch(leader_epoch, header.base_offset)
        next_offset = headers[-1].next_offset
        max_timestamp = max(header.max_timestamp for header in headers)
        self._store(data, headers, None, next_offset, max_timestamp, self.now_ms())
        return AppendInfo(headers[0].base_offset, next_offset - 1, -1, self.log_start_offset, False)

    def _store(
        self,
        data: memoryview,
        headers: Sequence[BatchHeader],
        first_offset: int | None,
        end_offset: int,
        max_timestamp: int,
        now_ms: int,
    ) -> None:
        """Write stamped batches; `first_offset` is the one they were stamped with, None when headers are
        right.
        """
        size_bytes = len(data)
        active = self.segments.active
        if self._must_roll(active, size_bytes, max_timestamp, end_offset, now_ms):
            active = self.roll(now_ms)
        try:
            active.write(data)
        except OSError as error:
            raise self.disk.refuse(error, f"append to {self.name}") from error
        if self.disk.refusing is not None:
            self.disk.accepted()
        next_offset = first_offset
        position = 0
        for header in headers:
            size = LOG_OVERHEAD + header.batch_length
            if next_offset is not None:
                base_offset = next_offset
                next_offset += header.last_offset_delta + 1
            else:
                base_offset = header.base_offset
            active.add_batch(base_offset + header.last_offset_delta, header.max_timestamp, size)
            if header.producer_id >= 0:
                batch = data[position : position + size]
                aborted = self.producers.apply(header, batch, base_offset=base_offset)
                if aborted is not None:
                    self._index_aborted(active, aborted)
            position += size
        self.log_end_offset = end_offset

    def _index_aborted(self, active: Segment, aborted: AbortedTxn) -> None:
        try:
            active.txn_index.append(aborted)
        except OSError as error:
            raise self.disk.fail(error, f"transaction index of {self.name}") from error

    def _check_writable(self) -> None:
        self.disk.check()
        self.cuts.check(self.name)

    def _must_roll(
        self, active: Segment, size_bytes: int, max_timestamp: int, end_offset: int, now_ms: int
    ) -> bool:
        if active.size_bytes == 0:
            return False
        return (
            active.size_bytes + size_bytes > self._segment_bytes
            or active.waited_ms(now_ms, max_timestamp) > self._roll_ms - active.roll_jitter_ms
            or active.indexes_full(self.config.segment_index_bytes)
            or not active.can_hold(end_offset)
        )

    def roll(self, now_ms: int) -> Segment:
        """Close the active segment and append to a new one. Raises LogDirFailure, or DiskFull with the
        segment as active as before.
        """
        try:
            self.segments.active.complete()
            self.folder.write_snapshot(self.log_end_offset, self.producers)
            segment = self.folder.create_segment(self.log_end_offset, self.config, now_ms)
        except OSError as error:
            raise self.disk.refuse(error, f"new segment of {self.name}") from error
        self.segments.add(segment)
        return segment

    def expire_producers(self, now_ms: int) -> None:
        """Forget producers that were silent for producer.id.expiration.ms."""
        self.producers.remove_expired(now_ms)

    def roll_if_due(self, now_ms: int) -> bool:
        """Start a new segment when segment.ms has passed over the active one; whether that was so."""
        if self.is_settling:
            return False
        active = self.segments.active
        age_ms = now_ms - active.created_ms
        if not active.size_bytes or age_ms <= self._roll_ms - active.roll_jitter_ms:
            return False
        self.roll(now_ms)
        return True

    def assign_topic_id(self, topic_id: UUID) -> None:
        """Note the id of the topic in partition.metadata; durable with the next flush. Raises
        LogDirFailure.
        """
        if topic_id == self.topic_id:
            return
        self.disk.check()
        try:
            self.folder.write_topic_id(topic_id)
        except OSError as error:
            raise self.disk.refuse(error, f"partition.metadata of {self.name}") from error
        self.topic_id = topic_id

    def assign_leader_epoch(self, leader_epoch: int) -> None:
        """This replica leads from `leader_epoch` on: the epoch starts at the log end."""
        if leader_epoch != self.latest_leader_epoch:
            self._assign_epoch(leader_epoch, self.log_end_offset)

    def take_leader_epochs(self, leader_epochs: LeaderEpochs) -> None:
        """Know the epochs of the log that this one is a copy of, those without a record included."""
        self.leader_epochs = leader_epochs
        self.epochs_changed()
        # Its own file does not have them.
        self.opened_end_offset = -1

    def _assign_epoch(self, leader_epoch: int, start_offset: int) -> None:
        self.leader_epochs.assign(leader_epoch, start_offset)
        self.latest_leader_epoch = leader_epoch
        self.leader_epochs_changed = True

    # --- read

    def read(
        self, offset: int, max_bytes: int, *, upper_bound: int | None = None, min_one_batch: bool = True
    ) -> FileSlice | None:
        """Whole batches from the one that holds `offset`, all of them below `upper_bound` (default: the log
        end).

        At most `max_bytes`, except that the first batch comes whole, however large, with `min_one_batch`.
        None when there is nothing. Raises OffsetOutOfRange outside [log start, log end].
        """
        if not self.log_start_offset <= offset <= self.log_end_offset:
            raise OffsetOutOfRange(
                f"offset {offset} is outside {self.log_start_offset}..{self.log_end_offset} of {self.name}"
            )
        if upper_bound is None or upper_bound > self.log_end_offset:
            upper_bound = self.log_end_offset
        if offset >= upper_bound:
            return None
        try:
            return self.segments.read(offset, max_bytes, upper_bound, self.log_end_offset, min_one_batch)
        except (OSError, CorruptRecord) as error:
            raise self.unreadable(error) from error

    def offset_for_timestamp(self, timestamp: int) -> Lookup:
        """Look for the first record at or behind the log start whose timestamp (ms) is at least
        `timestamp`.
        """
        return self._looked_up(first_at_or_after(self.segments, timestamp, self.log_start_offset))

    def max_timestamp_offset(self) -> Lookup:
        """Look for the first record with the largest timestamp of the log (KIP-734)."""
        return self._looked_up(first_with_max(self.segments, self.log_start_offset))

    def _looked_up(self, lookup: Lookup) -> Lookup:
        """Raises LogDirFailure when a file cannot be read, CorruptRecord when it is damaged."""
        try:
            return (yield from lookup)
        except (OSError, CorruptRecord) as error:
            raise self.unreadable(error) from error

    def unreadable(self, error: OSError | CorruptRecord) -> StorageError:
        """The exception to raise: a missing or shortened file is no failure of the whole log directory."""
        if self.closed:
            return LogDirFailure(f"{self.name} is not in {self.directory} any more")
        if isinstance(error, OSError) and not (isinstance(error, FileNotFoundError) and self.folder.exists()):
            return self.disk.fail(error, f"read of {self.name}")
        damage = str(error)
        if damage != self._reported_damage:
            self._reported_damage = damage
            logger.error(
                "Cannot read %s: %s. A restart recovers what is left; restore the file first if you can",
                self.name,
                damage,
            )
        return CorruptRecord(f"{self.name}: {damage}")

    def end_offset_for_epoch(self, leader_epoch: int) -> tuple[int, int]:
        """The largest known epoch up to `leader_epoch` and where it ended (KIP-101); (-1, -1) when
        unknown.
        """
        return self.leader_epochs.end_offset_for(leader_epoch, self.log_end_offset)

    # --- transactions

    def last_stable_offset(self, high_watermark: int) -> int:
        """The offset up to which no transaction is open, at most `high_watermark`, and not below the log
        start (DeleteRecords may have passed the start of an open transaction).
        """
        stable_offset = self.producers.last_stable_offset(high_watermark)
        return stable_offset if stable_offset >= self.log_start_offset else self.log_start_offset

    def aborted_transactions(self, fetch_offset: int, upper_bound: int) -> list[AbortedTransaction]:
        """Aborted transactions with records in [fetch_offset, upper_bound), for a read_committed fetch."""
        with self.disk.reading(self.name):
            return self.segments.aborted_transactions(fetch_offset, upper_bound)

    # --- flush

    def flush(self) -> None:
        """Make everything appended so far durable; may run in a thread of its own. Raises LogDirFailure."""
        log_flush.flush(self)

    def flush_due(self) -> bool:
        """Whether flush.ms has passed over records that are not durable yet."""
        waited_ms = self.monotonic_ms() - self.last_flush_ms
        return self.flushed_end_offset < self.log_end_offset and waited_ms >= self.config.flush_ms

    # --- deletion and truncation

    def apply_retention(self, now_ms: int, high_watermark: int) -> list[int]:
        """Delete the segments that may go; their base offsets."""
        return log_deletion.apply_retention(self, now_ms, high_watermark, self.roll)

    def truncate_to(self, offset: int) -> None:
        """Drop every record at or above `offset`, which a follower does when its leader has other ones."""
        log_deletion.truncate_to(self, offset)

    def truncate_fully_and_start_at(self, offset: int) -> None:
        """Drop everything; the next record gets `offset`."""
        log_deletion.truncate_fully_and_start_at(self, offset)

    # --- the end

    def close(self) -> None:
        """Flush, and write all that a clean start trusts: indexes, producer snapshot, leader epochs."""
        if not self.closed:
            log_flush.close(self)
