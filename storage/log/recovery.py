"""Recovery of a log that is being opened: scan and repair of its files, by the rules of `loader`."""

from __future__ import annotations

import logging
from bisect import bisect_left
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from kafka_compat.storage.config import INT_MAX
from kafka_compat.storage.directories import checkpoints
from kafka_compat.storage.directories.checkpoints import TopicPartition
from kafka_compat.storage.errors import CorruptFile, CorruptRecord
from kafka_compat.storage.log.leader_epochs import LeaderEpochs
from kafka_compat.storage.log.log_files import FORKED_AT, LEADER_EPOCH_CHECKPOINT
from kafka_compat.storage.log.producer_snapshots import load_producers, snapshot_offsets
from kafka_compat.storage.log.producer_state import ProducerState
from kafka_compat.storage.log.transaction_indexes import intact, rebuild
from kafka_compat.storage.segments.scan import scan_batches
from kafka_compat.storage.segments.segment_files import (
    LOG_SUFFIX,
    OFFSET_INDEX_SUFFIX,
    SEGMENT_SUFFIXES,
    SNAPSHOT_SUFFIX,
    TXN_INDEX_SUFFIX,
    file_name,
)
from kafka_compat.storage.segments.segment_indexes import SMALL_BYTES

if TYPE_CHECKING:
    from kafka_compat.storage.config import LogConfig
    from kafka_compat.storage.filesystem import Filesystem
    from kafka_compat.storage.segments.segment import Segment

logger = logging.getLogger(__name__)

PROGRESS_STEP_BYTES = 64 * 1024 * 1024

RecoveryProgress = Callable[[TopicPartition, int, int], None]
"""Callback that receives a partition, the number of bytes checked so far, and the total number of bytes."""


