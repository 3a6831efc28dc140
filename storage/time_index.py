"""The sparse time index of a segment: file `<base offset>.timeindex`, entries of 12 bytes.

An entry is (timestamp in ms, 8 bytes; last offset of the batch that has it - base offset, 4 bytes),
big-endian. It says that no record up to that offset has a larger timestamp. Timestamps ascend.
"""

from __future__ import annotations

import struct
from array import array
from bisect import bisect_left
from typing import NamedTuple

from storage.errors import CorruptFile

ENTRY_SIZE_BYTES = 12
_ENTRY = struct.Struct(">qi")


class TimestampEntry(NamedTuple):
    """The largest timestamp so far and the last offset of the batch that brought it."""

    timestamp: int
    offset: int


class TimeIndex:
    """The entries in memory; the owner loads and stores the bytes."""

    __slots__ = ("_offsets", "_timestamps", "base_offset")

    def __init__(self, base_offset: int) -> None:
        self.base_offset = base_offset
        self._timestamps = array("q")
        self._offsets = array("I")

    @classmethod
    def decode(cls, base_offset: int, content: bytes) -> TimeIndex:
        """Read an index file. Zeros behind the last entry, which Kafka preallocates, are dropped.

        Raises CorruptFile when entries do not ascend.
        """
        index = cls(base_offset)
        content = content.rstrip(b"\0")
        size = -(-len(content) // ENTRY_SIZE_BYTES) * ENTRY_SIZE_BYTES
        for timestamp, offset in _ENTRY.iter_unpack(content.ljust(size, b"\0")):
            # Closing a segment may repeat its last entry, as Kafka does; anything else must ascend.
            if offset < 0 or (
                index._timestamps and (timestamp < index._timestamps[-1] or offset < index._offsets[-1])
            ):
                raise CorruptFile(f"the time index at {base_offset} does not ascend")
            index._timestamps.append(timestamp)
            index._offsets.append(offset)
        return index

    def encode(self) -> bytes:
        """The bytes of the index file."""
        return b"".join(map(_ENTRY.pack, self._timestamps, self._offsets))

    def __len__(self) -> int:
        return len(self._offsets)

    @property
    def size_bytes(self) -> int:
        return len(self._offsets) * ENTRY_SIZE_BYTES

    @property
    def last(self) -> TimestampEntry | None:
        if not self._offsets:
            return None
        return TimestampEntry(self._timestamps[-1], self.base_offset + self._offsets[-1])

    def maybe_append(self, timestamp: int, offset: int) -> None:
        """Add an entry unless no later timestamp than the last entry's has come."""
        if timestamp >= 0 and (not self._timestamps or timestamp > self._timestamps[-1]):
            self._timestamps.append(timestamp)
            self._offsets.append(offset - self.base_offset)

    def offset_before(self, timestamp: int) -> int:
        """An offset before which no record has a timestamp of at least `timestamp`; the base offset when
        unknown.
        """
        at = bisect_left(self._timestamps, timestamp)
        return self.base_offset + (self._offsets[at - 1] if at else 0)

    def truncate(self, end_offset: int) -> None:
        """Forget entries for offsets at or behind `end_offset`."""
        at = bisect_left(self._offsets, max(end_offset - self.base_offset, 0))
        del self._offsets[at:]
        del self._timestamps[at:]
