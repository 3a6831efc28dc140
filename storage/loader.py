"""Opening a log's folder after a clean or an unclean stop.

After a clean stop nothing is scanned: the end of the log is found from the last index entry, the producer
state from its snapshot. After an unclean one
1. segments that end below the recovery point are trusted, for a flush made them durable with all their files;
2. every later batch is read and checked; at the first that is torn, corrupt or out of order, the log ends,
and
   segments behind it go. A gap between two segments is such a place too, since a crash may lose the end of
   one segment and keep the next; only compaction makes gaps that belong there, and in a folder whose
   settings are not known any gap may;
3. indexes, producer snapshots and leader epochs of what was read are made anew, and all of it is synced, so
that
   recovering a second time finds the same.
"""

from __future__ import annotations

import logging
from bisect import bisect_left
from collections.abc import Callable
from dataclasses import dataclass
from uuid import UUID

from storage import checkpoints
from storage.checkpoints import TopicPartition
from storage.config import LogConfig
from storage.deletions import Deletions
from storage.disk import Disk
from storage.errors import CorruptFile, CorruptRecord
from storage.filesystem import Filesystem
from storage.leader_epochs import LeaderEpochs
from storage.log import Log
from storage.log_folder import LEADER_EPOCH_CHECKPOINT
from storage.producers import ProducerState
from storage.scan import scan_batches, scan_headers
from storage.segment import (
    CLEANED_SUFFIX,
    DELETED_SUFFIX,
    LOG_SUFFIX,
    SEGMENT_SUFFIXES,
    SNAPSHOT_SUFFIX,
    SWAP_SUFFIX,
    Segment,
    file_name,
)
from storage.snapshots import load_producers, snapshot_offsets

logger = logging.getLogger(__name__)

PROGRESS_STEP_BYTES = 64 * 1024 * 1024

RecoveryProgress = Callable[[TopicPartition, int, int], None]
"""Called now and then with a partition, the bytes checked so far and the bytes to check in it."""


@dataclass(frozen=True, slots=True)
class LoadedLog:
    """A log and what opening it took."""

    log: Log
    scanned_bytes: int = 0
    truncated_bytes: int = 0


