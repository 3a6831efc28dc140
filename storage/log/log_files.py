"""Files in the directory of one log: creation, replacement, deletion and durability.

Methods raise OSError. The log passes the error and the name of the operation to its `Disk`.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import TYPE_CHECKING
from uuid import UUID

from kafka_compat.storage.directories.checkpoints import PARTITION_METADATA, encode_partition_metadata
from kafka_compat.storage.log.producer_snapshots import load_producers, snapshot_offsets
from kafka_compat.storage.segments import segment_files
from kafka_compat.storage.segments.segment import Segment
from kafka_compat.storage.segments.segment_files import CLEANED_SUFFIX, DELETED_SUFFIX, SEGMENT_SUFFIXES

if TYPE_CHECKING:
    from kafka_compat.storage.config import LogConfig
    from kafka_compat.storage.directories.deletions import Deletions
    from kafka_compat.storage.filesystem import Filesystem
    from kafka_compat.storage.log.leader_epochs import LeaderEpochs
    from kafka_compat.storage.log.producer_state import ProducerState
    from kafka_compat.storage.segments.open_segments import OpenSegments

LEADER_EPOCH_CHECKPOINT = "leader-epoch-checkpoint"
FORKED_AT = "kafka-compat-forked-at"
"""Name of the file that contains the log end offset at the time of a fork (see `log.fork`)."""


class LogFiles:
    """The files of one log: segments, producer snapshots, leader epochs and partition.metadata.

    `names_changed` is true if the directory must be synced to make the name of a new file durable.
    `has_changed` is true if, since the log was opened, a file other than the newest log file was created,
    removed or written.
    """

    __slots__ = (
        "_deletions",
        "_filesystem",
        "_metadata_changed",
        "_open_segments",
        "_parent",
        "has_changed",
        "names_changed",
        "path",
    )

    def __init__(
        self,
        filesystem: Filesystem,
        open_segments: OpenSegments,
        deletions: Deletions,
        parent: str,
        path: str,
    ) -> None:
        self.path = path
        self.has_changed = False
        self.names_changed = False
        self._parent = parent
        self._filesystem = filesystem
        self._open_segments = open_segments
        self._deletions = deletions
        self._metadata_changed = False

    # --- segments

    def create_segment(self, base_offset: int, config: LogConfig, now_ms: int) -> Segment:
        """Create an empty segment with its log file."""
        segment = self.new_segment(base_offset, config, now_ms)
        segment.create()
        self.names_changed = self.has_changed = True
        return segment

    def new_segment(self, base_offset: int, config: LogConfig, now_ms: int) -> Segment:
        """Return an empty segment whose log file does not exist yet."""
        jitter_ms = min(config.segment_jitter_ms, config.segment_ms)
        return Segment(
            segment_files.SegmentFiles(self._filesystem, self.path, base_offset),
            self._open_segments,
            base_offset,
            size_bytes=0,
            index_interval_bytes=config.index_interval_bytes,
            created_ms=now_ms,
            roll_jitter_ms=random.randint(0, jitter_ms) if jitter_ms > 0 else 0,
        )

    def retire(self, segments: Sequence[Segment], due_ms: int) -> None:
        """Rename the files of segments, in the given order, and remove them at `due_ms`."""
        self.has_changed = True
        for segment in segments:
            segment.abandon()
            for suffix in (*SEGMENT_SUFFIXES, segment_files.SNAPSHOT_SUFFIX):
                self._take_away(segment.path(suffix), due_ms)

    def file_size(self, path: str) -> int:
        """Return the size of a file in bytes, or 0 if it is missing."""
        return self._filesystem.file_size(path) if self._filesystem.exists(path) else 0

    def replace(
        self, old: Sequence[Segment], suffixes: Sequence[str], size_bytes: int, config: LogConfig, due_ms: int
    ) -> Segment:
        """Replace the segments `old` with the durable `.cleaned` files at the first base offset, and return
        the new segment. The last of `suffixes` is that of the log file. Old files are removed at `due_ms`.

        The order guarantees that a log file at the first base offset is the old one while any file of `old`
        exists, and that a `.swap` log file remains until all other files have been renamed.
        """
        self.has_changed = True
        first = old[0]
        rename = self._filesystem.rename
        for suffix in suffixes:
            rename(first.path(suffix) + CLEANED_SUFFIX, first.path(suffix) + segment_files.SWAP_SUFFIX)
        first.abandon()
        for suffix in reversed(SEGMENT_SUFFIXES):
            self._take_away(first.path(suffix), due_ms)
        self.retire(old[1:], due_ms)
        for suffix in suffixes:
            rename(first.path(suffix) + segment_files.SWAP_SUFFIX, first.path(suffix))
        self.names_changed = True
        return Segment(
            segment_files.SegmentFiles(self._filesystem, self.path, first.base_offset),
            self._open_segments,
            first.base_offset,
            size_bytes=size_bytes,
            index_interval_bytes=config.index_interval_bytes,
            created_ms=first.created_ms,
        )

    def remove_cleaned(self) -> None:
        """Remove all `.cleaned` files."""
        for name in self._filesystem.listdir(self.path):
            if name.endswith(CLEANED_SUFFIX):
                self._filesystem.unlink(f"{self.path}/{name}")

    def _take_away(self, path: str, due_ms: int) -> None:
        if self._filesystem.exists(path):
            self._filesystem.rename(path, path + DELETED_SUFFIX)
            self._deletions.schedule(path + DELETED_SUFFIX, due_ms)

    def sync_segments(self, segments: Sequence[Segment], flushed_end_offset: int) -> None:
        """Sync the segments that are not wholly below `flushed_end_offset`, and the producer snapshots at
        their ends. `segments` are all segments of the log.
        """
        for number, segment in enumerate(segments):
            following = segments[number + 1].base_offset if number + 1 < len(segments) else None
            if following is not None and following < flushed_end_offset:
                continue
            try:
                if segment.size_bytes:
                    segment.sync(sealed=following is not None)
                if following is not None:
                    snapshot = self._snapshot_path(following)
                    # A log written by other software may lack this snapshot. Recovery then replays batches.
                    if self._filesystem.exists(snapshot):
                        self._filesystem.sync_file(snapshot)
            except FileNotFoundError:
                # Ignore a segment that retention has since deleted.
                if not segment.deleted:
                    raise

    # --- producer snapshots

    def write_snapshot(self, offset: int, producers: ProducerState) -> None:
        """Write a snapshot of the producer state before `offset`. The next flush syncs the snapshot, because
        an append must not wait for the disk.
        """
        self.has_changed = True
        self._filesystem.write_file(self._snapshot_path(offset), producers.encode_snapshot())

    def store_snapshot(self, offset: int, producers: ProducerState) -> None:
        """Write and sync a snapshot of the producer state before `offset`, unless it exists. The name of the
        file is not durable until the directory is synced.
        """
        path = self._snapshot_path(offset)
        if not self._filesystem.exists(path):
            self.write_snapshot(offset, producers)
            self._filesystem.sync_file(path)
            self.names_changed = True

    def remove_snapshots_behind(self, offset: int) -> None:
        for snapshot in snapshot_offsets(self._filesystem.listdir(self.path)):
            if snapshot > offset:
                self._filesystem.unlink(self._snapshot_path(snapshot))

    def load_producers(
        self, segments: Sequence[Segment], log_end_offset: int, expiration_ms: int
    ) -> ProducerState:
        """Load the producer state after the batch that ends at `log_end_offset`."""
        names = self._filesystem.listdir(self.path)
        return load_producers(self._filesystem, self.path, names, segments, log_end_offset, expiration_ms)

    def _snapshot_path(self, offset: int) -> str:
        return f"{self.path}/{segment_files.file_name(offset, segment_files.SNAPSHOT_SUFFIX)}"

    # --- other files

    def exists(self) -> bool:
        return self._filesystem.is_directory(self.path)

    def stamps(self, active: Segment) -> tuple[int, int]:
        """Return the modification times, in ns, of the directory and of the newest log file."""
        stamp = self._filesystem.stamp
        return stamp(self.path)[1], stamp(active.path(segment_files.LOG_SUFFIX))[1]

    @property
    def metadata_path(self) -> str:
        """The path of partition.metadata."""
        return f"{self.path}/{PARTITION_METADATA}"

    def write_topic_id(self, topic_id: UUID, same_as: str = "") -> None:
        """Write partition.metadata. `sync_names` makes it durable. `same_as` is the path of a file with the
        same ID, if one is known. A hard link to that file is created if possible, which takes a quarter of
        the time of a new file. A file with several links is replaced, never changed.
        """
        path = self.metadata_path
        if not same_as or not self._is_linked(same_as, path):
            self._filesystem.write_file(path, encode_partition_metadata(topic_id))
        self._metadata_changed = self.names_changed = self.has_changed = True

    def _is_linked(self, source: str, target: str) -> bool:
        """Create a hard link. Return False if the source is gone, has too many links, or cannot have any."""
        try:
            self._filesystem.link(source, target)
        except OSError:
            return False
        return True

    def store_leader_epochs(self, leader_epochs: LeaderEpochs) -> None:
        """Write the leader-epoch-checkpoint file durably."""
        self.has_changed = True
        self._filesystem.write_file_atomically(
            f"{self.path}/{LEADER_EPOCH_CHECKPOINT}", leader_epochs.encode()
        )

    def sync_names(self) -> None:
        """Make partition.metadata, the names of new files, and the name of the directory durable."""
        if self._metadata_changed:
            self._metadata_changed = False
            self._filesystem.sync_file(self.metadata_path)
            if self._filesystem.exists(f"{self.path}/{FORKED_AT}"):
                self._filesystem.sync_file(f"{self.path}/{FORKED_AT}")
            self._filesystem.sync_directory(self._parent)
        self.sync_directory()

    def sync_directory(self) -> None:
        self._filesystem.sync_directory(self.path)
