"""Files of one segment under Kafka's names: reading, writing and syncing.

`Segment`, not this module, keeps open files and loaded indexes. Methods raise OSError.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from kafka_compat.storage.segments.offset_index import OffsetIndex
from kafka_compat.storage.segments.time_index import TimeIndex, TimestampEntry, last_entry
from kafka_compat.storage.segments.txn_index import TransactionIndex

if TYPE_CHECKING:
    from kafka_compat.storage.filesystem import File, Filesystem

LOG_SUFFIX: Final = ".log"
OFFSET_INDEX_SUFFIX: Final = ".index"
TIME_INDEX_SUFFIX: Final = ".timeindex"
TXN_INDEX_SUFFIX: Final = ".txnindex"
SNAPSHOT_SUFFIX: Final = ".snapshot"
DELETED_SUFFIX: Final = ".deleted"
CLEANED_SUFFIX: Final = ".cleaned"
SWAP_SUFFIX: Final = ".swap"
SEGMENT_SUFFIXES: Final = (LOG_SUFFIX, OFFSET_INDEX_SUFFIX, TIME_INDEX_SUFFIX, TXN_INDEX_SUFFIX)


def file_name(base_offset: int, suffix: str) -> str:
    """Return Kafka's name for a file of the segment, or for the producer snapshot, at this offset."""
    return f"{base_offset:020d}{suffix}"


class SegmentFiles:
    """The files of one segment in a directory."""

    __slots__ = ("_base_offset", "_directory", "_filesystem")

    def __init__(self, filesystem: Filesystem, directory: str, base_offset: int) -> None:
        self._filesystem = filesystem
        self._directory = directory
        self._base_offset = base_offset

    def path(self, suffix: str) -> str:
        return f"{self._directory}/{file_name(self._base_offset, suffix)}"

    def open_log(self) -> File:
        return self._filesystem.open(self.path(LOG_SUFFIX))

    def unshare(self) -> None:
        """If a fork (`log.fork`) links to files that are written in place, replace them with copies. Indexes
        are replaced as a whole and need no copy.
        """
        self._filesystem.unshare(self.path(LOG_SUFFIX))
        self._filesystem.unshare(self.path(TXN_INDEX_SUFFIX))

    def create_log(self) -> File:
        return self._filesystem.create(self.path(LOG_SUFFIX))

    def modified_ms(self) -> int:
        """Return the modification time of the log file, or 0 if it is missing, as in Kafka."""
        try:
            return self._filesystem.modified_ms(self.path(LOG_SUFFIX))
        except FileNotFoundError:
            return 0

    def read_indexes(self, log_size_bytes: int) -> tuple[OffsetIndex, TimeIndex]:
        """Read the offset and time indexes. Raises FileNotFoundError or CorruptFile."""
        offset_bytes = self._filesystem.read_file(self.path(OFFSET_INDEX_SUFFIX))
        time_bytes = self._filesystem.read_file(self.path(TIME_INDEX_SUFFIX))
        return (
            OffsetIndex.decode(self._base_offset, offset_bytes, log_size_bytes),
            TimeIndex.decode(self._base_offset, time_bytes),
        )

    def read_last_time_entry(self) -> TimestampEntry | None:
        """Read the last time index entry. Return None if the file is missing, torn or padded with zeros."""
        try:
            file = self._filesystem.open(self.path(TIME_INDEX_SUFFIX))
        except FileNotFoundError:
            return None
        return last_entry(file, self._base_offset)

    def write_indexes(self, offset_index: OffsetIndex, time_index: TimeIndex) -> None:
        """Replace both index files, without syncing them."""
        self._filesystem.write_file(self.path(OFFSET_INDEX_SUFFIX), offset_index.encode())
        self._filesystem.write_file(self.path(TIME_INDEX_SUFFIX), time_index.encode())

    def sync_indexes(self) -> None:
        """Make all index files durable, including the transaction index if it exists."""
        self._filesystem.sync_file(self.path(OFFSET_INDEX_SUFFIX))
        self._filesystem.sync_file(self.path(TIME_INDEX_SUFFIX))
        if self._filesystem.exists(self.path(TXN_INDEX_SUFFIX)):
            self._filesystem.sync_file(self.path(TXN_INDEX_SUFFIX))

    def txn_index(self) -> TransactionIndex:
        """Return the index of aborted transactions. It reads its file on demand."""
        return TransactionIndex(self._filesystem, self.path(TXN_INDEX_SUFFIX))
