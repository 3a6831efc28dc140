"""One partition's log: segments end to end, appended at one end and deleted at the other.

Appends are here; reads across the segments in `log_segments`, files in `log_folder`, flushes in `log_flush`,
retention and truncation in `log_deletion`.

Everything but `flush` runs on one thread. `flush` may run beside it in another: it takes the end offset,
syncs what lies before it, and only then moves `flushed_end_offset`; truncation waits for it.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import NamedTuple
from uuid import UUID

from storage import log_deletion, log_flush
from storage.batch import (
    COMPRESSION_MASK,
    LOG_OVERHEAD,
    MAGIC_POSITION,
    BatchHeader,
    read_checked_headers,
    read_headers,
    stamp,
)
from storage.compression import NAMES
from storage.config import LogConfig
from storage.deletions import Deletions
from storage.disk import Disk
from storage.errors import LogDirFailure, OffsetOutOfRange
from storage.filesystem import Filesystem
from storage.leader_epochs import LeaderEpochs
from storage.log_folder import LogFolder
from storage.log_segments import LogSegments
from storage.producers import ProducerState
from storage.records import read_marker
from storage.segment import FileSlice, Segment
from storage.timestamp_lookup import TimestampOffset, first_at_or_after, first_with_max
from storage.txn_index import AbortedTransaction, AbortedTxn
from storage.validation import AppendPolicy, ValidatedBatches, validate_batches

ATTRIBUTES_LOW_BYTE = 22


class AppendInfo(NamedTuple):
    """Where a request's batches went. `log_append_time` is -1 for CreateTime; `duplicate`: they were here
    already.
    """

    first_offset: int
    last_offset: int
    log_append_time: int
    log_start_offset: int
    duplicate: bool


class Log:
    """See the module. Built by `storage.loader`, owned by `storage.log_dirs`."""

    def __init__(
        self,
        *,
        filesystem: Filesystem,
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
        now_ms: Callable[[], int],
    ) -> None:
        self.topic = topic
        self.partition = partition
        self.topic_id = topic_id
        self.disk = disk
        self.producers = producers
        self.leader_epochs = leader_epochs
        self.log_start_offset = log_start_offset
        self.log_end_offset = log_end_offset
        self.flushed_end_offset = log_end_offset
        self.last_flush_ms = now_ms()
        self.before_truncation: Callable[[int], None] | None = None
        """Called after `flushed_end_offset` went back and before files change, so that a checkpoint can
        follow it.
        """
        self.segments = LogSegments(segments)
        self.folder = LogFolder(filesystem, deletions, disk.path, directory)
        self.flush_lock = threading.Lock()
        self.now_ms = now_ms
        self.latest_leader_epoch = leader_epochs.latest_epoch
        """The newest leader epoch that this log knows; -1 when none."""
        self.leader_epochs_changed = False
        """Whether they differ from the leader-epoch-checkpoint; the next flush stores them."""
        self.closed = False
        self.truncations = 0
        """How often records were taken from the end; who copies the log begins again then."""
        self.config = config
        self.update_config(config)

    def __repr__(self) -> str:
        return f"Log({self.topic}-{self.partition}, {self.log_start_offset}..{self.log_end_offset})"

    def update_config(self, config: LogConfig) -> None:
        """Obey `config` from now on."""
        self.config = config
        self._segment_bytes = config.segment_bytes
        self._roll_ms = config.roll_ms
        self._policy = AppendPolicy.of(config, f"{self.topic}-{self.partition}")
        self._codec = None if config.compression_type == "producer" else NAMES[config.compression_type]
        for segment in self.segments.all:
            segment.index_interval_bytes = config.index_interval_bytes

    @property
    def directory(self) -> str:
        """Path of the folder."""
        return self.folder.path

    @property
    def size_bytes(self) -> int:
        """Bytes of all batches."""
        return self.segments.size_bytes

    @property
    def first_base_offset(self) -> int:
        """Base offset of the oldest segment."""
        return self.segments.base_offsets[0]

    @property
    def segment_count(self) -> int:
        return len(self.segments.all)

    def segment_starts(self) -> list[tuple[int, int]]:
        """Base offset and time of the last change (ms) of each segment, as ListOffsets v0 asks."""
        return [(max(s.base_offset, self.log_start_offset), s.modified_ms) for s in self.segments.all]

    # --- append

    def compresses_anew(self, data: memoryview) -> bool:
        """Whether a batch comes in another codec than the topic's; another thread may `validate` it then."""
        return self._codec is not None and (
            data[MAGIC_POSITION] != 2 or data[ATTRIBUTES_LOW_BYTE] & COMPRESSION_MASK != self._codec
        )

    def validate(self, data: memoryview, now_ms: int, produce_version: int | None = None) -> ValidatedBatches:
        """The part of `append_as_leader` that does not touch the log."""
        return validate_batches(data, self._policy, now_ms, produce_version=produce_version)

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
        if self.disk.failure is not None:
            self.disk.check()
        log_append_time = -1
        if internal:
            headers: Sequence[BatchHeader] = read_headers(data)
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
        self.disk.check()
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
            raise self.disk.refuse(error, f"append to {self.topic}-{self.partition}") from error
        if self.disk.full:
            self.disk.has_space()
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
            raise self.disk.fail(error, f"transaction index of {self.topic}-{self.partition}") from error

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
            self.segments.active.seal()
            self.folder.write_snapshot(self.log_end_offset, self.producers)
            segment = self.folder.create_segment(self.log_end_offset, self.config, now_ms)
        except OSError as error:
            raise self.disk.refuse(error, f"new segment of {self.topic}-{self.partition}") from error
        self.segments.add(segment)
        return segment

    def expire_producers(self, now_ms: int) -> None:
        """Forget producers that were silent for producer.id.expiration.ms."""
        self.producers.remove_expired(now_ms)

    def roll_if_due(self, now_ms: int) -> bool:
        """Start a new segment when segment.ms has passed over the active one; whether that was so."""
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
            raise self.disk.refuse(error, f"partition.metadata of {self.topic}-{self.partition}") from error
        self.topic_id = topic_id

    def assign_leader_epoch(self, leader_epoch: int) -> None:
        """This replica leads from `leader_epoch` on: the epoch starts at the log end."""
        if leader_epoch != self.latest_leader_epoch:
            self._assign_epoch(leader_epoch, self.log_end_offset)

    def take_leader_epochs(self, leader_epochs: LeaderEpochs) -> None:
        """Know the epochs of the log that this one is a copy of, those without a record included."""
        self.leader_epochs = leader_epochs
        self.latest_leader_epoch = leader_epochs.latest_epoch
        self.leader_epochs_changed = True

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
                f"offset {offset} is outside {self.log_start_offset}..{self.log_end_offset} "
                f"of {self.topic}-{self.partition}"
            )
        if upper_bound is None or upper_bound > self.log_end_offset:
            upper_bound = self.log_end_offset
        if offset >= upper_bound:
            return None
        try:
            return self.segments.read(offset, max_bytes, upper_bound, self.log_end_offset, min_one_batch)
        except OSError as error:
            if self.closed:
                raise LogDirFailure(
                    f"{self.topic}-{self.partition} is not in {self.directory} any more"
                ) from error
            raise self.disk.fail(error, f"read of {self.topic}-{self.partition}") from error

    def offset_for_timestamp(self, timestamp: int) -> TimestampOffset | None:
        """The first record at or behind the log start whose timestamp (ms) is at least `timestamp`."""
        with self.disk.reading(f"{self.topic}-{self.partition}"):
            return first_at_or_after(self.segments.all, timestamp, self.log_start_offset)

    def max_timestamp_offset(self) -> TimestampOffset | None:
        """The first record with the largest timestamp of the log (KIP-734)."""
        with self.disk.reading(f"{self.topic}-{self.partition}"):
            return first_with_max(self.segments.all, self.log_start_offset)

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
        with self.disk.reading(f"{self.topic}-{self.partition}"):
            return self.segments.aborted_transactions(fetch_offset, upper_bound)

    # --- flush

    def flush(self) -> None:
        """Make everything appended so far durable; may run in a thread of its own. Raises LogDirFailure."""
        log_flush.flush(self)

    def flush_due(self, now_ms: int) -> bool:
        """Whether flush.ms has passed over records that are not durable yet."""
        return (
            self.flushed_end_offset < self.log_end_offset
            and now_ms - self.last_flush_ms >= self.config.flush_ms
        )

    # --- deletion and truncation

    def advance_log_start_offset(self, offset: int) -> None:
        """Hide the records below `offset` (DeleteRecords); retention removes segments that are wholly below
        it.
        """
        if offset > self.log_end_offset:
            raise OffsetOutOfRange(f"offset {offset} is behind the end {self.log_end_offset}")
        if offset > self.log_start_offset:
            self.log_start_offset = offset
            self.leader_epochs.truncate_from_start(offset)
            self.leader_epochs_changed = True

    def apply_retention(self, now_ms: int, high_watermark: int) -> list[int]:
        """Delete the segments that may go; their base offsets."""
        return log_deletion.apply_retention(self, now_ms, high_watermark)

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

    def moved(self, directory: str) -> None:
        """The folder of this log has been renamed for deletion: nothing is written to it any more."""
        with self.flush_lock:
            self.folder.path = directory
            self.let_go()

    def let_go(self) -> None:
        """Nothing is read or written here any more; descriptors close once no slice uses them."""
        self.closed = True
        for segment in self.segments.all:
            segment.let_go()
