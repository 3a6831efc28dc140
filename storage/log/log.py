"""The log of one partition: a sequence of segments. Batches are appended at its end, and the oldest segments
are deleted.

A log consists of several objects: `segments` serves reads and lookups, `files` manages the files, `flushing`
makes the files durable, `producers` checks sequences and transactions, `leader_epochs` contains the leader
epochs, and `truncations` contains truncations that are not on disk yet. The module `retention` decides which
segments are deleted.

`flush` and the file changes of a truncation run in the worker of the log's directory. All other methods run
on one thread.
"""

from __future__ import annotations

import logging
import sys
from collections.abc import Sequence
from typing import Final
from uuid import UUID

from kafka_compat.storage.clock import Clock
from kafka_compat.storage.config import LogConfig
from kafka_compat.storage.directories.checkpoints import TopicPartition
from kafka_compat.storage.directories.disk import Disk
from kafka_compat.storage.errors import (
    CorruptRecord,
    DiskFull,
    EarlierSequence,
    LogDirFailure,
    MessageTooLarge,
    OffsetOutOfRange,
    StorageError,
)
from kafka_compat.storage.log.flushing import Flushing
from kafka_compat.storage.log.leader_epochs import LeaderEpochs
from kafka_compat.storage.log.log_files import LogFiles
from kafka_compat.storage.log.log_segments import LogSegments
from kafka_compat.storage.log.older_batches import repeated_batch
from kafka_compat.storage.log.producer_state import Duplicate, ProducerState
from kafka_compat.storage.log.retention import deletable
from kafka_compat.storage.log.timestamp_lookup import Lookup, first_at_or_after, first_with_max
from kafka_compat.storage.log.transaction_indexes import aborted_transactions, intact
from kafka_compat.storage.log.truncations import Truncation, Truncations
from kafka_compat.storage.records.batch import (
    COMPRESSION_MASK,
    LOG_OVERHEAD,
    MAGIC_POSITION,
    BatchHeader,
    Buffer,
    read_checked_headers,
    read_headers,
    stamp,
    stamped,
)
from kafka_compat.storage.records.compression import NAMES
from kafka_compat.storage.records.records import read_marker
from kafka_compat.storage.records.validation import ValidatedBatches, policy_of, validate_batches
from kafka_compat.storage.segments.file_slice import FileSlice
from kafka_compat.storage.segments.segment import Segment
from kafka_compat.storage.segments.txn_index import AbortedTransaction, AbortedTxn, TransactionIndex

logger = logging.getLogger(__name__)

ATTRIBUTES_LOW_BYTE: Final = 22


