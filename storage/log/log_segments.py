"""The ordered segments of one log: reads and lookups across them.

Segments are added and removed only on the event loop. A flush in another thread uses a copy of `all`.
"""

from __future__ import annotations

from bisect import bisect_right

from kafka_compat.storage.segments.file_slice import SENDFILE_BYTES_MIN, FileSlice
from kafka_compat.storage.segments.scan import scan_headers
from kafka_compat.storage.segments.segment import Segment


class LogSegments:
    """The segments of one log (at least one), oldest first. Batches are appended to the last, `active`."""

    __slots__ = ("_sealed_bytes", "active", "all", "base_offsets", "removals")

    def __init__(self, segments: list[Segment]) -> None:
        self.all = segments
        self.base_offsets = [segment.base_offset for segment in segments]
        self._sealed_bytes = sum(segment.size_bytes for segment in segments[:-1])
        for segment in segments[:-1]:
            segment.set_sealed(True)
        self.active = segments[-1]
        self.active.set_sealed(False)
        self.removals = 0
        """Number of operations that may have removed records. A change invalidates cached positions."""

    @property
    def size_bytes(self) -> int:
        """The total size of all batches in bytes. The sum for the sealed segments is cached, because each
        wake-up of a delayed fetch reads this size.
        """
        return self._sealed_bytes + self.active.size_bytes

    def add(self, segment: Segment) -> None:
        """Add `segment` as the active segment."""
        if self.all:
            self._sealed_bytes += self.active.size_bytes
            self.active.set_sealed(True)
        self.all.append(segment)
        self.base_offsets.append(segment.base_offset)
        self.active = segment

    def remove(self, first: int, end: int) -> list[Segment]:
        """Remove and return the segments [first, end), oldest first. If no segment remains, the caller must
        add one before any other call.
        """
        self.removals += 1
        removed = self.all[first:end]
        del self.all[first:end]
        del self.base_offsets[first:end]
        sealed = [segment for segment in removed if segment is not self.active]
        self._sealed_bytes -= sum(segment.size_bytes for segment in sealed)
        if self.all and self.active is not self.all[-1]:
            self.active = self.all[-1]
            self._sealed_bytes -= self.active.size_bytes
            self.active.set_sealed(False)
        return removed

    def replace(self, first: int, end: int, segment: Segment) -> None:
        """Replace the sealed segments [first, end) with `segment`, which contains the remaining batches."""
        self._sealed_bytes += segment.size_bytes - sum(old.size_bytes for old in self.all[first:end])
        self.removals += 1
        segment.set_sealed(True)
        self.all[first:end] = [segment]
        self.base_offsets[first:end] = [segment.base_offset]

    def number_of(self, offset: int) -> int:
        """Return the index of the segment that contains `offset`, or 0 for offsets before all segments."""
        return max(bisect_right(self.base_offsets, offset) - 1, 0)

    def read(
        self, offset: int, max_bytes: int, upper_bound: int, log_end_offset: int, min_one_batch: bool
    ) -> FileSlice | None:
        """Read whole batches below `upper_bound` from one segment, starting with the batch that contains
        `offset`.

        Returns None if there are no batches. The caller, `Log.read`, has checked the offsets. Raises
        CorruptRecord if other software has shortened a segment's file.
        """
        segment = self.active
        after = len(self.all)
        if offset < segment.base_offset:
            after = bisect_right(self.base_offsets, offset)
            segment = self.all[after - 1]
        while True:
            segment.used = True
            start = segment.position_of(offset)
            end = segment.size_bytes
            is_last = after == len(self.all)
            if upper_bound < (log_end_offset if is_last else self.base_offsets[after]):
                end = segment.position_of(upper_bound)
            if start < end:
                break
            # Try the next segment: compaction or damage may have removed the batches after `offset` here.
            segment.check_whole()
            if is_last or upper_bound <= self.base_offsets[after]:
                return None
            segment = self.all[after]
            after += 1
        stop = end
        if start + max_bytes < end:
            stop = segment.cut(start, end, max_bytes, min_one_batch)
            if stop == start:
                return None
        if stop - start >= SENDFILE_BYTES_MIN:
            # Check only large slices here, because a smaller slice is checked when it is read.
            segment.check_whole()
        return FileSlice(segment.file, start, stop - start)

    def batch_start(self, offset: int) -> int:
        """Return the first offset of the batch that contains `offset`, or `offset` if there is none."""
        segment = self.all[self.number_of(offset)]
        position = segment.position_of(offset)
        if position == segment.size_bytes:
            return offset
        return min(offset, next(scan_headers(segment.file, position, segment.size_bytes)).header.base_offset)