class LogLoader:
    """Opens and creates logs on one file system."""

    def __init__(self, filesystem: Filesystem, deletions: Deletions, now_ms: Callable[[], int]) -> None:
        self._filesystem = filesystem
        self._deletions = deletions
        self._now_ms = now_ms

    def create(
        self, disk: Disk, directory: str, key: TopicPartition, topic_id: UUID, config: LogConfig
    ) -> Log:
        """An empty log in a new folder; durable with its first flush. Raises OSError."""
        self._filesystem.mkdir(directory)
        segment = self._segment(directory, 0, 0, config)
        segment.create()
        producers = ProducerState(expiration_ms=config.producer_id_expiration_ms)
        log = self._log(disk, directory, key, None, config, [segment], 0, 0, producers, LeaderEpochs())
        log.assign_topic_id(topic_id)
        return log

    def load(
        self,
        disk: Disk,
        directory: str,
        key: TopicPartition,
        config: LogConfig,
        *,
        recovery_point: int,
        log_start_offset: int,
        clean: bool,
        keep_gaps: bool = False,
        progress: RecoveryProgress | None = None,
    ) -> LoadedLog:
        """Open the log in `directory`. Raises OSError when the disk fails."""
        self._finish_interrupted_work(directory)
        names = self._filesystem.listdir(directory)
        segments = [
            self._segment(
                directory,
                base,
                self._filesystem.file_size(f"{directory}/{file_name(base, LOG_SUFFIX)}"),
                config,
            )
            for base in sorted(base_offsets(names, LOG_SUFFIX))
        ]
        opening = _Opening(self._filesystem, directory, key, config, names, segments)
        if not clean or not opening.ends_whole():
            opening.recover(recovery_point, keep_gaps or config.compact, progress)
        if not segments or opening.end_offset < log_start_offset:
            if segments:
                logger.warning(
                    "%s ends at %d, before its start at %d: starting anew there",
                    directory,
                    opening.end_offset,
                    log_start_offset,
                )
            opening.start_anew(log_start_offset, self._segment(directory, log_start_offset, 0, config))
        log_start_offset = max(log_start_offset, segments[0].base_offset)
        opening.finish(log_start_offset, clean)
        log = self._log(
            disk,
            directory,
            key,
            self._read_topic_id(directory, names),
            config,
            segments,
            log_start_offset,
            opening.end_offset,
            opening.producers,
            opening.leader_epochs,
        )
        return LoadedLog(log, opening.scanned_bytes, opening.truncated_bytes)

    def _segment(self, directory: str, base_offset: int, size_bytes: int, config: LogConfig) -> Segment:
        return Segment(
            self._filesystem,
            directory,
            base_offset,
            size_bytes=size_bytes,
            index_interval_bytes=config.index_interval_bytes,
            created_ms=self._now_ms(),
        )

    def _log(
        self,
        disk: Disk,
        directory: str,
        key: TopicPartition,
        topic_id: UUID | None,
        config: LogConfig,
        segments: list[Segment],
        log_start_offset: int,
        log_end_offset: int,
        producers: ProducerState,
        leader_epochs: LeaderEpochs,
    ) -> Log:
        return Log(
            filesystem=self._filesystem,
            disk=disk,
            deletions=self._deletions,
            directory=directory,
            topic=key[0],
            partition=key[1],
            topic_id=topic_id,
            config=config,
            segments=segments,
            log_start_offset=log_start_offset,
            log_end_offset=log_end_offset,
            producers=producers,
            leader_epochs=leader_epochs,
            now_ms=self._now_ms,
        )

    def _read_topic_id(self, directory: str, names: list[str]) -> UUID | None:
        if checkpoints.PARTITION_METADATA not in names:
            return None
        path = f"{directory}/{checkpoints.PARTITION_METADATA}"
        try:
            return checkpoints.decode_partition_metadata(self._filesystem.read_file(path))
        except CorruptFile as error:
            logger.warning("ignoring %s: %s", path, error)
            return None

    def _finish_interrupted_work(self, directory: str) -> None:
        """Remove what a deletion or a cleaning left behind; complete the swap of cleaned segments (as Kafka
        does).
        """
        filesystem = self._filesystem
        names = filesystem.listdir(directory)
        leftovers = [name for name in names if name.endswith((DELETED_SUFFIX, CLEANED_SUFFIX, ".tmp"))]
        cleaned = base_offsets(names, LOG_SUFFIX + CLEANED_SUFFIX)
        swapped = sorted(base_offsets(names, LOG_SUFFIX + SWAP_SUFFIX))
        if cleaned:
            # A cleaning or the split of a segment had not got to its swap; the source is still there.
            # Before the rest: without the `.cleaned` file they would count.
            leftovers[:0] = [
                name
                for name in names
                if name.endswith(SWAP_SUFFIX) and int(name.split(".")[0]) >= min(cleaned)
            ]
            swapped = [base for base in swapped if base < min(cleaned)]
        for name in leftovers:
            filesystem.unlink(f"{directory}/{name}")
        if swapped:
            # The old log file at the first base offset goes last of its segment: while it is there, no other
            # file at that offset is a new one (see LogFolder.replace).
            end_offset = self._end_offset(directory, swapped[-1])
            for base in base_offsets(names, LOG_SUFFIX):
                if swapped[0] <= base < end_offset:
                    for suffix in reversed(SEGMENT_SUFFIXES):
                        filesystem.unlink(f"{directory}/{file_name(base, suffix)}")
        waiting = [name for name in filesystem.listdir(directory) if name.endswith(SWAP_SUFFIX)]
        for name in sorted(waiting, key=lambda name: name.endswith(LOG_SUFFIX + SWAP_SUFFIX)):
            filesystem.rename(f"{directory}/{name}", f"{directory}/{name.removesuffix(SWAP_SUFFIX)}")

    def _end_offset(self, directory: str, base_offset: int) -> int:
        """The end of the segment in a `.swap` file, whose place is taken even when it is empty."""
        file = self._filesystem.open(f"{directory}/{file_name(base_offset, LOG_SUFFIX)}{SWAP_SUFFIX}")
        end_offset = base_offset + 1
        for batch in scan_headers(file, 0, file.size()):
            end_offset = batch.header.next_offset
        return end_offset


