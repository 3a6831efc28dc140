"""Indexes and largest timestamp of one segment, loaded on demand.

If an index is not in memory, its file is complete, unless the segment is new and has no entry yet. An index
in memory may contain more entries than its file and cannot be released until it is stored. Two threads may
load the index of a sealed segment at the same time, with the same result.
"""

from __future__ import annotations

import contextlib
import logging
from typing import TYPE_CHECKING, Final

from kafka_compat.storage.errors import CorruptFile
from kafka_compat.storage.segments.offset_index import OffsetIndex
from kafka_compat.storage.segments.scan import scan_headers
from kafka_compat.storage.segments.segment_files import LOG_SUFFIX, SegmentFiles
from kafka_compat.storage.segments.time_index import TimeIndex, TimestampEntry

if TYPE_CHECKING:
    from kafka_compat.storage.filesystem import File
    from kafka_compat.storage.segments.txn_index import TransactionIndex

logger = logging.getLogger(__name__)

SMALL_BYTES: Final = 64 * 1024
"""Maximum size in bytes of a log file that can be read as quickly as its indexes."""


class SegmentIndexes:
    """The offset, time and transaction indexes of a segment."""

    __slots__ = (
        "_base_offset",
        "_bytes_since_entry",
        "_files",
        "_is_new",
        "_max_timestamp",
        "_max_timestamp_known",
        "_max_timestamp_offset",
        "offset_index",
        "stored",
        "time_index",
        "txn_index",
    )

    def __init__(self, files: SegmentFiles, base_offset: int, *, stored: bool) -> None:
        self.stored = stored
        """Whether the index files match the indexes in memory."""
        self.offset_index: OffsetIndex | None = None
        self.time_index: TimeIndex | None = None
        self.txn_index: TransactionIndex | None = None
        self._files = files
        self._base_offset = base_offset
        self._bytes_since_entry = 0
        self._max_timestamp = -1
        self._max_timestamp_offset = base_offset
        self._max_timestamp_known = False
        self._is_new = False
        """Whether neither index files nor entries exist yet."""
        if not stored:
            self.clear()

    def clear(self) -> None:
        """Remove all entries of the offset and time indexes in memory."""
        self.offset_index = self.time_index = None
        self._is_new = True
        self._max_timestamp = -1
        self._max_timestamp_offset = self._base_offset
        self._max_timestamp_known = True
        self._bytes_since_entry = 0
        self.stored = False

    def add(
        self, last_offset: int, max_timestamp: int, position: int, size_bytes: int, interval_bytes: int
    ) -> bool:
        """Register a batch. Return False if an index entry is due and the indexes must be loaded first.

        If the index files are complete (`stored`), the indexes must be loaded before the first batch.
        Otherwise, the files would lack the new batches, and the largest timestamp the earlier ones.
        """
        if max_timestamp > self._max_timestamp:
            self._max_timestamp = max_timestamp
            self._max_timestamp_offset = last_offset
        if self._bytes_since_entry > interval_bytes:
            if self.offset_index is None or self.time_index is None:
                return False
            self.offset_index.append(last_offset, position)
            self.time_index.maybe_append(self._max_timestamp, self._max_timestamp_offset)
            self._bytes_since_entry = 0
        self._bytes_since_entry += size_bytes
        self.stored = False
        return True

    # --- files

    def load(self, log: File, log_size_bytes: int, interval_bytes: int) -> tuple[OffsetIndex, TimeIndex]:
        """Load the offset index and the time index, or rebuild them if their files are missing or corrupt."""
        offset_index, time_index = self.offset_index, self.time_index
        if offset_index is not None and time_index is not None:
            return offset_index, time_index
        if self._is_new:
            return self._begin()
        try:
            offset_index, time_index = self._files.read_indexes(log_size_bytes)
        except (FileNotFoundError, CorruptFile) as error:
            if isinstance(error, FileNotFoundError) and log_size_bytes <= SMALL_BYTES:
                # Saved states and forks omit the index files of a small active segment (see `write_fork`).
                return self.rebuild(log, log_size_bytes, interval_bytes, stores=False)
            logger.warning("Rebuilding the indexes of %s: %s", self._files.path(LOG_SUFFIX), error)
            return self.rebuild(log, log_size_bytes, interval_bytes)
        if not self._max_timestamp_known:
            self._know_max_timestamp(time_index.last)
        self.offset_index, self.time_index = offset_index, time_index
        return offset_index, time_index

    def rebuild(
        self, log: File, log_size_bytes: int, interval_bytes: int, *, stores: bool = True
    ) -> tuple[OffsetIndex, TimeIndex]:
        """Rebuild both indexes from the headers in the log file. With `stores`, write the index files."""
        anew = SegmentIndexes(self._files, self._base_offset, stored=False)
        offset_index, time_index = anew._begin()
        end = 0
        for position, header, _ in scan_headers(log, 0, log_size_bytes):
            anew.add(header.last_offset, header.max_timestamp, position, header.size_bytes, interval_bytes)
            end = position + header.size_bytes
        if end < log_size_bytes:
            path = self._files.path(LOG_SUFFIX)
            logger.warning("Found no complete batch in the last %d bytes of %s", log_size_bytes - end, path)
        self._know_max_timestamp(TimestampEntry(anew._max_timestamp, anew._max_timestamp_offset))
        self.offset_index, self.time_index = offset_index, time_index
        self.stored = self._is_new = False
        # If the disk is full, the entries remain in memory and are used from there.
        if stores:
            with contextlib.suppress(OSError):
                self.store()
        return offset_index, time_index

    def _begin(self) -> tuple[OffsetIndex, TimeIndex]:
        """Create empty indexes. This is deferred, because most segments of a large broker never need them."""
        offset_index, time_index = OffsetIndex(self._base_offset), TimeIndex(self._base_offset)
        self.offset_index, self.time_index = offset_index, time_index
        self._is_new = False
        return offset_index, time_index

    def store(self) -> None:
        """Write the index files, unsynced. As in Kafka, the time index ends with the largest timestamp."""
        if self.txn_index is not None:
            self.txn_index.store()
        if self._is_new:
            self._begin()
        offset_index, time_index = self.offset_index, self.time_index
        if self.stored or offset_index is None or time_index is None:
            return
        time_index.maybe_append(self._max_timestamp, self._max_timestamp_offset)
        self._files.write_indexes(offset_index, time_index)
        self.stored = True

    def transactions(self) -> TransactionIndex:
        """Return the transaction index. It reads its file on demand."""
        if self.txn_index is None:
            self.txn_index = self._files.txn_index()
        return self.txn_index

    def release(self) -> None:
        """Release the indexes if they are stored."""
        if self.stored:
            self.offset_index = self.time_index = self.txn_index = None

    # --- the largest timestamp

    def max_timestamp(self) -> TimestampEntry | None:
        """Return the largest timestamp and the last offset of its batch, or (-1, base offset) if none exists.

        The first call reads the end of the time index, and later calls use a cache. Returns None if the end
        of the time index is inconclusive, so that the indexes must be loaded.
        """
        if not self._max_timestamp_known:
            last = self._files.read_last_time_entry()
            if last is None:
                return None
            self._know_max_timestamp(last)
        return TimestampEntry(self._max_timestamp, self._max_timestamp_offset)

    def _know_max_timestamp(self, last: TimestampEntry | None) -> None:
        entry = last or TimestampEntry(-1, self._base_offset)
        self._max_timestamp, self._max_timestamp_offset = entry
        self._max_timestamp_known = True

    # --- truncation

    def truncate(self, log: File, size_bytes: int, end_offset: int) -> None:
        """Remove the batches from position `size_bytes` onward. `end_offset` is the first removed offset. All
        indexes must be loaded, and `log` must still contain the remaining batches.
        """
        assert self.offset_index is not None and self.time_index is not None
        self.offset_index.truncate(size_bytes)
        self.time_index.truncate(end_offset)
        self.transactions().truncate_to(end_offset)
        self.stored = False
        self._bytes_since_entry = 0
        self._know_max_timestamp(self.time_index.last)
        scan_from = self.offset_index.position_at_or_before(self._max_timestamp_offset)
        for batch in scan_headers(log, scan_from, size_bytes):
            if batch.header.max_timestamp > self._max_timestamp:
                self._max_timestamp = batch.header.max_timestamp
                self._max_timestamp_offset = batch.header.last_offset
