"""One segment of a log: a `.log` file of batches with its sparse indexes.

The newest batches of the active segment are also kept as (last offset, position) pairs in memory, so that a
consumer at the tail, which is nearly every consumer, is answered without a look at index or file.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right

from storage.batch import HEADER_SIZE
from storage.config import INT_MAX
from storage.errors import CorruptFile
from storage.filesystem import Buffer, File, Filesystem
from storage.offset_index import OffsetIndex
from storage.scan import header_at, scan_headers
from storage.time_index import TimeIndex, TimestampEntry
from storage.txn_index import TransactionIndex

LOG_SUFFIX = ".log"
OFFSET_INDEX_SUFFIX = ".index"
TIME_INDEX_SUFFIX = ".timeindex"
TXN_INDEX_SUFFIX = ".txnindex"
SNAPSHOT_SUFFIX = ".snapshot"
DELETED_SUFFIX = ".deleted"
CLEANED_SUFFIX = ".cleaned"
SWAP_SUFFIX = ".swap"
SEGMENT_SUFFIXES = (LOG_SUFFIX, OFFSET_INDEX_SUFFIX, TIME_INDEX_SUFFIX, TXN_INDEX_SUFFIX)

TAIL_BATCHES_MAX = 4096
RESERVE_FROM_BYTES = 1024 * 1024
RESERVE_STEP_BYTES = 32 * 1024 * 1024


def file_name(base_offset: int, suffix: str) -> str:
    """Kafka's name for a file of the segment or snapshot at this offset."""
    return f"{base_offset:020d}{suffix}"


class FileSlice:
    """Whole batches in a segment file. The file stays open and readable while a slice of it lives, deleted
    or not.
    """

    __slots__ = ("file", "position", "size_bytes")

    def __init__(self, file: File, position: int, size_bytes: int) -> None:
        self.file = file
        self.position = position
        self.size_bytes = size_bytes

    @property
    def fd(self) -> int:
        """The descriptor to sendfile from."""
        return self.file.fileno()

    def read(self) -> bytes:
        """The bytes, by one pread."""
        return self.file.pread(self.size_bytes, self.position)


