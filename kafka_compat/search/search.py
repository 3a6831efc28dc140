"""State of a search through the partitions of a topic: the next read, and the records found so far. No I/O.

Records are returned oldest first or newest first, by offset within a partition and by time across partitions.
A request ends when it has found `limit` records, when no offsets are left, or when its budget is used up. Its
cursor then contains the position for the next request.

Rules
1. Read next from the partition whose edge, the time of the last record read, is furthest behind. Return a
   record when no edge is behind its time.
2. To search backwards, read forwards through a window of offsets before the offsets already read. The window
   grows while batches are small, and shrinks if it does not fit into one read.
3. With a filter, records that it rejects are not returned. Reads then collect more records than the limit,
   because most of them may be rejected.
4. The next request never reads a window again, unless `limit` was reached in the middle of it.
"""

from collections import deque
from collections.abc import Callable, Mapping
from typing import Final, NamedTuple

from kafka_compat.search.cursor import Cursor
from kafka_compat.search.matching import Match
from kafka_compat.search.scan import Found, Problem, Scanned, Wanted

READ_BYTES_MIN: Final = 32 * 1024
READ_BYTES_MAX: Final = 256 * 1024
"""Maximum bytes of one read. A larger read would keep other work waiting for the worker thread."""
_SPAN_MAX: Final = 1_000_000
"""Maximum number of offsets in one window."""
_SPAN_MIN: Final = 64
_FILTERED_AT_ONCE: Final = 2_000
"""Maximum number of records that one read collects for a filter."""


class Bounds(NamedTuple):
    """Budget of one request: uncompressed bytes to read, and records to scan."""

    bytes_max: int = 32 * 1024 * 1024
    records_max: int = 250_000


class Read(NamedTuple):
    """A read of about `max_bytes` bytes, starting at the batch with `offset`, and the records to find."""

    offset: int
    max_bytes: int
    wanted: Wanted


class _Stream:
    """The state of the search in one partition."""

    def __init__(self, partition: int, first: int, end: int) -> None:
        self.partition = partition
        self.first = first
        self.end = end
        """The offsets in [first, end) have not been searched yet."""
        self.seen: deque[Found] = deque()
        """Records found but not returned yet, in order of return."""
        self.edge_ms: int | None = None
        self.read_bytes = READ_BYTES_MIN
        self.span = 0
        self.window: int | None = None
        """Start of the next window, unless `span` determines it."""

    @property
    def is_done(self) -> bool:
        return self.first >= self.end

    def left(self, *, newest: bool) -> tuple[int, int]:
        """Return the range of offsets that the next request must search."""
        if not self.seen:
            return self.first, self.end
        at = self.seen[0].offset
        return (self.first, at + 1) if newest else (at, self.end)