class AppendInfo:
    """The offsets of appended batches. `log_append_time` is -1 if the topic uses CreateTime. `duplicate` is
    true if the request is a retry. In that case, the offsets are those of the stored batch.
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


class LogContents:
    """The segments and the state of a log that is being opened."""

    __slots__ = ("end_offset", "leader_epochs", "producers", "segments", "start_offset", "topic_id")

    def __init__(
        self,
        segments: list[Segment],
        start_offset: int,
        end_offset: int,
        producers: ProducerState,
        leader_epochs: LeaderEpochs,
        topic_id: UUID | None,
    ) -> None:
        """`segments` contains at least one segment, oldest first. `leader_epochs` matches its stored form."""
        self.segments = segments
        self.start_offset = start_offset
        self.end_offset = end_offset
        self.producers = producers
        self.leader_epochs = leader_epochs
        self.topic_id = topic_id


class Log:
    """The log of one partition. `loader` creates logs, and `directories.log_dirs` owns them."""

    __slots__ = (
        "_clock",
        "_codec",
        "_index_bytes",
        "_policy",
        "_reported_damage",
        "_roll_ms",
        "_segment_bytes",
        "closed",
        "config",
        "disk",
        "files",
        "flushing",
        "leader_epochs",
        "log_end_offset",
        "log_start_offset",
        "name",
        "opened_end_offset",
        "partition",
        "producers",
        "segments",
        "topic",
        "topic_id",
        "truncations",
    )

    def __init__(
        self,
        key: TopicPartition,
        contents: LogContents,
        config: LogConfig,
        disk: Disk,
        files: LogFiles,
        clock: Clock,
    ) -> None:
        self.topic, self.partition = key
        self.name = f"{self.topic}-{self.partition}"
        """The name of the partition in log messages."""
        self.topic_id = contents.topic_id
        self.log_start_offset = contents.start_offset
        self.log_end_offset = contents.end_offset
        self.opened_end_offset = -1
        """The log end offset when the log was opened, or -1 if it had not been closed cleanly."""
        self.closed = False
        self.disk = disk
        self.files = files
        self.segments = LogSegments(contents.segments)
        self.producers = contents.producers
        self.leader_epochs = contents.leader_epochs
        self.leader_epochs.changed = False
        self.flushing = Flushing(self.name, disk, files, contents.end_offset, clock)
        self.truncations = Truncations()
        self._clock = clock
        self._reported_damage = ""
        self.update_config(config)

    def __repr__(self) -> str:
        return f"Log({self.name}, {self.log_start_offset}..{self.log_end_offset})"

    def update_config(self, config: LogConfig) -> None:
        """Apply new topic settings."""
        self.config = config
        self._segment_bytes = config.segment_bytes
        self._roll_ms = config.roll_ms
        self._index_bytes = config.segment_index_bytes
        self._policy = policy_of(config, self.name)
        self._codec = None if config.compression_type == "producer" else NAMES[config.compression_type]
        for segment in self.segments.all:
            segment.index_interval_bytes = config.index_interval_bytes

    @property
    def directory(self) -> str:
        """The path of the partition directory."""
        return self.files.path

    @property
    def segment_count(self) -> int:
        return len(self.segments.all)

    @property
    def size_bytes(self) -> int:
        """Total size of all batches in bytes."""
        return self.segments.size_bytes

    @property
    def first_base_offset(self) -> int:
        """Base offset of the oldest segment."""
        return self.segments.base_offsets[0]

    @property
    def flushed_end_offset(self) -> int:
        """The offset below which all records are durable."""
        return self.flushing.end_offset

    @property
    def truncation_count(self) -> int:
        """The number of truncations. If it changes, an unfinished copy of the log restarts from scratch."""
        return self.flushing.truncation_count

    @property
    def is_settling(self) -> bool:
        """Whether a truncation is not on disk yet. Until then, nothing may be written to the log."""
        return self.truncations.count > 0

    @property
    def is_as_closed(self) -> bool:
        """Whether the files are unchanged since a clean shutdown."""
        return (
            self.log_end_offset == self.opened_end_offset
            and not self.truncation_count
            and not self.files.has_changed
        )

    def now_ms(self) -> int:
        return self._clock.now_ms()

    def segment_starts(self) -> list[tuple[int, int]]:
        """Return the start offset and modification time (ms) of each segment."""
        with self.disk.reading(self.name):
            return [(max(s.base_offset, self.log_start_offset), s.modified_ms) for s in self.segments.all]

    # --- appends

    def must_recompress(self, data: Buffer) -> bool:
        """Whether a batch must be recompressed with the topic's codec."""
        return self._codec is not None and (
            data[MAGIC_POSITION] != 2 or data[ATTRIBUTES_LOW_BYTE] & COMPRESSION_MASK != self._codec
        )

    def validate(
        self, data: Buffer, now_ms: int, produce_version: int | None = None, *, quick: bool = False
    ) -> ValidatedBatches:
        """Validate batches for `append_as_leader`. May run in any thread, because it does not access the log.
        With `quick`, raises TakesLong if the validation would take more than a few milliseconds.
        """
        return validate_batches(data, self._policy, now_ms, produce_version, quick)

    def append_as_leader(
        self,
        data: Buffer,
        leader_epoch: int,
        now_ms: int,
        produce_version: int | None = None,
        internal: bool = False,
        validated: ValidatedBatches | None = None,
    ) -> AppendInfo:
        """Check the batches of one request, assign offsets and the leader epoch to them, and append them.

        `data` is modified in place if it is a writable view. `internal` batches come from this broker's
        coordinators and are not validated. `validated` is the result of `validate` for `data`. Raises a
        StorageError if the batches are rejected or cannot be written.
        """
        if self.disk.failure is not None or self.truncations.count:
            self._check_writable()
        log_append_time = -1
        checked: bytes | None = None
        if internal:
            headers: Sequence[BatchHeader] = read_headers(data)
            if len(data) > self.config.max_message_bytes:
                raise MessageTooLarge(
                    f"a coordinator's {len(data)} bytes exceed "
                    f"max.message.bytes={self.config.max_message_bytes}"
                )
        else:
            if validated is None:
                validated = validate_batches(data, self._policy, now_ms, produce_version)
            data = validated.data
            headers = validated.headers
            checked = validated.checked
            log_append_time = validated.log_append_time
        in_place: memoryview | None = None
        if checked is None:
            is_writable = isinstance(data, memoryview) and not data.readonly
            data = in_place = memoryview(data if is_writable else bytearray(data))
        producers = self.producers
        first_offset = next_offset = self.log_end_offset
        max_timestamp = -1
        position = 0
        for header in headers:
            if header.producer_id >= 0:
                marker = read_marker(data) if header.is_control else None
                try:
                    duplicate = producers.check(header, now_ms, marker, sequenced=not internal)
                except EarlierSequence as earlier:
                    duplicate = self._repeated(header, earlier, leader_epoch)
                if duplicate is not None:
                    return AppendInfo(
                        duplicate.base_offset,
                        duplicate.last_offset,
                        duplicate.timestamp,
                        self.log_start_offset,
                        True,
                    )
            if checked is not None:
                data = stamped(header, checked, next_offset, leader_epoch)
            elif in_place is not None:
                stamp(in_place, position, next_offset, header.batch_length, leader_epoch)
                position += LOG_OVERHEAD + header.batch_length
            next_offset += header.last_offset_delta + 1
            if header.max_timestamp > max_timestamp:
                max_timestamp = header.max_timestamp
        if leader_epoch != self.leader_epochs.latest_epoch:
            self.leader_epochs.assign(leader_epoch, first_offset)
        self._store(data, headers, first_offset, next_offset, max_timestamp, now_ms)
        return AppendInfo(first_offset, next_offset - 1, log_append_time, self.log_start_offset, False)

    def _repeated(self, header: BatchHeader, earlier: EarlierSequence, leader_epoch: int) -> Duplicate:
        """Return the stored batch of an earlier leader epoch that a batch repeats. Raises EarlierSequence."""
        _, epoch_start = self.leader_epochs.end_offset_for(leader_epoch - 1, self.log_end_offset)
        try:
            found = repeated_batch(self.segments.all, header, min(epoch_start, earlier.remembered_offset))
        except (OSError, CorruptRecord) as error:
            raise self.unreadable(error) from error
        if found is None:
            raise earlier
        return found

    def append_as_follower(self, data: memoryview) -> AppendInfo:
        """Append batches from the leader, with the leader's offsets and epochs.

        Raises CorruptRecord if a CRC is wrong or the offsets do not continue the log.
        """
        self._check_writable()
        headers = read_checked_headers(data, self.log_end_offset)
        if not headers:
            return AppendInfo(self.log_end_offset, self.log_end_offset - 1, -1, self.log_start_offset, False)
        for header in headers:
            leader_epoch = header.partition_leader_epoch
            if leader_epoch != self.leader_epochs.latest_epoch and leader_epoch >= 0:
                self.leader_epochs.assign(leader_epoch, header.base_offset)
        next_offset = headers[-1].next_offset
        max_timestamp = max(header.max_timestamp for header in headers)
        self._store(data, headers, None, next_offset, max_timestamp, self.now_ms())
        return AppendInfo(headers[0].base_offset, next_offset - 1, -1, self.log_start_offset, False)

    def _store(
        self,
        data: Buffer,
        headers: Sequence[BatchHeader],
        first_offset: int | None,
        end_offset: int,
        max_timestamp: int,
        now_ms: int,
    ) -> None:
        """Append batches whose offsets in `data` are final. `first_offset` is the first of these offsets if
        `headers` still contains other offsets, and otherwise None.
        """
        size_bytes = len(data)
        active = self.segments.active
        if active.size_bytes > 0 and (
            active.size_bytes + size_bytes > self._segment_bytes
            or active.must_roll(end_offset, max_timestamp, now_ms, self._roll_ms, self._index_bytes)
        ):
            active = self.roll(now_ms)
        try:
            for header in headers:
                if header.is_control:
                    # Read the index before the write: a marker in the log must also be in the index.
                    self.transaction_index(len(self.segments.all) - 1)
                    break
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
        self.truncations.check(self.name)

    def roll(self, now_ms: int) -> Segment:
        """Close the active segment and create a new one. Raises LogDirFailure, or a RefusedForNow error if
        the active segment remains in use.
        """
        try:
            self.segments.active.complete()
            self.files.write_snapshot(self.log_end_offset, self.producers)
            segment = self.files.create_segment(self.log_end_offset, self.config, now_ms)
        except OSError as error:
            raise self.disk.refuse(error, f"new segment of {self.name}") from error
        self.segments.add(segment)
        return segment

    def roll_if_due(self, now_ms: int) -> bool:
        """Roll the active segment if it is older than segment.ms, and return whether it was rolled."""
        if self.is_settling:
            return False
        active = self.segments.active
        age_ms = now_ms - active.created_ms
        if not active.size_bytes or age_ms <= self._roll_ms - active.roll_jitter_ms:
            return False
        self.roll(now_ms)
        return True

    def assign_topic_id(self, topic_id: UUID) -> None:
        """Write the topic ID to partition.metadata. The next flush makes it durable."""
        if topic_id == self.topic_id:
            return
        self.disk.check()
        try:
            self.files.write_topic_id(topic_id)
        except OSError as error:
            raise self.disk.refuse(error, f"partition.metadata of {self.name}") from error
        self.topic_id = topic_id

    def assign_leader_epoch(self, leader_epoch: int) -> None:
        """Start a leader epoch at the log end, because this replica became the leader."""
        if leader_epoch != self.leader_epochs.latest_epoch:
            self.leader_epochs.assign(leader_epoch, self.log_end_offset)

    def adopt_leader_epochs(self, leader_epochs: LeaderEpochs) -> None:
        """Replace the leader epochs with those of the log from which this log was copied."""
        self.leader_epochs = leader_epochs
        leader_epochs.changed = True
        # Mark the log as changed, because its leader-epoch-checkpoint does not contain these epochs.
        self.opened_end_offset = -1

    # --- reads

    def read(
        self, offset: int, max_bytes: int, upper_bound: int | None = None, min_one_batch: bool = True
    ) -> FileSlice | None:
        """Read whole batches below `upper_bound` (default: the log end), starting with the batch that
        contains `offset`.

        Returns at most `max_bytes`, but with `min_one_batch` at least one batch. Returns None if there are no
        batches. Raises OffsetOutOfRange if `offset` is outside [log start, log end].
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
        """Look up the first record at or after the log start whose timestamp (ms) is at least `timestamp`."""
        return self._looked_up(first_at_or_after(self.segments, timestamp, self.log_start_offset))

    def max_timestamp_offset(self) -> Lookup:
        """Look up the first record with the largest timestamp in the log (KIP-734)."""
        return self._looked_up(first_with_max(self.segments, self.log_start_offset))

    def _looked_up(self, lookup: Lookup) -> Lookup:
        """Run a lookup. Raises LogDirFailure if a file cannot be read, or CorruptRecord if it is damaged."""
        try:
            return (yield from lookup)
        except (OSError, CorruptRecord) as error:
            raise self.unreadable(error) from error

    def unreadable(self, error: OSError | StorageError, offset: int = -1) -> StorageError:
        """Return the exception to raise after a failed read. `offset` is the offset to read, or -1 if it is
        unknown. A missing or shortened file does not take the log directory offline.
        """
        if self.closed:
            return LogDirFailure(f"{self.name} is no longer in {self.directory}")
        if isinstance(error, OSError) and not (isinstance(error, FileNotFoundError) and self.files.exists()):
            return self.disk.fail(error, f"read of {self.name}")
        damage = str(error)
        if offset >= 0:
            try:
                self.segments.all[self.segments.number_of(offset)].check_whole()
            except (OSError, CorruptRecord) as found:
                damage = str(found)
        if damage != self._reported_damage:
            self._reported_damage = damage
            logger.error(
                "Could not read %s: %s. Restore the file if you can, then restart the broker to recover the "
                "remaining records",
                self.name,
                damage,
            )
        return CorruptRecord(f"{self.name}: {damage}")

    def end_offset_for_epoch(self, leader_epoch: int) -> tuple[int, int]:
        """Return the largest known epoch up to `leader_epoch` and its end offset (KIP-101), or (-1, -1) if
        `leader_epoch` is above all known epochs.
        """
        return self.leader_epochs.end_offset_for(leader_epoch, self.log_end_offset)

    # --- transactions

    def last_stable_offset(self, high_watermark: int) -> int:
        """Return the last stable offset, which is at most `high_watermark`. It is never below the log start,
        which DeleteRecords may have advanced past the start of an open transaction.
        """
        stable_offset = self.producers.last_stable_offset(high_watermark)
        return stable_offset if stable_offset >= self.log_start_offset else self.log_start_offset

    def aborted_transactions(self, fetch_offset: int, upper_bound: int) -> list[AbortedTransaction]:
        """Return the aborted transactions with records in [fetch_offset, upper_bound)."""
        with self.disk.reading(self.name):
            segments = self.segments
            return aborted_transactions(
                segments.all,
                segments.number_of(fetch_offset),
                fetch_offset,
                upper_bound,
                self._load_producers,
            )

    def transaction_index(self, number: int) -> TransactionIndex:
        """Return the transaction index of a segment, loaded into memory. If its file is damaged, rebuild it.

        Raises OSError, or CorruptRecord if the log is damaged too.
        """
        return intact(self.segments.all, number, self._load_producers)

    def _load_producers(self, segments: Sequence[Segment], end_offset: int) -> ProducerState:
        return self.files.load_producers(segments, end_offset, self.config.producer_id_expiration_ms)

    # --- flushes

    def flush(self) -> None:
        """Make all batches appended so far durable. May run in another thread. Raises LogDirFailure or
        RefusedForNow.

        Nothing is flushed while a truncation is pending, because the files still contain the removed batches.
        """
        self.disk.check()
        flushing = self.flushing
        with flushing.lock:
            if self.closed or self.is_settling:
                return
            end_offset, truncation_count = self.log_end_offset, flushing.truncation_count
            segments = list(self.segments.all)
        flushing.flush(segments, end_offset, truncation_count, self.leader_epochs)

    def flush_due(self) -> bool:
        """Whether the log has unflushed records, and its last flush ended at least flush.ms ago."""
        return self.flushing.is_due(self.log_end_offset, self.config.flush_ms)

    # --- deletion: segments are removed from the log, oldest first, before their files change

    def advance_log_start_offset(self, offset: int) -> None:
        """Raise the log start to `offset` (DeleteRecords). Retention removes the segments wholly below it."""
        if offset > self.log_end_offset:
            raise OffsetOutOfRange(f"offset {offset} is after the end {self.log_end_offset}")
        if offset > self.log_start_offset:
            self.log_start_offset = offset
            self.disk.log_starts_moved = True
            self.leader_epochs.truncate_from_start(offset)

    def apply_retention(self, now_ms: int, high_watermark: int, at_most: int = sys.maxsize) -> list[int]:
        """Delete the oldest of the segments that retention selects, `at_most` in one call, and return their
        base offsets.
        """
        if self.is_settling:
            return []
        with self.disk.reading(self.name):
            going = deletable(
                self.segments.all,
                self.config,
                now_ms=now_ms,
                size_bytes=self.size_bytes,
                log_start_offset=self.log_start_offset,
                high_watermark=high_watermark,
                log_end_offset=self.log_end_offset,
                at_most=at_most,
            )
        if not going:
            return []
        for segment, reason in going:
            logger.info("Deleted segment %d of %s: %s", segment.base_offset, self.name, reason.value)
        if len(going) == len(self.segments.all):
            try:
                self.roll(now_ms)
            except DiskFull:
                # Keep the active segment, and delete all others to free space for the next attempt to roll.
                going = going[:-1]
                if not going:
                    raise
        try:
            self.files.retire(self.segments.remove(0, len(going)), self.file_deletion_ms())
        except OSError as error:
            raise self.disk.fail(error, f"deletion in {self.name}") from error
        self.advance_log_start_offset(self.first_base_offset)
        return [segment.base_offset for segment, _ in going]

    def file_deletion_ms(self) -> int:
        """Return the time, on the monotonic clock, at which to delete files that have just become unused."""
        return self._clock.monotonic_ms() + self.config.file_delete_delay_ms

    # --- truncation of whole batches: at once in memory, and later in the files (see `truncations`)

    def truncate_to(self, offset: int) -> None:
        """Remove every batch with offsets at or after `offset`, where the log diverges from the leader's."""
        if offset >= self.log_end_offset:
            # Remove an epoch in which this replica was leader but appended nothing, because the next leader
            # has no such epoch.
            self.leader_epochs.truncate_from_end(self.log_end_offset)
            return
        segments = self.segments
        offset = segments.batch_start(offset)
        if offset <= self.first_base_offset:
            self.truncate_fully_and_start_at(offset)
            return
        self.disk.check()
        number = segments.number_of(offset - 1)
        segment = segments.all[number]
        # Complete all reads before the first change, because a read may fail.
        with self.disk.reading(self.name):
            producers = self._load_producers(segments.all[: number + 1], offset)
            # Open the segment's file and load its indexes here, so that later steps need no descriptor.
            segment.file.size()
            position = segment.position_of(offset)
            self.transaction_index(number)
        with self.disk.reading(self.name), self.flushing.lock:
            self._go_back(offset)
            removed = segments.remove(number + 1, len(segments.all))
            for later in removed:
                later.abandon()
            segment.truncate_to_position(position, offset)
            self.log_end_offset = end_offset = segment.last_batch_end()[0]
        self.leader_epochs.truncate_from_end(end_offset)
        self.producers = producers
        self.truncations.add(
            self,
            Truncation(
                self.files, self.disk, removed, self.file_deletion_ms(), kept=segment, end_offset=end_offset
            ),
        )

    def truncate_fully_and_start_at(self, offset: int) -> None:
        """Remove all records, and assign `offset` to the next record."""
        self.disk.check()
        segment = self.files.new_segment(offset, self.config, self.now_ms())
        with self.flushing.lock:
            self._go_back(offset)
            removed = self.segments.remove(0, len(self.segments.all))
            for earlier in removed:
                earlier.abandon()
            self.segments.add(segment)
            self.log_start_offset = self.log_end_offset = offset
        self.producers = ProducerState(expiration_ms=self.config.producer_id_expiration_ms)
        self.leader_epochs.clear()
        self.truncations.add(
            self, Truncation(self.files, self.disk, removed, self.file_deletion_ms(), created=segment)
        )

    def _go_back(self, offset: int) -> None:
        self.flushing.go_back(offset)
        self.log_start_offset = min(self.log_start_offset, offset)
        self.disk.log_starts_moved = True

    # --- shutdown

    def abandon(self) -> None:
        """Stop all reads and writes. File descriptors are closed once no slice uses them."""
        self.closed = True
        for segment in self.segments.all:
            segment.abandon()

    def close(self) -> None:
        """Flush the log, and write its indexes, producer snapshot and leader epochs for startup."""
        if self.closed:
            return
        self.disk.check()
        if not self.is_as_closed:
            try:
                self._complete()
            except OSError as error:
                # If the log has been abandoned, it was the copy of a canceled move: ignore the error.
                if not self.closed:
                    raise self.disk.fail(error, f"close of {self.name}") from error
        self.abandon()

    def _complete(self) -> None:
        active, epochs = self.segments.active, self.leader_epochs
        active.complete()
        if active.size_bytes:
            active.sync(sealed=True)
        # As in Kafka, a log that never had a record, like most logs of a large broker, needs no producer
        # snapshot. Epochs without records are not stored, because the next startup would drop them.
        if self.log_end_offset or self.producers.entries:
            self.files.store_snapshot(self.log_end_offset, self.producers)
        changed = epochs.changed
        epochs.truncate_from_end(self.log_end_offset)
        epochs.changed = changed and bool(epochs.entries)
        self.flush()
        if epochs.changed:
            self.flushing.store_epochs(epochs)