class _Opening:
    """The log of one folder while it is found out."""

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
        self.leader_epochs = self._read_leader_epochs(filesystem, directory, names)
        self._stored_epochs = self.leader_epochs.encode()
        self.producers: ProducerState
        self._filesystem = filesystem
        self._directory = directory
        self._key = key
        self._names = names
        self._segments = segments
        self._expiration_ms = config.producer_id_expiration_ms
        self._producers_known = False

    @staticmethod
    def _read_leader_epochs(filesystem: Filesystem, directory: str, names: list[str]) -> LeaderEpochs:
        if LEADER_EPOCH_CHECKPOINT not in names:
            return LeaderEpochs()
        path = f"{directory}/{LEADER_EPOCH_CHECKPOINT}"
        try:
            return LeaderEpochs.decode(filesystem.read_file(path))
        except CorruptFile as error:
            logger.warning("ignoring %s: %s", path, error)
            return LeaderEpochs()

    def ends_whole(self) -> bool:
        """Find the end of a cleanly closed log; False when its last segment does not end with a whole
        batch.
        """
        if not self._segments:
            return True
        active = self._segments[-1]
        self.end_offset, end_position = active.last_batch_end()
        return end_position == active.size_bytes

    def recover(self, recovery_point: int, keep_gaps: bool, progress: RecoveryProgress | None) -> None:
        """Find the clean prefix, cut off what follows, and make durable what is left."""
        segments = self._segments
        if not segments:
            return
        # A segment that ends exactly at the recovery point may have been rolled after that flush: its
        # batches are durable, but its indexes may not be.
        first = max(bisect_left([segment.base_offset for segment in segments], recovery_point) - 1, 0)
        total_bytes = sum(segment.size_bytes for segment in segments[first:])
        base_offset = segments[first].base_offset
        self._remove_snapshots(lambda offset: offset > base_offset)
        self.producers = load_producers(
            self._filesystem, self._directory, self._names, segments[:first], base_offset, self._expiration_ms
        )
        self._producers_known = True
        # The state before the first of these segments must still be known when this is done a second time.
        path = f"{self._directory}/{file_name(base_offset, SNAPSHOT_SUFFIX)}"
        if self._filesystem.exists(path):
            self._filesystem.sync_file(path)
        else:
            self._write_snapshot(base_offset)
        self.leader_epochs.truncate_from_end(base_offset)
        self.end_offset = base_offset
        for number, segment in enumerate(segments[first:], first):
            is_gap = segment.base_offset > self.end_offset and not keep_gaps
            if segment.base_offset < self.end_offset or is_gap:
                self._drop_from(number, f"the segment before ends at {self.end_offset}")
                break
            if number > first:
                self._write_snapshot(segment.base_offset)
            if not self._recover_segment(segment, total_bytes, progress):
                self._drop_from(number + 1, "they follow a corrupt batch")
                break

    def _recover_segment(self, segment: Segment, total_bytes: int, progress: RecoveryProgress | None) -> bool:
        """Check one segment and cut its bad end off; whether all of it was good."""
        size_bytes = segment.size_bytes
        segment.reset()
        next_progress = self.scanned_bytes
        corruption: CorruptRecord | None = None
        try:
            for batch in scan_batches(segment.file, 0, size_bytes, segment.base_offset):
                header = batch.header
                if not segment.can_hold(header.last_offset):
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
                "%s: cutting %d bytes off the segment at %d, behind offset %d: %s",
                self._directory,
                lost,
                segment.base_offset,
                self.end_offset,
                corruption,
            )
            self.truncated_bytes += lost
            segment.file.truncate(segment.size_bytes)
        segment.sync_all()
        return corruption is None

    def _drop_from(self, number: int, reason: str) -> None:
        for segment in self._segments[number:]:
            logger.warning("%s: dropping the segment at %d: %s", self._directory, segment.base_offset, reason)
            self.truncated_bytes += segment.size_bytes
            segment.let_go()
            for suffix in (*SEGMENT_SUFFIXES, SNAPSHOT_SUFFIX):
                self._filesystem.unlink(segment.path(suffix))
        del self._segments[number:]

    def start_anew(self, offset: int, segment: Segment) -> None:
        """Begin an empty log at `offset`."""
        self._drop_from(0, "the log starts anew")
        self._remove_snapshots(lambda _: True)
        segment.create()
        self._segments.append(segment)
        self.end_offset = offset
        self.leader_epochs.clear()
        self.producers = ProducerState(expiration_ms=self._expiration_ms)
        self._producers_known = True

    def finish(self, log_start_offset: int, clean: bool) -> None:
        """Bring producers and epochs in line with the log, and its folder on disk."""
        self.leader_epochs.truncate_from_start(log_start_offset)
        self.leader_epochs.truncate_from_end(self.end_offset)
        self._remove_snapshots(lambda offset: offset > self.end_offset)
        if not self._producers_known:
            self.producers = load_producers(
                self._filesystem,
                self._directory,
                self._names,
                self._segments,
                self.end_offset,
                self._expiration_ms,
            )
        if self.leader_epochs.encode() != self._stored_epochs:
            self._filesystem.write_file_atomically(
                f"{self._directory}/{LEADER_EPOCH_CHECKPOINT}", self.leader_epochs.encode()
            )
        bases = {segment.base_offset for segment in self._segments}
        newest = max(snapshot_offsets(self._names), default=0)
        self._remove_snapshots(lambda offset: offset not in bases and offset != newest)
        if not clean:
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


def base_offsets(names: list[str], suffix: str) -> list[int]:
    """The offsets in the names of a log's files with this suffix."""
    stems = (name.removesuffix(suffix) for name in names if name.endswith(suffix))
    return [int(stem) for stem in stems if stem.isdecimal()]
