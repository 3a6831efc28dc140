"""One segment of a log: a `.log` file of batches with its sparse indexes.

A segment opens its file and loads its indexes on demand, and `open_segments` decides when it releases them. A
sealed segment that is not read keeps neither a descriptor nor an index in memory. The active segment keeps
its indexes, which are not stored yet. The size and the largest timestamp, which retention needs, are cached.

The (last offset, position) pairs of the newest batches of the active segment are also kept in memory. Nearly
all reads are at the tail, and they are located by these pairs without the index or the file.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from typing import Final

from kafka_compat.storage.config import INT_MAX
from kafka_compat.storage.errors import CorruptRecord
from kafka_compat.storage.filesystem import Buffer, File
from kafka_compat.storage.records.batch import HEADER_SIZE, read_header
from kafka_compat.storage.segments.offset_index import OffsetIndex
from kafka_compat.storage.segments.open_segments import OpenSegments
from kafka_compat.storage.segments.scan import position_of_offset, scan_headers
from kafka_compat.storage.segments.segment_files import LOG_SUFFIX, SegmentFiles
from kafka_compat.storage.segments.segment_indexes import SegmentIndexes
from kafka_compat.storage.segments.time_index import TimeIndex, TimestampEntry
from kafka_compat.storage.segments.txn_index import TransactionIndex

TAIL_BATCHES_MAX: Final = 4096
_NO_OFFSETS: Final = array("q")
_NO_POSITIONS: Final = array("I")
"""The empty tail of a segment without appends since it was opened. It is shared and never changed."""

RESERVE_FROM_BYTES: Final = 1024 * 1024
RESERVE_STEP_BYTES: Final = 32 * 1024 * 1024


class Segment:
    """One segment of a log, with the batches starting at `base_offset`. Only the event loop's thread changes
    it; other threads may read, sync and look up batches.
    """

    __slots__ = (
        "_file",
        "_files",
        "_first_timestamp",
        "_indexes",
        "_open_segments",
        "_reserved_bytes",
        "_tail_last_offsets",
        "_tail_positions",
        "base_offset",
        "created_ms",
        "deleted",
        "index_interval_bytes",
        "roll_jitter_ms",
        "sealed",
        "size_bytes",
        "used",
    )

    def __init__(
        self,
        files: SegmentFiles,
        open_segments: OpenSegments,
        base_offset: int,
        *,
        size_bytes: int,
        index_interval_bytes: int,
        created_ms: int,
        roll_jitter_ms: int = 0,
    ) -> None:
        self.base_offset = base_offset
        self.size_bytes = size_bytes
        self.index_interval_bytes = index_interval_bytes
        self.created_ms = created_ms
        self.roll_jitter_ms = roll_jitter_ms
        self.deleted = False
        """Whether the segment is deleted. Set before the files are deleted, so that a flush can check it."""
        self.sealed = False
        """Whether the segment is sealed and the index files are complete."""
        self.used = False
        """Whether the segment was used recently (see `open_segments`)."""
        self._files = files
        self._open_segments = open_segments
        self._file: File | None = None
        self._indexes = SegmentIndexes(files, base_offset, stored=size_bytes > 0)
        self._first_timestamp: int | None = None
        self._reserved_bytes = RESERVE_FROM_BYTES
        self._tail_last_offsets = _NO_OFFSETS
        self._tail_positions = _NO_POSITIONS

    # --- files

    def path(self, suffix: str) -> str:
        """Return the path of the segment's file with this suffix."""
        return self._files.path(suffix)

    @property
    def file(self) -> File:
        return self._file or self._open()

    def _open(self) -> File:
        if self.deleted:
            raise FileNotFoundError(f"{self.path(LOG_SUFFIX)} is deleted")
        if not self.sealed:
            self._files.unshare()
        file = self._files.open_log()
        # Swap the files, because another thread may have opened the same file and may be using it.
        self._swap_file(file)
        self._opened()
        return file

    def unshare(self) -> None:
        """Copy files that have other hard links. Call this before a sealed segment is changed."""
        self._files.unshare()
        self._swap_file(None)

    def _swap_file(self, file: File | None) -> File | None:
        """Replace the file, and return the old one. In compiled code, an assignment first releases the old
        value, and other threads would see a closed file. Returning the old value delays its release.
        """
        before = self._file
        self._file = file
        return before

    def _opened(self) -> None:
        self._open_segments.note(self)
        if self.deleted:
            # Retention deleted the segment while this thread opened it.
            self.abandon()

    @property
    def offset_index(self) -> OffsetIndex:
        index = self._indexes.offset_index
        return self._load_indexes()[0] if index is None else index

    @property
    def time_index(self) -> TimeIndex:
        index = self._indexes.time_index
        return self._load_indexes()[1] if index is None else index

    @property
    def txn_index(self) -> TransactionIndex:
        index = self._indexes.txn_index
        if index is None:
            index = self._indexes.transactions()
            self._opened()
        return index

    def _load_indexes(self) -> tuple[OffsetIndex, TimeIndex]:
        loaded = self._indexes.load(self.file, self.size_bytes, self.index_interval_bytes)
        self._opened()
        return loaded

    def rebuild_indexes(self) -> None:
        """Rebuild the offset index and the time index from the headers in the log file, and store them."""
        self._indexes.rebuild(self.file, self.size_bytes, self.index_interval_bytes)
        self._opened()

    def reset(self) -> None:
        """Forget all batches, so that a scan of the log file can add them again."""
        self.txn_index.reset()
        self._forget_all()

    def _forget_all(self) -> None:
        self.size_bytes = 0
        self._indexes.clear()
        self._first_timestamp = None
        self._forget_tail()

    def store_indexes(self) -> None:
        """Write the index files, without syncing them."""
        self._indexes.store()

    def sync(self, *, sealed: bool) -> None:
        """Sync the log file and, with `sealed`, the index files, which the caller must have written."""
        self.file.sync()
        if sealed and self.size_bytes:
            self._files.sync_indexes()

    def sync_all(self) -> None:
        """Store the indexes, and make all files of this segment durable."""
        self.store_indexes()
        self.sync(sealed=True)

    def complete(self) -> None:
        """Before sealing, store the indexes, and release the in-memory tail and the reserved disk space."""
        self.store_indexes()
        self._forget_tail()
        if self._reserved_bytes > RESERVE_FROM_BYTES:
            self.file.truncate(self.size_bytes)
            self._reserved_bytes = RESERVE_FROM_BYTES

    def set_sealed(self, sealed: bool) -> None:
        """Mark the segment as sealed, or as the active segment."""
        self.sealed = sealed
        if self._file is not None:
            self._open_segments.note(self)

    def release(self) -> None:
        """Release the file and, if sealed, the stored indexes. Slices may keep the descriptor open."""
        self._swap_file(None)
        if self.sealed:
            self._indexes.release()

    def release_now(self) -> None:
        """Release the segment at once, because it is not expected to be used soon."""
        self._open_segments.forget(self)
        self.release()

    def abandon(self) -> None:
        """Mark the segment as deleted, so that its files are not opened again."""
        self.deleted = True
        self._open_segments.forget(self)
        self._swap_file(None)
        self._indexes.release()

    def create(self) -> None:
        """Create the empty log file."""
        self._swap_file(self._files.create_log())
        self._open_segments.note(self)

    # --- appends

    def write(self, data: Buffer) -> None:
        """Append `data` to the file. The caller must then call `add_batch` for each batch in `data`.

        Raises OSError, after truncating a partial write.
        """
        file = self._file or self._open()
        self.used = True
        if self._indexes.stored:
            # Load the indexes before they change, and before the write, because reading them may fail.
            self._load_indexes()
        end = self.size_bytes + len(data)
        if end > self._reserved_bytes:
            self._reserve(end)
        written = file.write(data)
        if written != len(data):
            self._write_rest(data, written)

    def _write_rest(self, data: Buffer, written: int) -> None:
        try:
            while written < len(data):
                written += self.file.write(memoryview(data)[written:])
        except OSError:
            self.file.truncate(self.size_bytes)
            raise

    def _reserve(self, end: int) -> None:
        # Reserving space makes appends cheaper and files contiguous. The steps grow with the file, so that
        # small partitions do not reserve 32 MB each.
        step = min(max(end, RESERVE_FROM_BYTES), RESERVE_STEP_BYTES)
        self.file.reserve(self._reserved_bytes, end + step - self._reserved_bytes)
        self._reserved_bytes = end + step

    def add_batch(self, last_offset: int, max_timestamp: int, size_bytes: int) -> None:
        """Register a written batch at the current end of the segment."""
        position = self.size_bytes
        interval_bytes = self.index_interval_bytes
        if not self._indexes.add(last_offset, max_timestamp, position, size_bytes, interval_bytes):
            self._load_indexes()
            self._indexes.add(last_offset, max_timestamp, position, size_bytes, interval_bytes)
        if position == 0:
            self._first_timestamp = max_timestamp
        tail = self._tail_last_offsets
        if len(tail) >= TAIL_BATCHES_MAX:
            del tail[: TAIL_BATCHES_MAX // 2]
            del self._tail_positions[: TAIL_BATCHES_MAX // 2]
        elif not tail:
            tail = self._tail_last_offsets = array("q")
            self._tail_positions = array("I")
        tail.append(last_offset)
        self._tail_positions.append(position)
        self.size_bytes = position + size_bytes

    def _forget_tail(self) -> None:
        self._tail_last_offsets = _NO_OFFSETS
        self._tail_positions = _NO_POSITIONS

    # --- rolling

    @property
    def first_timestamp(self) -> int | None:
        """The largest timestamp of the first batch, or None if the segment is empty."""
        if self._first_timestamp is None and self.size_bytes:
            self._first_timestamp = read_header(self.file.pread(HEADER_SIZE, 0)).max_timestamp
        return self._first_timestamp

    def must_roll(
        self, last_offset: int, max_timestamp: int, now_ms: int, roll_ms: int, index_size_bytes: int
    ) -> bool:
        """Whether this segment, which is not empty, is too old for batches up to `last_offset` (by record
        timestamps or, if there are none, by creation time), or its indexes have no room for their entry.
        """
        first = self.first_timestamp if self._first_timestamp is None else self._first_timestamp
        if first is None or first < 0:
            age_ms = now_ms - self.created_ms
        else:
            age_ms = max_timestamp - first
        if age_ms > roll_ms - self.roll_jitter_ms:
            return True
        offset_index, time_index = self._indexes.offset_index, self._indexes.time_index
        if offset_index is None or time_index is None:
            offset_index, time_index = self._load_indexes()
        limit = index_size_bytes - 12
        if offset_index.size_bytes > limit or time_index.size_bytes > limit:
            return True
        return last_offset - self.base_offset > INT_MAX

    # --- lookup

    @property
    def max_timestamp(self) -> TimestampEntry:
        """The largest timestamp, or -1 if there is none, and the last offset of its batch."""
        entry = self._indexes.max_timestamp()
        if entry is None:
            self._load_indexes()
            entry = self._indexes.max_timestamp()
            assert entry is not None
        return entry

    @property
    def largest_timestamp(self) -> int:
        """The largest timestamp, or the modification time if the records have none."""
        timestamp = self.max_timestamp.timestamp
        return timestamp if timestamp >= 0 else self.modified_ms

    @property
    def modified_ms(self) -> int:
        """The modification time of the log file."""
        return self._files.modified_ms()

    def position_of(self, offset: int) -> int:
        """Return the position of the first batch that ends at or after `offset`, or the segment size."""
        tail = self._tail_last_offsets
        if tail:
            at = bisect_left(tail, offset)
            if at == len(tail):
                return self.size_bytes
            if at or not self._tail_positions[0]:
                return self._tail_positions[at]
        return 0 if offset <= self.base_offset else self.indexed_position_of(offset)

    def indexed_position_of(self, offset: int) -> int:
        """Return the same position as `position_of`. May run in any thread, because it ignores the tail."""
        position = self.offset_index.position_at_or_before(offset)
        return position_of_offset(self.file, position, self.size_bytes, offset, self.index_interval_bytes)

    def cut(self, start: int, end: int, max_bytes: int, min_one_batch: bool) -> int:
        """Return the end of the batches in [start, end) that fit into `max_bytes`, or `start` if none fits.

        With `min_one_batch`, the first batch is included even if it does not fit. For small batches, the
        result is rounded down to an indexed position, so that a large read does not scan all batches.
        """
        limit = start + max_bytes
        if limit >= end:
            return end
        positions = self._tail_positions
        if positions and limit >= positions[0]:
            at = bisect_right(positions, limit)
            boundary = positions[at - 1]
            if boundary > start:
                return boundary
            if not min_one_batch:
                return start
            return positions[at] if at < len(positions) else end
        boundary = self.offset_index.last_position_up_to(limit, max(self.index_interval_bytes, 1))
        if boundary > start:
            return boundary
        boundary = start
        for batch in scan_headers(self.file, start, end, self.index_interval_bytes):
            batch_end = batch.position + batch.header.size_bytes
            if batch_end > limit:
                return batch_end if min_one_batch and boundary == start else boundary
            boundary = batch_end
        return boundary

    def check_whole(self) -> None:
        """Raise CorruptRecord if other software has shortened the log file."""
        size_bytes = self.size_bytes if self.deleted else self.file.size()
        if size_bytes < self.size_bytes:
            raise CorruptRecord(
                f"{self.path(LOG_SUFFIX)} has {size_bytes} bytes, but {self.size_bytes} were written"
            )

    def last_batch_end(self) -> tuple[int, int]:
        """Scan from the last index entry, and return the offset and position after the last whole batch."""
        end_offset = self.base_offset
        if not self.size_bytes:
            return end_offset, 0
        end_position = position = self.offset_index.last_position_up_to(self.size_bytes)
        for batch in scan_headers(self.file, position, self.size_bytes, self.index_interval_bytes):
            end_offset = batch.header.next_offset
            end_position = batch.position + batch.header.size_bytes
        return end_offset, end_position

    # --- truncation

    def truncate_to_position(self, position: int, end_offset: int) -> None:
        """Remove the batches from `position` onward, in memory. `end_offset` is the first removed offset. The
        caller must call `cut_files` before any other write.
        """
        self._reserved_bytes = max(position, RESERVE_FROM_BYTES)
        self._load_indexes()
        self._forget_tail()
        self.size_bytes = position
        if position == 0:
            self.txn_index.truncate_to(end_offset)
            self._forget_all()
        else:
            self._indexes.truncate(self.file, position, end_offset)

    def cut_files(self, size_bytes: int) -> None:
        """Truncate the files after `truncate_to_position`. The log file is truncated durably."""
        self.unshare()
        self.txn_index.store()
        self.file.truncate(size_bytes)
        self.file.sync()