class Opening:
    """A log that is being opened: its files, and the state found in them."""

    def __init__(
        self,
        filesystem: Filesystem,
        directory: str,
        key: TopicPartition,
        config: LogConfig,
        names: list[str],
        segments: list[Segment],
    ) -> None:
        self.end_offset = 0
        self.scanned_bytes = 0
        self.truncated_bytes = 0
        self.has_changed = False
        """Whether the log may differ from its state after a clean shutdown."""
        self.leader_epochs = self._read_leader_epochs(filesystem, directory, names)
        self._stored_epochs = self.leader_epochs.encode()
        self.producers: ProducerState
        self._filesystem = filesystem
        self._directory = directory
        self._key = key
        self._names = names
        self._segments = segments
        self._compacts = config.compact
        self._expiration_ms = config.producer_id_expiration_ms
        self._producers_known = False
        self._trusted = len(segments)
        """The number of segments, from the first, that recovery does not scan."""

    @staticmethod
    def _read_leader_epochs(filesystem: Filesystem, directory: str, names: list[str]) -> LeaderEpochs:
        if LEADER_EPOCH_CHECKPOINT not in names:
            return LeaderEpochs()
        path = f"{directory}/{LEADER_EPOCH_CHECKPOINT}"
        try:
            return LeaderEpochs.decode(filesystem.read_file(path))
        except CorruptFile as error:
            logger.warning("Ignored the invalid leader epochs in %s: %s", path, error)
            return LeaderEpochs()

    def ends_whole(self) -> bool:
        """Find the end of a cleanly closed log. Return False if the log does not end with a whole batch."""
        if not self._segments:
            return True
        active = self._segments[-1]
        self.end_offset, end_position = active.last_batch_end()
        return end_position == active.size_bytes

    def recover(self, recovery_point: int, keep_gaps: bool, progress: RecoveryProgress | None) -> None:
        """Find the valid prefix of the log, truncate the log after it, and make the result durable."""
        segments = self._segments
        self.has_changed = True
        if not segments:
            return
        # Include a segment that ends at the recovery point: if it was rolled after the last flush, its
        # batches are durable, but its indexes may not be.
        first = max(bisect_left([segment.base_offset for segment in segments], recovery_point) - 1, 0)
        total_bytes = sum(segment.size_bytes for segment in segments[first:])
        self._trusted = first
        base_offset = segments[first].base_offset
        self._remove_snapshots(lambda offset: offset > base_offset)
        self.producers = self._load_producers(segments[:first], base_offset)
        self._producers_known = True
        # Sync the snapshot at `base_offset`: if this recovery is interrupted, the next one needs it.
        path = f"{self._directory}/{file_name(base_offset, SNAPSHOT_SUFFIX)}"
        if self._filesystem.exists(path):
            self._filesystem.sync_file(path)
        else:
            self._write_snapshot(base_offset)
        self.leader_epochs.truncate_from_end(base_offset)
        self.end_offset = base_offset
        forked_at = self._forked_at()
        for number, segment in enumerate(segments[first:], first):
            if segment.base_offset > self.end_offset:
                if not keep_gaps and self.end_offset >= recovery_point:
                    self._drop_from(number, f"the previous segment lost its end at offset {self.end_offset}")
                    break
                self._tell_gap(segment.base_offset)
                # If the segment is empty, the log ends here: a record before it could not be found.
                self.end_offset = segment.base_offset
            elif segment.base_offset < self.end_offset:
                self._drop_from(number, f"the previous segment ends at offset {self.end_offset}")
                break
            if segment.base_offset == forked_at:
                self.producers.forget_sequences()
            if number > first:
                self._write_snapshot(segment.base_offset)
            if not self._recover_segment(segment, total_bytes, progress):
                self._drop_from(number + 1, "it follows a corrupt batch")
                break

    def repair_indexes(self) -> None:
        """Of the segments that were not scanned, rebuild the transaction indexes whose files are damaged, and
        all indexes of a segment if an operator has removed them.
        """
        names = frozenset(self._names)
        for number, segment in enumerate(self._segments[: self._trusted]):
            if not segment.size_bytes:
                continue
            if file_name(segment.base_offset, OFFSET_INDEX_SUFFIX) in names:
                if file_name(segment.base_offset, TXN_INDEX_SUFFIX) in names:
                    intact(self._segments, number, self._load_producers)
                continue
            # Forks and saved states omit the offset index of a small active segment.
            if segment.size_bytes > SMALL_BYTES:
                logger.warning(
                    "Rebuilding the indexes of %s: the offset index is missing", segment.path(LOG_SUFFIX)
                )
                segment.rebuild_indexes()
                self.has_changed = True
            if rebuild(self._segments, number, self._load_producers):
                self.has_changed = True

    def _load_producers(self, segments: Sequence[Segment], end_offset: int) -> ProducerState:
        return load_producers(
            self._filesystem, self._directory, self._names, segments, end_offset, self._expiration_ms
        )

    def _forked_at(self) -> int:
        """Return the offset at which producers restart sequences, or -1 if the log is not a fork."""
        if FORKED_AT not in self._names:
            return -1
        content = self._filesystem.read_file(f"{self._directory}/{FORKED_AT}")
        # A machine crash before the fork was durable may have emptied the file.
        return int(content) if content.isdigit() else -1

    def _tell_gap(self, base_offset: int) -> None:
        if not self._compacts:
            logger.warning(
                "Records are missing from %s: offsets %d to %d",
                self._directory,
                self.end_offset,
                base_offset - 1,
            )

    def _recover_segment(self, segment: Segment, total_bytes: int, progress: RecoveryProgress | None) -> bool:
        """Check one segment, truncate its invalid end, and return whether the whole segment was valid."""
        size_bytes = segment.size_bytes
        segment.reset()
        next_progress = self.scanned_bytes
        corruption: CorruptRecord | None = None
        try:
            for batch in scan_batches(segment.file, 0, size_bytes, segment.base_offset):
                header = batch.header
                if header.last_offset - segment.base_offset > INT_MAX:
                    raise CorruptRecord(f"offset {header.last_offset} does not fit into the segment")
                segment.add_batch(header.last_offset, header.max_timestamp, header.size_bytes)
                if header.partition_leader_epoch > self.leader_epochs.latest_epoch:
                    self.leader_epochs.assign(header.partition_leader_epoch, header.base_offset)
                if header.producer_id >= 0:
                    aborted = self.producers.apply(header, batch.data)
                    if aborted is not None:
                        segment.txn_index.append(aborted)
                self.end_offset = header.next_offset
                self.scanned_bytes += header.size_bytes
                if progress is not None and self.scanned_bytes >= next_progress:
                    progress(self._key, self.scanned_bytes, total_bytes)
                    next_progress = self.scanned_bytes + PROGRESS_STEP_BYTES
        except CorruptRecord as error:
            corruption = error
        if corruption is not None:
            lost = size_bytes - segment.size_bytes
            logger.warning(
                "Removed the last %d bytes of segment %d of %s, from offset %d: %s",
                lost,
                segment.base_offset,
                self._directory,
                self.end_offset,
                corruption,
            )
            self.truncated_bytes += lost
            segment.unshare()
            segment.file.truncate(segment.size_bytes)
        segment.sync_all()
        if segment.sealed:
            segment.release_now()
        return corruption is None

    def _drop_from(self, number: int, reason: str) -> None:
        for segment in self._segments[number:]:
            logger.warning("Removed segment %d of %s: %s", segment.base_offset, self._directory, reason)
            self.truncated_bytes += segment.size_bytes
            segment.abandon()
            for suffix in (*SEGMENT_SUFFIXES, SNAPSHOT_SUFFIX):
                self._filesystem.unlink(segment.path(suffix))
        del self._segments[number:]

    def start_empty(self, offset: int, segment: Segment) -> None:
        """Start an empty log at `offset`."""
        self.has_changed = True
        self._drop_from(0, "the log restarts at a different offset")
        self._remove_snapshots(lambda _: True)
        segment.create()
        self._segments.append(segment)
        self.end_offset = offset
        self.leader_epochs.clear()
        self.producers = ProducerState(expiration_ms=self._expiration_ms)
        self._producers_known = True

    def finish(self, log_start_offset: int, clean: bool) -> None:
        """Make the producer state, leader epochs and snapshots match the log, in memory and on disk."""
        self.leader_epochs.truncate_from_start(log_start_offset)
        self.leader_epochs.truncate_from_end(self.end_offset)
        self._remove_snapshots(lambda offset: offset > self.end_offset)
        if not self._producers_known:
            self.producers = self._load_producers(self._segments, self.end_offset)
        if self.leader_epochs.encode() != self._stored_epochs:
            self._filesystem.write_file_atomically(
                f"{self._directory}/{LEADER_EPOCH_CHECKPOINT}", self.leader_epochs.encode()
            )
        bases = {segment.base_offset for segment in self._segments}
        newest = max(snapshot_offsets(self._names), default=0)
        self._remove_snapshots(lambda offset: offset not in bases and offset != newest)
        if not clean:
            if checkpoints.PARTITION_METADATA in self._names:
                self._filesystem.sync_file(f"{self._directory}/{checkpoints.PARTITION_METADATA}")
            self._filesystem.sync_directory(self._directory)

    def _write_snapshot(self, offset: int) -> None:
        name = file_name(offset, SNAPSHOT_SUFFIX)
        path = f"{self._directory}/{name}"
        self._filesystem.write_file(path, self.producers.encode_snapshot())
        self._filesystem.sync_file(path)
        if name not in self._names:
            self._names.append(name)

    def _remove_snapshots(self, condition: Callable[[int], bool]) -> None:
        for offset in snapshot_offsets(self._names):
            if condition(offset):
                name = file_name(offset, SNAPSHOT_SUFFIX)
                self._filesystem.unlink(f"{self._directory}/{name}")
                self._names.remove(name)
