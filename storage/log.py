"""One partition's log: segments end to end, appended at one end and deleted at the other.

Everything but `flush` runs on one thread. `flush` may run beside it in another: it takes the end offset,
syncs what lies before it, and only then moves `flushed_end_offset`; truncation waits for it.
"""

from __future__ import annotations

import logging
import random
import threading
from bisect import bisect_right
from collections.abc import Callable, Sequence
from typing import NamedTuple
from uuid import UUID

from storage.batch import LOG_OVERHEAD, BatchHeader, TimestampType, crc_ok, read_header, stamp
from storage.checkpoints import PARTITION_METADATA, encode_partition_metadata
from storage.config import LogConfig
from storage.deletions import Deletions
from storage.disk import Disk
from storage.errors import CorruptRecord, OffsetOutOfRange
from storage.filesystem import Filesystem
from storage.leader_epochs import LeaderEpochs
from storage.producers import ProducerState
from storage.records import read_marker
from storage.retention import SegmentFacts, deletable
from storage.scan import scan_headers
from storage.segment import (
    DELETED_SUFFIX,
    SEGMENT_SUFFIXES,
    SNAPSHOT_SUFFIX,
    FileSlice,
    Segment,
    file_name,
)
from storage.snapshots import load_producers, snapshot_offsets
from storage.timestamp_lookup import TimestampOffset, first_at_or_after, first_with_max
from storage.txn_index import AbortedTransaction
from storage.validation import AppendPolicy, validate_batches

logger = logging.getLogger(__name__)