class Segment:
    """Batches from `base_offset` on. Opened lazily: a cold segment costs neither a descriptor nor memory."""

    __slots__ = (
        "_bytes_since_index_entry",
        "_directory",
        "_file",
        "_filesystem",
        "_first_timestamp",
        "_max_timestamp",
        "_max_timestamp_offset",
        "_offset_index",
        "_reserved_bytes",
        "_tail_last_offsets",
        "_tail_positions",
        "_time_index",
        "base_offset",
        "created_ms",
        "deleted",
        "index_interval_bytes",
        "indexes_stored",
        "roll_jitter_ms",
        "size_bytes",
        "txn_index",
    )

    def __init__(
        self,
        filesystem: Filesystem,
        directory: str,
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
        self.indexes_stored = size_bytes > 0
        """Whether the index files hold what memory holds."""
        self.deleted = False
        """Set before the files go, for a flush that runs beside."""
        self._filesystem = filesystem
        self._directory = directory
        self._file: File | None = None
        self._offset_index: OffsetIndex | None = None
        self._time_index: TimeIndex | None = None
        self.txn_index = TransactionIndex(filesystem, self.path(TXN_INDEX_SUFFIX))
        self._max_timestamp = -1
        self._max_timestamp_offset = base_offset
        self._first_timestamp: int | None = None
        self._bytes_since_index_entry = 0
        self._reserved_bytes = RESERVE_FROM_BYTES
        self._tail_last_offsets = array("q")
        self._tail_positions = array("I")
        if size_bytes == 0:
            self._offset_index = OffsetIndex(base_offset)
            self._time_index = TimeIndex(base_offset)

    # --- files

    def path(self, suffix: str) -> str:
        """Path of the segment's file with this suffix."""
        return f"{self._directory}/{file_name(self.base_offset, suffix)}"

    @property
    def file(self) -> File:
        if self._file is None:
            self._file = self._filesystem.open(self.path(LOG_SUFFIX))
        return self._file

    @property
    def offset_index(self) -> OffsetIndex:
        if self._offset_index is None:
            self._load_indexes()
        assert self._offset_index is not None
        return self._offset_index

    @property
    def time_index(self) -> TimeIndex:
        if self._time_index is None:
            self._load_indexes()
        assert self._time_index is not None
        return self._time_index

    def _load_indexes(self) -> None:
        try:
            offset_bytes = self._filesystem.read_file(self.path(OFFSET_INDEX_SUFFIX))
            time_bytes = self._filesystem.read_file(self.path(TIME_INDEX_SUFFIX))
            self._offset_index = OffsetIndex.decode(self.base_offset, offset_bytes, self.size_bytes)
            self._time_index = TimeIndex.decode(self.base_offset, time_bytes)
        except (FileNotFoundError, CorruptFile):
            self.rebuild_indexes()
        else:
            last = self._time_index.last
            if last is not None:
                self._max_timestamp, self._max_timestamp_offset = last

    def rebuild_indexes(self) -> None:
        """Make both indexes anew from the headers in the log file."""
        end, self.size_bytes = self.size_bytes, 0
        self._reset_indexes()
        for batch in scan_headers(self.file, 0, end):
            header = batch.header
            self.add_batch(header.last_offset, header.max_timestamp, header.size_bytes)
        self.size_bytes = end
        self._forget_tail()

    def reset(self) -> None:
        """Forget every batch, for a scan that adds them again."""
        self.size_bytes = 0
        self.txn_index.reset()
        self._reset_indexes()

    def _reset_indexes(self) -> None:
        self._offset_index = OffsetIndex(self.base_offset)
        self._time_index = TimeIndex(self.base_offset)
        self._max_timestamp = -1
        self._max_timestamp_offset = self.base_offset
        self._first_timestamp = None
        self._bytes_since_index_entry = 0
        self.indexes_stored = False
        self._forget_tail()

    def store_indexes(self) -> None:
        """Write the index files (not synced). The time index ends with the largest timestamp, as Kafka's."""
        if self.indexes_stored:
            return
        self.txn_index.store()
        self.time_index.maybe_append(self._max_timestamp, self._max_timestamp_offset)
        self._filesystem.write_file(self.path(OFFSET_INDEX_SUFFIX), self.offset_index.encode())
        self._filesystem.write_file(self.path(TIME_INDEX_SUFFIX), self.time_index.encode())
        self.indexes_stored = True

    def sync(self, *, sealed: bool) -> None:
        """Make the batches durable, and with `sealed` the index files too, which are complete then."""
        self.file.sync()
        if sealed and self.size_bytes:
            self._filesystem.sync_file(self.path(OFFSET_INDEX_SUFFIX))
            self._filesystem.sync_file(self.path(TIME_INDEX_SUFFIX))
            if self.txn_index:
                self._filesystem.sync_file(self.path(TXN_INDEX_SUFFIX))

    def sync_all(self) -> None:
        """Store the indexes and make everything of this segment durable."""
        self.store_indexes()
        self.sync(sealed=True)

    def seal(self) -> None:
        """No batch will follow: store the indexes, give back reserved space and the memory of the tail."""
        self.store_indexes()
        self._forget_tail()
        if self._file is not None and self._reserved_bytes > RESERVE_FROM_BYTES:
            self._file.truncate(self.size_bytes)
            self._reserved_bytes = RESERVE_FROM_BYTES

    def let_go(self) -> None:
        """Forget the file and the indexes; the descriptor closes once no slice uses it."""
        self.deleted = True
        self._file = None
        self._offset_index = None
        self._time_index = None

    def create(self) -> None:
        """Make the empty log file."""
        self._file = self._filesystem.create(self.path(LOG_SUFFIX))

    # --- append

    def write(self, data: Buffer) -> None:
        """Append bytes at the end of the file; `add_batch` must follow for each batch in them.

        Raises OSError after cutting off what a full disk let through.
        """
        file = self._file or self.file
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
        # Space in steps that grow with the file makes appends cheaper and files contiguous, while a thousand
        # small partitions do not hold 32 MB each.
        step = min(max(end, RESERVE_FROM_BYTES), RESERVE_STEP_BYTES)
        self.file.reserve(self._reserved_bytes, end + step - self._reserved_bytes)
        self._reserved_bytes = end + step

    def add_batch(self, last_offset: int, max_timestamp: int, size_bytes: int) -> None:
        """Account for a batch that starts at the present end of the segment."""
        position = self.size_bytes
        if max_timestamp > self._max_timestamp:
            self._max_timestamp = max_timestamp
            self._max_timestamp_offset = last_offset
        if self._bytes_since_index_entry > self.index_interval_bytes:
            self.offset_index.append(last_offset, position)
            self.time_index.maybe_append(self._max_timestamp, self._max_timestamp_offset)
            self._bytes_since_index_entry = 0
        self._bytes_since_index_entry += size_bytes
        self.indexes_stored = False
        if position == 0:
            self._first_timestamp = max_timestamp
        tail = self._tail_last_offsets
        if len(tail) >= TAIL_BATCHES_MAX:
            del tail[: TAIL_BATCHES_MAX // 2]
            del self._tail_positions[: TAIL_BATCHES_MAX // 2]
        tail.append(last_offset)
        self._tail_positions.append(position)
        self.size_bytes = position + size_bytes

    def _forget_tail(self) -> None:
        self._tail_last_offsets = array("q")
        self._tail_positions = array("I")

    # --- when to roll

    @property
    def first_timestamp(self) -> int | None:
        """Largest timestamp of the first batch, on which the age of a segment is counted; None when empty."""
        if self._first_timestamp is None and self.size_bytes:
            self._first_timestamp = header_at(self.file.pread(HEADER_SIZE, 0), 0).max_timestamp
        return self._first_timestamp

    def waited_ms(self, now_ms: int, message_timestamp: int) -> int:
        """Age of the segment: by record timestamps where it has them, else by its creation."""
        first = self.first_timestamp
        if first is not None and first >= 0:
            return message_timestamp - first
        return now_ms - self.created_ms

    def indexes_full(self, index_size_bytes: int) -> bool:
        """Whether an index reached segment.index.bytes."""
        limit = index_size_bytes - 12
        return self.offset_index.size_bytes > limit or self.time_index.size_bytes > limit

    def can_hold(self, last_offset: int) -> bool:
        """Whether the offset fits into the 4 bytes of an index entry."""
        return last_offset - self.base_offset <= INT_MAX

    # --- look-up

    @property
    def max_timestamp(self) -> TimestampEntry:
        """The largest timestamp (-1 when there is none) and the last offset of the batch that brought it."""
        if self._time_index is None:
            self._load_indexes()
        return TimestampEntry(self._max_timestamp, self._max_timestamp_offset)

    @property
    def largest_timestamp(self) -> int:
        """The largest timestamp, or the time of the last change where records have none."""
        timestamp = self.max_timestamp.timestamp
        return timestamp if timestamp >= 0 else self.modified_ms

    @property
    def modified_ms(self) -> int:
        """When the log file last changed."""
        return self._filesystem.modified_ms(self.path(LOG_SUFFIX))

    def position_of(self, offset: int) -> int:
        """Position of the first batch whose last offset is at least `offset`; the size when there is none."""
        tail = self._tail_last_offsets
        if tail:
            at = bisect_left(tail, offset)
            if at == len(tail):
                return self.size_bytes
            if at or not self._tail_positions[0]:
                return self._tail_positions[at]
        position = self.offset_index.position_at_or_before(offset)
        for batch in scan_headers(self.file, position, self.size_bytes, self.index_interval_bytes):
            if batch.header.last_offset >= offset:
                return batch.position
        return self.size_bytes

    def cut(self, start: int, end: int, max_bytes: int, min_one_batch: bool) -> int:
        """End of the batches in [start, end) that fit into `max_bytes`; `start` when not even one does.

        With `min_one_batch` the first batch is given even when it is larger. Where batches are small the
        answer is rounded down to an index entry, so that a large read does not walk all of its batches.
        """
        limit = start + max_bytes
        if limit >= end:
            return end
        positions = self._tail_positions
        if positions and limit >= positions[0]:
            at = bisect_right(positions, limit)
            found = positions[at - 1]
            if found > start:
                return found
            if not min_one_batch:
                return start
            return positions[at] if at < len(positions) else end
        found = self.offset_index.last_position_up_to(limit)
        if found > start:
            return found
        found = start
        for batch in scan_headers(self.file, start, end, self.index_interval_bytes):
            batch_end = batch.position + batch.header.size_bytes
            if batch_end > limit:
                return batch_end if min_one_batch and found == start else found
            found = batch_end
        return found

    def last_batch_end(self) -> tuple[int, int]:
        """Offset and position after the last batch that is whole, found from the last index entry on."""
        end_offset = self.base_offset
        end_position = position = self.offset_index.last_position_up_to(self.size_bytes)
        for batch in scan_headers(self.file, position, self.size_bytes, self.index_interval_bytes):
            if batch.position + batch.header.size_bytes > self.size_bytes:
                break
            end_offset = batch.header.next_offset
            end_position = batch.position + batch.header.size_bytes
        return end_offset, end_position

    # --- truncate

    def truncate_to_position(self, position: int, end_offset: int) -> None:
        """Drop the batches from `position` on, of which `end_offset` is the first offset."""
        self.file.truncate(position)
        self._reserved_bytes = max(position, RESERVE_FROM_BYTES)
        self.offset_index.truncate(position)
        self.time_index.truncate(end_offset)
        self.txn_index.truncate_to(end_offset)
        self._forget_tail()
        self.size_bytes = position
        if position == 0:
            self.reset()
            return
        self.indexes_stored = False
        self._bytes_since_index_entry = 0
        last = self.time_index.last
        self._max_timestamp, self._max_timestamp_offset = last if last is not None else (-1, self.base_offset)
        scan_from = self.offset_index.position_at_or_before(self._max_timestamp_offset)
        for batch in scan_headers(self.file, scan_from, position):
            if batch.header.max_timestamp > self._max_timestamp:
                self._max_timestamp = batch.header.max_timestamp
                self._max_timestamp_offset = batch.header.last_offset