class Search:
    """One request of a search."""

    def __init__(
        self,
        left: Mapping[int, tuple[int, int]],
        match: Match,
        *,
        newest: bool,
        limit: int,
        total: int | None = None,
        bounds: Bounds | None = None,
        kept_bytes: int,
        accepts: Callable[[Found], bool] | None = None,
    ) -> None:
        """Search the offsets [first, end) of each partition for at most `limit` records. `total` is the
        number of offsets at the start of the search. Keys and values are truncated to `kept_bytes`.
        `accepts` is the filter: it is called once for each matching record, in order.
        """
        self._streams = [_Stream(partition, *span) for partition, span in sorted(left.items())]
        self._match = match
        self._newest = newest
        self._limit = limit
        self._total = sum(max(end - first, 0) for first, end in left.values()) if total is None else total
        self._bounds = bounds or Bounds()
        self._kept_bytes = kept_bytes
        self._accepts = accepts
        self._has_moved = False
        self.found: list[Found] = []
        self.problems: list[Problem] = []
        self.bytes_read = 0
        self.records_seen = 0

    def next(self) -> Read | None:
        """Return the next read, or None if this request is done."""
        self._give_out()
        if len(self.found) >= self._limit:
            return None
        if self._has_moved and self._is_spent():
            self._give_out(all_seen=True)
            return None
        stream = self._to_read()
        return None if stream is None else self._read(stream)

    def _is_spent(self) -> bool:
        return self.bytes_read >= self._bounds.bytes_max or self.records_seen >= self._bounds.records_max

    def _to_read(self) -> _Stream | None:
        """Return the stream to read next (rule 1), or None if no stream needs to be read."""
        waiting = [each for each in self._streams if not each.seen and not each.is_done]
        return min(waiting, key=self._edge, default=None)

    def _edge(self, stream: _Stream) -> tuple[bool, int]:
        if stream.edge_ms is None:
            return False, 0
        return True, -stream.edge_ms if self._newest else stream.edge_ms

    def _give_out(self, *, all_seen: bool = False) -> None:
        """Move the records that rule 1 allows (all if `all_seen`) to `found`, up to the limit."""
        sign = -1 if self._newest else 1
        while len(self.found) < self._limit:
            ready = [each for each in self._streams if each.seen]
            if not ready:
                return
            stream = min(ready, key=lambda each: sign * each.seen[0].timestamp_ms)
            at_ms = sign * stream.seen[0].timestamp_ms
            if not all_seen and any(
                not each.seen and not each.is_done and (each.edge_ms is None or sign * each.edge_ms < at_ms)
                for each in self._streams
            ):
                return
            record = stream.seen.popleft()
            if self._accepts is None or self._accepts(record):
                self.found.append(record)

    def _read(self, stream: _Stream) -> Read:
        newest = self._newest
        limit = self._limit - len(self.found) if self._accepts is None else _FILTERED_AT_ONCE
        offset = stream.first
        if newest:
            if stream.window is not None:
                offset = stream.window
            else:
                if not stream.span:
                    stream.span = limit if self._match.is_all else max(limit, _SPAN_MIN)
                offset = max(stream.first, stream.end - stream.span)
        wanted = Wanted(
            stream.partition, stream.first, stream.end, limit, newest, self._match, self._kept_bytes
        )
        return Read(offset, stream.read_bytes, wanted)

    def nothing(self, read: Read) -> None:
        """Record that a partition has no batches in the requested range or after it."""
        stream = self._stream(read)
        self._has_moved = True
        stream.window = None
        if self._newest:
            stream.end = read.offset
            stream.span = min(2 * stream.span, _SPAN_MAX)
        else:
            stream.first = stream.end

    def unreadable(self, read: Read, reason: str) -> None:
        """Continue the search without a partition that cannot be read."""
        stream = self._stream(read)
        self._has_moved = True
        self.problems.append(Problem(stream.partition, read.offset, reason))
        stream.end = stream.first

    def feed(self, read: Read, scanned: Scanned) -> None:
        """Process the records and problems found in a read."""
        stream = self._stream(read)
        self.bytes_read += scanned.batch_bytes
        self.records_seen += scanned.record_count
        self.problems += scanned.problems
        if scanned.next_offset <= read.offset:
            self.unreadable(read, "the data is not a batch")
        elif self._newest:
            self._feed_newest(stream, read, scanned)
        else:
            self._has_moved = True
            stream.seen.extend(scanned.records)
            stream.first = scanned.next_offset
            stream.edge_ms = scanned.edge_ms
            stream.read_bytes = min(2 * stream.read_bytes, READ_BYTES_MAX)

    def _feed_newest(self, stream: _Stream, read: Read, scanned: Scanned) -> None:
        covered = scanned.next_offset - read.offset
        stream.read_bytes = min(2 * stream.read_bytes, READ_BYTES_MAX)
        if scanned.next_offset < stream.end:
            # Read the end of the window first, because the window is larger than one read.
            stream.span = max(covered, 1)
            stream.window = max(scanned.next_offset, stream.end - stream.span)
            return
        self._has_moved = True
        stream.window = None
        stream.seen.extend(reversed(scanned.records))
        start = read.offset if scanned.first is None else scanned.first
        stream.end = start if scanned.was_cut else min(start, read.offset)
        if scanned.first is not None:
            stream.edge_ms = scanned.edge_ms
        if scanned.batch_bytes < READ_BYTES_MAX // 4:
            stream.span = min(2 * stream.span, _SPAN_MAX)

    def _stream(self, read: Read) -> _Stream:
        return next(each for each in self._streams if each.partition == read.wanted.partition)

    @property
    def cursor(self) -> Cursor | None:
        """The position at which the next request continues, or None if no offsets are left to search."""
        left: dict[int, tuple[int, int]] = {}
        for stream in self._streams:
            first, end = stream.left(newest=self._newest)
            if first < end:
                left[stream.partition] = (first, end)
        return Cursor(left, self._total) if left else None