LEADER_EPOCH_CHECKPOINT = "leader-epoch-checkpoint"
_TIMESTAMP_TYPES = {"CreateTime": TimestampType.CREATE_TIME, "LogAppendTime": TimestampType.LOG_APPEND_TIME}


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
        self.directory = directory
        self.disk = disk
        self.producers = producers
        self.leader_epochs = leader_epochs
        self.log_start_offset = log_start_offset
        self.log_end_offset = log_end_offset
        self.flushed_end_offset = log_end_offset
        self.last_flush_ms = now_ms()
        self.before_truncation: Callable[[], None] | None = None
        """Called after `flushed_end_offset` went back and before files change, so that a checkpoint can
        follow it.
        """
        self._filesystem = filesystem
        self._deletions = deletions
        self._now_ms = now_ms
        self._segments = segments
        self._base_offsets = [segment.base_offset for segment in segments]
        self._active = segments[-1]
        self._latest_epoch = leader_epochs.latest_epoch
        self._epochs_changed = False
        self._names_changed = False
        self._metadata_changed = False
        self._flush_lock = threading.Lock()
        self._closed = False
        self.config = config
        self.update_config(config)

    def __repr__(self) -> str:
        return f"Log({self.topic}-{self.partition}, {self.log_start_offset}..{self.log_end_offset})"

    def update_config(self, config: LogConfig) -> None:
        """Obey `config` from now on."""
        self.config = config
        self._segment_bytes = config.segment_bytes
        self._policy = AppendPolicy(
            max_message_bytes=config.max_message_bytes,
            segment_bytes=config.segment_bytes,
            timestamp_type=_TIMESTAMP_TYPES[config.message_timestamp_type],
            before_max_ms=config.message_timestamp_before_max_ms,
            after_max_ms=config.message_timestamp_after_max_ms,
            compact=config.compact,
            compression_type=config.compression_type,
            validate_records=config.validate_records,
        )
        for segment in self._segments:
            segment.index_interval_bytes = config.index_interval_bytes

    @property
    def size_bytes(self) -> int:
        """Bytes of all batches."""
        return sum(segment.size_bytes for segment in self._segments)

    @property
    def first_base_offset(self) -> int:
        """Base offset of the oldest segment."""
        return self._base_offsets[0]

    @property
    def latest_leader_epoch(self) -> int:
        """The newest leader epoch that this log knows; -1 when none."""
        return self._latest_epoch

    @property
    def segment_count(self) -> int:
        return len(self._segments)

    def segment_starts(self) -> list[tuple[int, int]]:
        """Base offset and time of the last change (ms) of each segment, as ListOffsets v0 asks."""
        return [(max(s.base_offset, self.log_start_offset), s.modified_ms) for s in self._segments]

    # --- append

    def append_as_leader(
        self,
        data: memoryview,
        *,
        leader_epoch: int,
        now_ms: int,
        produce_version: int | None = None,
        internal: bool = False,
    ) -> AppendInfo:
        """Check, stamp and store the batches of one request.

        `data` is stamped in place when it is writable. `internal` batches come from this broker's own
        coordinators and skip what only clients can get wrong. Raises a StorageError by cause; then nothing
        was stored.
        """
        if self.disk.failure is not None:
            self.disk.check()
        log_append_time = -1
        if internal:
            headers: Sequence[BatchHeader] = _headers_of(data)
        else:
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
                duplicate = producers.check(header, now_ms, marker)
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
        if leader_epoch != self._latest_epoch:
            self._assign_epoch(leader_epoch, first_offset)
        self._store(data, headers, first_offset, next_offset, max_timestamp, now_ms)
        return AppendInfo(first_offset, next_offset - 1, log_append_time, self.log_start_offset, False)

    def append_as_follower(self, data: memoryview) -> AppendInfo:
        """Store batches as the leader has them, offsets and epochs included.

        Raises CorruptRecord for a bad CRC, or for offsets that do not continue the log.
        """
        self.disk.check()
        headers = _headers_of(data)
        next_offset = self.log_end_offset
        max_timestamp = -1
        position = 0
        for header in headers:
            _check_follower_batch(data, position, header, next_offset)
            position += header.size_bytes
            next_offset = header.next_offset
            max_timestamp = max(max_timestamp, header.max_timestamp)
        if not headers:
            return AppendInfo(next_offset, next_offset - 1, -1, self.log_start_offset, False)
        first_offset = headers[0].base_offset
        for header in headers:
            if header.partition_leader_epoch != self._latest_epoch and header.partition_leader_epoch >= 0:
                self._assign_epoch(header.partition_leader_epoch, header.base_offset)
        self._store(data, headers, None, next_offset, max_timestamp, self._now_ms())
        return AppendInfo(first_offset, next_offset - 1, -1, self.log_start_offset, False)

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
        active = self._active
        if self._must_roll(active, size_bytes, max_timestamp, end_offset, now_ms):
            active = self._roll(now_ms)
        try:
            active.write(data)
        except OSError as error:
            raise self.disk.fail(error, f"append to {self.topic}-{self.partition}") from error
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
                self._apply_to_producers(header, base_offset, data[position : position + size])
            position += size
        self.log_end_offset = end_offset

    def _must_roll(
        self, active: Segment, size_bytes: int, max_timestamp: int, end_offset: int, now_ms: int
    ) -> bool:
        if active.size_bytes == 0:
            return False
        return (
            active.size_bytes + size_bytes > self._segment_bytes
            or active.waited_ms(now_ms, max_timestamp) > self.config.segment_ms - active.roll_jitter_ms
            or active.indexes_full(self.config.segment_index_bytes)
            or not active.can_hold(end_offset)
        )

    def _roll(self, now_ms: int) -> Segment:
        try:
            self._active.seal()
            self._write_snapshot()
            segment = self._new_segment(self.log_end_offset, now_ms)
        except OSError as error:
            raise self.disk.fail(error, f"new segment of {self.topic}-{self.partition}") from error
        self._segments.append(segment)
        self._base_offsets.append(segment.base_offset)
        self._active = segment
        return segment

    def _new_segment(self, base_offset: int, now_ms: int) -> Segment:
        jitter_ms = min(self.config.segment_jitter_ms, self.config.segment_ms)
        segment = Segment(
            self._filesystem,
            self.directory,
            base_offset,
            size_bytes=0,
            index_interval_bytes=self.config.index_interval_bytes,
            created_ms=now_ms,
            roll_jitter_ms=random.randint(0, jitter_ms) if jitter_ms > 0 else 0,
        )
        segment.create()
        self._names_changed = True
        return segment

    def expire_producers(self, now_ms: int) -> None:
        """Forget producers that were silent for producer.id.expiration.ms."""
        self.producers.remove_expired(now_ms)

    def roll_if_due(self, now_ms: int) -> bool:
        """Start a new segment when segment.ms has passed over the active one; whether that was so."""
        active = self._active
        if (
            not active.size_bytes
            or now_ms - active.created_ms <= self.config.segment_ms - active.roll_jitter_ms
        ):
            return False
        self._roll(now_ms)
        return True

    def _apply_to_producers(self, header: BatchHeader, base_offset: int, batch: memoryview) -> None:
        aborted = self.producers.apply(header, batch, base_offset=base_offset)
        if aborted is not None:
            self._active.txn_index.append(aborted)

    def assign_topic_id(self, topic_id: UUID) -> None:
        """Note the id of the topic in partition.metadata; durable with the next flush. Raises
        LogDirFailure.
        """
        if topic_id == self.topic_id:
            return
        self.disk.check()
        try:
            self._filesystem.write_file(
                f"{self.directory}/{PARTITION_METADATA}", encode_partition_metadata(topic_id)
            )
        except OSError as error:
            raise self.disk.fail(error, f"partition.metadata of {self.topic}-{self.partition}") from error
        self.topic_id = topic_id
        self._metadata_changed = self._names_changed = True

    def assign_leader_epoch(self, leader_epoch: int) -> None:
        """This replica leads from `leader_epoch` on: the epoch starts at the log end."""
        if leader_epoch != self._latest_epoch:
            self._assign_epoch(leader_epoch, self.log_end_offset)

    def _assign_epoch(self, leader_epoch: int, start_offset: int) -> None:
        self.leader_epochs.assign(leader_epoch, start_offset)
        self._latest_epoch = leader_epoch
        self._epochs_changed = True

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
            return self._read(offset, max_bytes, upper_bound, min_one_batch)
        except OSError as error:
            raise self.disk.fail(error, f"read of {self.topic}-{self.partition}") from error

    def _read(self, offset: int, max_bytes: int, upper_bound: int, min_one_batch: bool) -> FileSlice | None:
        segment = self._active
        after = len(self._segments)
        if offset < segment.base_offset:
            after = bisect_right(self._base_offsets, offset)
            segment = self._segments[after - 1]
        while True:
            start = segment.position_of(offset)
            end = segment.size_bytes
            is_last = after == len(self._segments)
            if upper_bound < (self.log_end_offset if is_last else self._base_offsets[after]):
                end = segment.position_of(upper_bound)
            if start < end:
                break
            # Compaction can leave nothing behind `offset` in its segment.
            if is_last or upper_bound <= self._base_offsets[after]:
                return None
            segment = self._segments[after]
            after += 1
        stop = segment.cut(start, end, max_bytes, min_one_batch)
        if stop == start:
            return None
        return FileSlice(segment.file, start, stop - start)

    def offset_for_timestamp(self, timestamp: int) -> TimestampOffset | None:
        """The first record at or behind the log start whose timestamp (ms) is at least `timestamp`."""
        return first_at_or_after(self._segments, timestamp, self.log_start_offset)

    def max_timestamp_offset(self) -> TimestampOffset | None:
        """The first record with the largest timestamp of the log (KIP-734)."""
        return first_with_max(self._segments, self.log_start_offset)

    def end_offset_for_epoch(self, leader_epoch: int) -> tuple[int, int]:
        """The largest known epoch up to `leader_epoch` and where it ended (KIP-101); (-1, -1) when
        unknown.
        """
        return self.leader_epochs.end_offset_for(leader_epoch, self.log_end_offset)

    # --- transactions

    def last_stable_offset(self, high_watermark: int) -> int:
        """The offset up to which no transaction is open, at most `high_watermark`, and not below the log start
        (DeleteRecords may have passed the start of an open transaction).
        """
        stable_offset = self.producers.last_stable_offset(high_watermark)
        return stable_offset if stable_offset >= self.log_start_offset else self.log_start_offset

    def aborted_transactions(self, fetch_offset: int, upper_bound: int) -> list[AbortedTransaction]:
        """Aborted transactions with records in [fetch_offset, upper_bound), for a read_committed fetch."""
        found: list[AbortedTransaction] = []
        for segment in self._segments[max(bisect_right(self._base_offsets, fetch_offset) - 1, 0) :]:
            aborted, complete = segment.txn_index.collect(fetch_offset, upper_bound)
            found += aborted
            if complete:
                break
        return found

    # --- flush

    def flush(self) -> None:
        """Make everything appended so far durable; may run in a thread of its own. Raises LogDirFailure."""
        with self._flush_lock:
            self.disk.check()
            end_offset = self.log_end_offset
            if self._closed or (end_offset <= self.flushed_end_offset and not self._names_changed):
                return
            segments = list(self._segments)
            names_changed, self._names_changed = self._names_changed, False
            try:
                self._sync_segments(segments)
                if names_changed:
                    self._sync_names()
                if self._epochs_changed:
                    self.store_leader_epochs()
            except OSError as error:
                raise self.disk.fail(error, f"flush of {self.topic}-{self.partition}") from error
            self.flushed_end_offset = max(self.flushed_end_offset, end_offset)
            self.last_flush_ms = self._now_ms()

    def _sync_segments(self, segments: list[Segment]) -> None:
        for number, segment in enumerate(segments):
            following = segments[number + 1].base_offset if number + 1 < len(segments) else None
            if following is not None and following < self.flushed_end_offset:
                continue
            try:
                segment.sync(sealed=following is not None)
                if following is not None:
                    snapshot = self._snapshot_path(following)
                    # A log from elsewhere may lack it; then the state before it is replayed.
                    if self._filesystem.exists(snapshot):
                        self._filesystem.sync_file(snapshot)
            except FileNotFoundError:
                # Retention may take a segment while we are at it, but nothing else may.
                if not segment.deleted:
                    raise

    def _sync_names(self) -> None:
        if self._metadata_changed:
            self._metadata_changed = False
            self._filesystem.sync_file(f"{self.directory}/{PARTITION_METADATA}")
            self._filesystem.sync_directory(self.disk.path)
        self._filesystem.sync_directory(self.directory)

    def flush_due(self, now_ms: int) -> bool:
        """Whether flush.ms has passed over records that are not durable yet."""
        return (
            self.flushed_end_offset < self.log_end_offset
            and now_ms - self.last_flush_ms >= self.config.flush_ms
        )

    def store_leader_epochs(self) -> None:
        """Write the leader-epoch-checkpoint, durable on return."""
        self._epochs_changed = False
        self._filesystem.write_file_atomically(
            f"{self.directory}/{LEADER_EPOCH_CHECKPOINT}", self.leader_epochs.encode()
        )

    def _write_snapshot(self) -> None:
        # Not synced here, on the append path: a flush syncs it before it passes the segment that the
        # snapshot precedes.
        self._filesystem.write_file(
            self._snapshot_path(self.log_end_offset), self.producers.encode_snapshot()
        )

    def _snapshot_path(self, offset: int) -> str:
        return f"{self.directory}/{file_name(offset, SNAPSHOT_SUFFIX)}"

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
            self._epochs_changed = True

    def apply_retention(self, now_ms: int, high_watermark: int) -> list[int]:
        """Delete the segments that may go; their base offsets."""
        facts = [
            SegmentFacts(segment.base_offset, end_offset, segment.size_bytes, segment.largest_timestamp)
            for segment, end_offset in zip(
                self._segments, [*self._base_offsets[1:], self.log_end_offset], strict=True
            )
        ]
        found = deletable(
            facts,
            self.config,
            now_ms=now_ms,
            high_watermark=high_watermark,
            log_start_offset=self.log_start_offset,
        )
        if not found:
            return []
        for segment_facts, reason in found:
            logger.info(
                "%s-%d: delete the segment at %d, %s",
                self.topic,
                self.partition,
                segment_facts.base_offset,
                reason.value,
            )
        if len(found) == len(self._segments):
            self._roll(now_ms)
        self._remove_segments(0, len(found))
        self.advance_log_start_offset(self._base_offsets[0])
        return [segment_facts.base_offset for segment_facts, _ in found]

    def _remove_segments(self, first: int, end: int, *, newest_first: bool = False) -> None:
        """Take the segments [first, end) out of the log and their files out of use.

        In the order that leaves no hole when a crash comes between: retention takes the oldest first,
        truncation the newest.
        """
        removed = self._segments[first:end]
        if newest_first:
            removed.reverse()
        del self._segments[first:end]
        del self._base_offsets[first:end]
        due_ms = self._now_ms() + self.config.file_delete_delay_ms
        try:
            for segment in removed:
                segment.let_go()
                for suffix in (*SEGMENT_SUFFIXES, SNAPSHOT_SUFFIX):
                    path = segment.path(suffix)
                    if self._filesystem.exists(path):
                        self._filesystem.rename(path, path + DELETED_SUFFIX)
                        self._deletions.schedule(path + DELETED_SUFFIX, due_ms)
        except OSError as error:
            raise self.disk.fail(error, f"deletion in {self.topic}-{self.partition}") from error

    def truncate_to(self, offset: int) -> None:
        """Drop every record at or above `offset`, which a follower does when its leader has other ones."""
        if offset >= self.log_end_offset:
            return
        offset = self._batch_start(offset)
        if offset <= self._base_offsets[0]:
            self.truncate_fully_and_start_at(offset)
            return
        with self._flush_lock:
            self._go_back(offset)
            try:
                keep = bisect_right(self._base_offsets, offset - 1)
                self._remove_segments(keep, len(self._segments), newest_first=True)
                self._filesystem.sync_directory(self.directory)
                self._active = segment = self._segments[-1]
                position = segment.position_of(offset)
                segment.truncate_to_position(position, offset)
                # Synced at once: else a crash could bring back old batches behind new ones written in their
                # place.
                segment.file.sync()
                self.log_end_offset, _ = segment.last_batch_end()
                self._rebuild_producers()
            except OSError as error:
                raise self.disk.fail(error, f"truncation of {self.topic}-{self.partition}") from error

    def _batch_start(self, offset: int) -> int:
        """First offset of the batch that holds `offset`; batches are cut off whole."""
        segment = self._segments[max(bisect_right(self._base_offsets, offset) - 1, 0)]
        position = segment.position_of(offset)
        if position == segment.size_bytes:
            return offset
        return min(offset, next(scan_headers(segment.file, position, segment.size_bytes)).header.base_offset)

    def truncate_fully_and_start_at(self, offset: int) -> None:
        """Drop everything; the next record gets `offset`."""
        with self._flush_lock:
            self._go_back(offset)
            try:
                self._remove_segments(0, len(self._segments), newest_first=True)
                self._remove_snapshots_behind(-1)
                self._active = self._new_segment(offset, self._now_ms())
                self._filesystem.sync_directory(self.directory)
            except OSError as error:
                raise self.disk.fail(error, f"truncation of {self.topic}-{self.partition}") from error
            self._segments.append(self._active)
            self._base_offsets.append(offset)
            self.log_start_offset = self.log_end_offset = offset
            self.producers = ProducerState(expiration_ms=self.config.producer_id_expiration_ms)
            self.leader_epochs.clear()
            self._latest_epoch = self.leader_epochs.latest_epoch
            self._epochs_changed = True

    def _go_back(self, offset: int) -> None:
        """The first step of a truncation: from here on, a recovery starts no later than `offset`."""
        self.disk.check()
        self.flushed_end_offset = min(self.flushed_end_offset, offset)
        self.log_start_offset = min(self.log_start_offset, offset)
        if self.before_truncation is not None:
            self.before_truncation()

    def _rebuild_producers(self) -> None:
        end = self.log_end_offset
        self.leader_epochs.truncate_from_end(end)
        self._latest_epoch = self.leader_epochs.latest_epoch
        self._epochs_changed = True
        self._remove_snapshots_behind(end)
        names = self._filesystem.listdir(self.directory)
        self.producers = load_producers(
            self._filesystem,
            self.directory,
            names,
            self._segments,
            end,
            self.config.producer_id_expiration_ms,
        )

    def _remove_snapshots_behind(self, offset: int) -> None:
        for found in snapshot_offsets(self._filesystem.listdir(self.directory)):
            if found > offset:
                self._filesystem.unlink(self._snapshot_path(found))

    # --- the end

    def close(self) -> None:
        """Flush, and write all that a clean start trusts: indexes, producer snapshot, leader epochs."""
        if self._closed:
            return
        self.disk.check()
        try:
            self._active.seal()
            if self._active.size_bytes:
                self._active.sync(sealed=True)
            snapshot = self._snapshot_path(self.log_end_offset)
            if not self._filesystem.exists(snapshot):
                self._write_snapshot()
                self._filesystem.sync_file(snapshot)
                self._names_changed = True
            self.flush()
            if self._epochs_changed:
                self.store_leader_epochs()
        except OSError as error:
            raise self.disk.fail(error, f"close of {self.topic}-{self.partition}") from error
        self._closed = True
        for segment in self._segments:
            segment.let_go()

    def moved(self, directory: str) -> None:
        """The folder of this log has been renamed for deletion: nothing is written to it any more."""
        with self._flush_lock:
            self._closed = True
            self.directory = directory
            for segment in self._segments:
                segment.let_go()


def _headers_of(data: memoryview) -> list[BatchHeader]:
    """The headers of batches that lie end to end."""
    headers = []
    position = 0
    while position < len(data):
        header = read_header(data, position)
        headers.append(header)
        position += header.size_bytes
    if position != len(data):
        raise CorruptRecord(f"the last batch ends at {position} of {len(data)} bytes")
    return headers


def _check_follower_batch(data: memoryview, position: int, header: BatchHeader, next_offset: int) -> None:
    if not crc_ok(data, position, header):
        raise CorruptRecord(f"CRC mismatch in the batch of offset {header.base_offset} from the leader")
    if header.base_offset < next_offset:
        raise CorruptRecord(
            f"offset {header.base_offset} from the leader where {next_offset} or more must come"
        )
