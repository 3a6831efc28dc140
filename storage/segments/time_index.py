"""The sparse time index of a segment, stored in `<base offset>.timeindex` with entries of 12 bytes.

An entry contains a timestamp in ms (8 bytes) and the last offset of the batch with this timestamp, relative
to the base offset (4 bytes). Both are big-endian. No record up to this offset has a larger timestamp.
Timestamps are ascending.
"""

from __future__ import annotations

import struct
from bisect import bisect_left
from typing import TYPE_CHECKING, Final, NamedTuple

from kafka_compat.storage.errors import CorruptFile

if TYPE_CHECKING:
    from kafka_compat.storage.filesystem import File

ENTRY_SIZE_BYTES: Final = 12
_ENTRY: Final = struct.Struct(">qi")


class TimestampEntry(NamedTuple):
    """The largest timestamp seen so far in a segment, and the last offset of the batch that contains it."""

    timestamp: int
    offset: int


def last_entry(file: File, base_offset: int) -> TimestampEntry | None:
    """Read the last entry of a stored time index. Return (-1, base offset) if the index is empty.

    Return None if the end is inconclusive, because the index ends inside an entry, or with zeros that Kafka
    preallocated.
    """
    size_bytes = file.size()
    if size_bytes == 0:
        return TimestampEntry(-1, base_offset)
    content = file.pread(ENTRY_SIZE_BYTES, max(size_bytes - ENTRY_SIZE_BYTES, 0))
    if size_bytes % ENTRY_SIZE_BYTES or len(content) < ENTRY_SIZE_BYTES or not any(content):
        return None
    timestamp, relative_offset = _ENTRY.unpack(content)
    return TimestampEntry(timestamp, base_offset + relative_offset) if relative_offset >= 0 else None


class TimeIndex:
    """The entries of a time index in memory, as bytes: lookups are too rare to justify decoding all entries.

    Another thread may look up entries while the owner appends or truncates.
    """

    __slots__ = ("_entries", "base_offset", "last_timestamp", "size_bytes")

    def __init__(self, base_offset: int, entries: bytes = b"") -> None:
        self.base_offset = base_offset
        self._entries = bytearray(entries)
        self.size_bytes = len(entries)
        """Size of all entries in bytes."""
        self.last_timestamp = self._entry(len(self) - 1)[0] if entries else -1

    @classmethod
    def decode(cls, base_offset: int, content: bytes) -> TimeIndex:
        """Decode an index file. Trailing zeros, which Kafka preallocates, are dropped.

        Raises CorruptFile if the last entry is not after the first.
        """
        content = content.rstrip(b"\0")
        size = -(-len(content) // ENTRY_SIZE_BYTES) * ENTRY_SIZE_BYTES
        index = cls(base_offset, content.ljust(size, b"\0"))
        if size:
            first, last = index._entry(0), index._entry(len(index) - 1)
            if first[0] > last[0] or not 0 <= first[1] <= last[1]:
                raise CorruptFile(f"the time index at {base_offset} does not ascend")
        return index

    def encode(self) -> bytes:
        return bytes(self._entries)

    def __len__(self) -> int:
        return len(self._entries) // ENTRY_SIZE_BYTES

    @property
    def last(self) -> TimestampEntry | None:
        if not self._entries:
            return None
        timestamp, relative_offset = self._entry(len(self) - 1)
        return TimestampEntry(timestamp, self.base_offset + relative_offset)

    def maybe_append(self, timestamp: int, offset: int) -> None:
        """Add an entry if the timestamp is larger than the timestamp of the last entry."""
        if timestamp > self.last_timestamp:
            self._entries += _ENTRY.pack(timestamp, offset - self.base_offset)
            self.size_bytes += ENTRY_SIZE_BYTES
            self.last_timestamp = timestamp

    def offset_before(self, timestamp: int) -> int:
        """Return an offset (at least the base offset) before which all records have earlier timestamps."""
        entries = self._entries
        at = bisect_left(
            range(len(entries) // ENTRY_SIZE_BYTES), timestamp, key=lambda entry: _entry(entries, entry)[0]
        )
        return self.base_offset + (_entry(entries, at - 1)[1] if at else 0)

    def truncate(self, end_offset: int) -> None:
        """Remove entries for offsets at or after `end_offset`."""
        relative = end_offset - self.base_offset
        at = bisect_left(range(len(self)), relative, key=lambda entry: self._entry(entry)[1])
        self.last_timestamp = self._entry(at - 1)[0] if at else -1
        # Create a new object, because another thread may be reading the old one.
        self._entries = self._entries[: at * ENTRY_SIZE_BYTES]
        self.size_bytes = at * ENTRY_SIZE_BYTES

    def _entry(self, number: int) -> tuple[int, int]:
        return _entry(self._entries, number)


def _entry(entries: bytearray, number: int) -> tuple[int, int]:
    return _ENTRY.unpack_from(entries, number * ENTRY_SIZE_BYTES)
