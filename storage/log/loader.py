"""Open a log after a clean or unclean shutdown.

After a clean shutdown nothing is scanned: the log end is found from the last index entry, and the producer
state is read from its snapshot. After an unclean shutdown, these rules apply:
1. Segments that end below the recovery point are trusted: a flush made them durable with all their files.
2. Every later batch is read and checked. The log ends at the first batch that is torn, corrupt or out of
   order, and later segments are removed, as in Apache Kafka.
3. Gaps between two segments are kept, as in Apache Kafka: compaction or an operator removed the offsets, and
   consumers continue after the gap. There is one exception: if the machine may have crashed and the segment
   before the gap was not flushed, the end of that segment may be lost. The log then ends at the gap, so that
   a replica fetches the later records from its leader; Apache Kafka leaves a hole. Gaps in compacted logs,
   and all gaps while the topic's settings are unknown, are attributed to compaction.
4. Indexes, producer snapshots and leader epochs of the scanned part are rebuilt and synced, so that a second
   recovery has the same result.

As in Apache Kafka, the indexes of other segments are rebuilt if one is damaged or all of them are missing.

In both cases, other files left by a crash are first removed or completed, as in Apache Kafka:
1. `.deleted` and `.cleaned` files are removed. If there are `.cleaned` files, the `.swap` files of the same
   interrupted swap are removed as well.
2. Other `.swap` files are valid: the segments that they replace are removed, and then the suffix.
3. An index without its log file is removed, because a new segment at the same offset would use the index.

Files that other software has added or renamed are handled by the rules of `segment_names`.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, NamedTuple
from uuid import UUID

from kafka_compat.storage.directories import checkpoints
from kafka_compat.storage.errors import CorruptFile
from kafka_compat.storage.log.leader_epochs import LeaderEpochs
from kafka_compat.storage.log.log import Log, LogContents
from kafka_compat.storage.log.log_files import LogFiles
from kafka_compat.storage.log.producer_state import ProducerState
from kafka_compat.storage.log.recovery import Opening, RecoveryProgress
from kafka_compat.storage.log.segment_names import (
    base_offset_of,
    base_offsets,
    restore_names,
    without_strangers,
)
from kafka_compat.storage.segments import segment_files
from kafka_compat.storage.segments.scan import scan_headers
from kafka_compat.storage.segments.segment import Segment
from kafka_compat.storage.segments.segment_files import CLEANED_SUFFIX, LOG_SUFFIX, SWAP_SUFFIX, file_name

if TYPE_CHECKING:
    from kafka_compat.storage.clock import Clock
    from kafka_compat.storage.config import LogConfig
    from kafka_compat.storage.directories.checkpoints import TopicPartition
    from kafka_compat.storage.directories.deletions import Deletions
    from kafka_compat.storage.directories.disk import Disk
    from kafka_compat.storage.directories.log_summaries import LogSummary
    from kafka_compat.storage.filesystem import Filesystem
    from kafka_compat.storage.segments.open_segments import OpenSegments

logger = logging.getLogger(__name__)


class LoadedLog(NamedTuple):
    """An opened log, and the number of bytes that were scanned and truncated."""

    log: Log
    scanned_bytes: int
    truncated_bytes: int


class LogLoader:
    """A factory that opens and creates logs on one file system."""

    def __init__(
        self, filesystem: Filesystem, open_segments: OpenSegments, deletions: Deletions, clock: Clock
    ) -> None:
        self._filesystem = filesystem
        self._open_segments = open_segments
        self._deletions = deletions
        self._clock = clock

    def create(
        self,
        disk: Disk,
        directory: str,
        key: TopicPartition,
        topic_id: UUID | None,
        config: LogConfig,
        sibling: Log | None = None,
    ) -> Log:
        """Create an empty log in a new directory. Its first flush makes it durable. `sibling` is another log
        with the same topic ID, if one is known. Raises OSError.
        """
        self._filesystem.mkdir(directory)
        segment = self._segment(directory, 0, 0, config)
        segment.create()
        files = self._files(disk, directory)
        if topic_id is not None:
            files.write_topic_id(topic_id, sibling.files.metadata_path if sibling is not None else "")
        producers = ProducerState(expiration_ms=config.producer_id_expiration_ms)
        contents = LogContents([segment], 0, 0, producers, LeaderEpochs(), topic_id)
        return Log(key, contents, config, disk, files, self._clock)

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
        """Open the log in `directory`. Raises OSError if the disk fails."""
        names, was_renamed = _clear_leftovers(self._filesystem, directory)
        if was_renamed and clean:
            clean, keep_gaps = False, True
        segments = [
            self._segment(
                directory,
                base,
                self._filesystem.file_size(f"{directory}/{file_name(base, LOG_SUFFIX)}"),
                config,
            )
            for base in sorted(base_offsets(names, LOG_SUFFIX))
        ]
        for segment in segments[:-1]:
            segment.set_sealed(True)
        opening = Opening(self._filesystem, directory, key, config, names, segments)
        if not clean or not opening.ends_whole():
            opening.recover(recovery_point, keep_gaps or config.compact, progress)
        opening.repair_indexes()
        log_start_offset = max(log_start_offset, 0)
        if not segments or opening.end_offset < log_start_offset:
            if segments:
                logger.warning(
                    "Emptied %s: the log ended at offset %d, before its log start offset (%d)",
                    directory,
                    opening.end_offset,
                    log_start_offset,
                )
            opening.start_empty(log_start_offset, self._segment(directory, log_start_offset, 0, config))
        log_start_offset = max(log_start_offset, segments[0].base_offset)
        opening.finish(log_start_offset, clean)
        contents = LogContents(
            segments,
            log_start_offset,
            opening.end_offset,
            opening.producers,
            opening.leader_epochs,
            self._read_topic_id(directory, names),
        )
        log = Log(key, contents, config, disk, self._files(disk, directory), self._clock)
        if clean and not opening.has_changed:
            log.opened_end_offset = opening.end_offset
        return LoadedLog(log, opening.scanned_bytes, opening.truncated_bytes)

    def reopen(
        self,
        disk: Disk,
        directory: str,
        key: TopicPartition,
        config: LogConfig,
        summary: LogSummary,
        log_start_offset: int,
    ) -> Log | None:
        """Open the log in `directory` from its summary. Return None if `load` must open the log,
        because the summary is outdated or a file is missing or corrupt. Raises OSError if the disk fails.
        """
        active_base, active_bytes = summary.segments[-1]
        end_offset = summary.end_offset
        if log_start_offset > end_offset:
            return None
        stamp = self._filesystem.stamp
        try:
            if stamp(directory)[1] != summary.directory_changed_ns:
                return None
            if stamp(f"{directory}/{file_name(active_base, LOG_SUFFIX)}") != (
                active_bytes,
                summary.log_changed_ns,
            ):
                return None
            for base, size_bytes in summary.segments[:-1]:
                found_bytes = self._filesystem.file_size(f"{directory}/{file_name(base, LOG_SUFFIX)}")
                if found_bytes != size_bytes:
                    self._cut_torn_end(self._segment(directory, base, found_bytes, config), size_bytes)
                    return None
            producers = ProducerState(expiration_ms=config.producer_id_expiration_ms)
            if summary.has_producers:
                path = f"{directory}/{file_name(end_offset, segment_files.SNAPSHOT_SUFFIX)}"
                producers = ProducerState.decode_snapshot(
                    self._filesystem.read_file(path), expiration_ms=config.producer_id_expiration_ms
                )
        except (FileNotFoundError, CorruptFile):
            return None
        leader_epochs = LeaderEpochs(summary.epochs)
        log_start_offset = max(log_start_offset, summary.segments[0][0])
        if log_start_offset:
            leader_epochs.truncate_from_start(log_start_offset)
        segments = [self._segment(directory, *segment, config) for segment in summary.segments]
        contents = LogContents(
            segments, log_start_offset, end_offset, producers, leader_epochs, summary.topic_id
        )
        log = Log(key, contents, config, disk, self._files(disk, directory), self._clock)
        log.opened_end_offset = end_offset
        return log

    @staticmethod
    def _cut_torn_end(segment: Segment, expected_bytes: int) -> None:
        """Truncate the torn end of a closed segment that other software has changed."""
        end_position = segment.last_batch_end()[1]
        logger.warning(
            "Found %s with %d bytes instead of %d at startup; kept the complete batches (%d bytes)",
            segment.path(LOG_SUFFIX),
            segment.size_bytes,
            expected_bytes,
            end_position,
        )
        if end_position < segment.size_bytes:
            segment.unshare()
            segment.file.truncate(end_position)

    def _segment(self, directory: str, base_offset: int, size_bytes: int, config: LogConfig) -> Segment:
        return Segment(
            segment_files.SegmentFiles(self._filesystem, directory, base_offset),
            self._open_segments,
            base_offset,
            size_bytes=size_bytes,
            index_interval_bytes=config.index_interval_bytes,
            created_ms=self._clock.now_ms(),
        )

    def _files(self, disk: Disk, directory: str) -> LogFiles:
        return LogFiles(self._filesystem, self._open_segments, self._deletions, disk.path, directory)

    def _read_topic_id(self, directory: str, names: list[str]) -> UUID | None:
        if checkpoints.PARTITION_METADATA not in names:
            return None
        path = f"{directory}/{checkpoints.PARTITION_METADATA}"
        try:
            topic_id = checkpoints.decode_partition_metadata(self._filesystem.read_file(path))
        except CorruptFile as error:
            logger.warning("Ignored the invalid topic ID in %s: %s", path, error)
            return None
        # An ID of zeros was written by a broker without topic IDs, or by an earlier version of this broker.
        return topic_id if topic_id.int else None


# --- leftovers of a crash


def _clear_leftovers(filesystem: Filesystem, directory: str) -> tuple[list[str], bool]:
    """Complete or undo interrupted operations, and restore the names of segments. Return the names of the
    remaining files, and whether any segment was renamed.
    """
    listed = filesystem.listdir(directory)
    names = without_strangers(filesystem, directory, listed)
    strangers = set(listed).difference(names)
    _finish_interrupted_work(filesystem, directory, names)
    names = [name for name in filesystem.listdir(directory) if name not in strangers]
    was_renamed = restore_names(filesystem, directory, names)
    if was_renamed:
        names = [name for name in filesystem.listdir(directory) if name not in strangers]
    return _remove_orphans(filesystem, directory, names), was_renamed


def _finish_interrupted_work(filesystem: Filesystem, directory: str, names: list[str]) -> None:
    """Remove files left by a deletion or a cleaning, and complete a swap of cleaned segments, as in Kafka."""
    leftovers = [
        name for name in names if name.endswith((segment_files.DELETED_SUFFIX, CLEANED_SUFFIX, ".tmp"))
    ]
    cleaned = base_offsets(names, LOG_SUFFIX + CLEANED_SUFFIX)
    swapped = sorted(base_offsets(names, LOG_SUFFIX + SWAP_SUFFIX))
    if cleaned:
        # A cleaning or a segment split was interrupted before its swap; the original segments still exist.
        # Remove `.swap` files first: if a crash left only these, the next startup would complete the swap.
        leftovers[:0] = [
            name
            for name in names
            if name.endswith(SWAP_SUFFIX) and (base_offset_of(name) or 0) >= min(cleaned)
        ]
        swapped = [base for base in swapped if base < min(cleaned)]
    for name in leftovers:
        filesystem.unlink(f"{directory}/{name}")
    if swapped:
        # Of the old files at the first base offset, the log file is removed last: while it exists, the other
        # files at this offset are also old (see LogFiles.replace).
        end_offset = _end_offset(filesystem, directory, swapped[-1])
        for base in base_offsets(names, LOG_SUFFIX):
            if swapped[0] <= base < end_offset:
                for suffix in reversed(segment_files.SEGMENT_SUFFIXES):
                    filesystem.unlink(f"{directory}/{file_name(base, suffix)}")
    waiting = [name for name in names if name.endswith(SWAP_SUFFIX) and name not in leftovers]
    for name in sorted(waiting, key=lambda name: name.endswith(LOG_SUFFIX + SWAP_SUFFIX)):
        filesystem.rename(f"{directory}/{name}", f"{directory}/{name.removesuffix(SWAP_SUFFIX)}")


def _remove_orphans(filesystem: Filesystem, directory: str, names: list[str]) -> list[str]:
    """Remove indexes without a log file, because a new segment at the same offset would use them. Return the
    names of the other files.
    """
    logs = set(base_offsets(names, LOG_SUFFIX))
    orphans = {
        file_name(base, suffix)
        for suffix in segment_files.SEGMENT_SUFFIXES
        for base in base_offsets(names, suffix)
        if base not in logs
    }
    for name in sorted(orphans):
        logger.warning("Removed %s/%s: its log file is missing", directory, name)
        filesystem.unlink(f"{directory}/{name}")
    return [name for name in names if name not in orphans]


def _end_offset(filesystem: Filesystem, directory: str, base_offset: int) -> int:
    """Return the end offset of the segment in a `.swap` file, or its base offset plus 1 if it is empty."""
    file = filesystem.open(f"{directory}/{file_name(base_offset, LOG_SUFFIX)}{SWAP_SUFFIX}")
    end_offset = base_offset + 1
    for batch in scan_headers(file, 0, file.size()):
        end_offset = batch.header.next_offset
    return end_offset
