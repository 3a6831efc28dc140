"""The sparse offset index of a segment, stored in `<base offset>.index` with entries of 8 bytes.

An entry is (last offset of a batch - base offset, position of that batch). Both are big-endian numbers of 4
bytes, in ascending order. A lookup of an offset returns the position of a batch at or before the batch that
contains the offset.
"""

from __future__ import annotations

import sys
from array import array
from bisect import bisect_right
from typing import Final

from kafka_compat.storage.errors import CorruptFile

ENTRY_SIZE_BYTES: Final = 8


class OffsetIndex:
    """The entries of an offset index in memory. The owner loads and stores the file.

    Another thread may look up entries while the owner appends or truncates: the position of an entry
    is added before its offset, and removed after its offset.
    """

    __slots__ = ("_offsets", "_positions", "base_offset", "size_bytes")

    def __init__(self, base_offset: int) -> None:
        self.base_offset = base_offset
        self._offsets = array("I")
        self._positions = array("I")
        self.size_bytes = 0
        """Size of all entries in bytes."""

    @classmethod
    def decode(cls, base_offset: int, content: bytes, log_size_bytes: int) -> OffsetIndex:
        """Decode an index file. Trailing zeros, which Kafka preallocates, are dropped.

        As in Kafka's sanity check, only the first and last entries are checked, because a full index has a
        million entries. Raises CorruptFile if they are out of order or the last is beyond the end of the log.
        """
        index = cls(base_offset)
        content = content.rstrip(b"\0")
        size = -(-len(content) // ENTRY_SIZE_BYTES) * ENTRY_SIZE_BYTES
        fields = array("I", content.ljust(size, b"\0"))
        if sys.byteorder == "little":
            fields.byteswap()
        offsets, positions = fields[0::2], fields[1::2]
        if offsets and not 0 < offsets[0] <= offsets[-1]:
            raise CorruptFile(f"offsets of the index at {base_offset} do not ascend")
        if positions and not positions[0] <= positions[-1]:
            raise CorruptFile(f"positions of the index at {base_offset} do not ascend")
        if positions and positions[-1] >= log_size_bytes:
            raise CorruptFile(f"the index at {base_offset} points past the end of its log")
        index._offsets, index._positions = offsets, positions
        index.size_bytes = len(offsets) * ENTRY_SIZE_BYTES
        return index

    def encode(self) -> bytes:
        fields = array("I", bytes(self.size_bytes))
        fields[0::2] = self._offsets
        fields[1::2] = self._positions
        if sys.byteorder == "little":
            fields.byteswap()
        return fields.tobytes()

    def __len__(self) -> int:
        return len(self._offsets)

    def append(self, last_offset: int, position: int) -> None:
        """Add an entry for the batch at `position`. `last_offset` must be above all earlier last offsets."""
        self._positions.append(position)
        self._offsets.append(last_offset - self.base_offset)
        self.size_bytes += ENTRY_SIZE_BYTES

    def position_at_or_before(self, offset: int) -> int:
        """Return the last indexed position whose batch ends at or before `offset`, or 0 if there is none."""
        positions = self._positions
        at = bisect_right(self._offsets, offset - self.base_offset)
        return positions[at - 1] if at else 0

    def last_position_up_to(self, position: int, spacing_bytes: int = 1) -> int:
        """Return the position of the last indexed batch at or before `position`, or 0 if there is none.

        The search is short if entries are known to be `spacing_bytes` apart. The result is lower if some
        are closer, as after a change of index.interval.bytes.
        """
        positions = self._positions
        at = bisect_right(positions, position, 0, min(len(positions), position // spacing_bytes + 1))
        return positions[at - 1] if at else 0

    def truncate(self, size_bytes: int) -> None:
        """Remove the entries for batches at or after the position `size_bytes` in the log file."""
        at = bisect_right(self._positions, size_bytes - 1)
        self._offsets = self._offsets[:at]
        self._positions = self._positions[:at]
        self.size_bytes = at * ENTRY_SIZE_BYTES
