"""The first record of a batch from a time on, found as fast as Python can.

As in `record_scan`, two ways give the same answer: from record to record, and for records of one length at
once, of which a slice with that length as its step is one column of bytes. Nothing else of a record is looked
at: the batch was checked when it was appended.
"""

from __future__ import annotations

from typing import NamedTuple

from kafka_compat.storage.errors import InvalidRecord
from kafka_compat.storage.records.records import read_varint, read_varlong

_RUN_MIN = 16
_PAUSE_MAX = 4096
_BYTES_MIN = 6
_ASCII = bytes(range(128))
_CONTINUED = bytes(range(128, 256))


class RecordTime(NamedTuple):
    """A record by its differences to the base timestamp (ms) and the base offset of its batch."""

    timestamp_delta: int
    offset_delta: int


def first_record(body: bytes, count: int, least_timestamp: int, least_offset: int) -> RecordTime | None:
    """The first of `count` records in `body` that has both differences, or larger ones.

    Raises InvalidRecord where records do not follow each other.
    """
    position = index = attempt_at = 0
    pause = _RUN_MIN
    size = len(body)
    while index < count:
        if index >= attempt_at and count - index >= _RUN_MIN:
            run = _Run.at(body, position, count - index)
            if run is not None:
                found = run.first(least_timestamp, least_offset)
                if found is not None:
                    return found
                index += run.count
                position = run.end
                pause = _RUN_MIN
                continue
            attempt_at = index + pause
            pause = min(2 * pause, _PAUSE_MAX)
        length, at = read_varint(body, position)
        position = at + length
        if length <= 0 or position > size:
            raise InvalidRecord(f"a record of {length} bytes does not fit into its batch")
        timestamp_delta, at = read_varlong(body, at + 1)
        if timestamp_delta >= least_timestamp:
            offset_delta, _ = read_varint(body, at)
            if offset_delta >= least_offset:
                return RecordTime(timestamp_delta, offset_delta)
        index += 1
    return None


class _Run:
    """Records of one length whose timestamp differences are numbers of as many bytes."""

    __slots__ = ("_body", "_step", "_time_at", "_width", "count", "end")

    def __init__(self, body: bytes, start: int, content: int, step: int) -> None:
        """`content` is where the first record goes on behind its length, `step` its whole size."""
        self._body = body
        self._step = step
        self._time_at = content + 1
        self._width = 1
        self.count = (len(body) - start) // step
        for at in range(start, content):
            self._cut(at, body[at : at + 1])
        while body[content + self._width] > 127:
            self._cut(content + self._width, _CONTINUED)
            self._width += 1
        self._cut(content + self._width, _ASCII)
        self.end = start + self.count * step

    @classmethod
    def at(cls, body: bytes, start: int, count_max: int) -> _Run | None:
        """The run that begins at `start`; None where it is too short."""
        length, content = read_varint(body, start)
        step = content - start + length
        # Cheap, and nearly always decisive: does a record of the same length follow?
        if length < _BYTES_MIN or body[start + step : content + step] != body[start:content]:
            return None
        run = cls(body, start, content, step)
        return run if _RUN_MIN <= run.count <= count_max else None

    def _column(self, at: int) -> bytes:
        return self._body[at : at + (self.count - 1) * self._step + 1 : self._step]

    def _cut(self, at: int, allowed: bytes) -> None:
        """Let the run end before the first record whose byte is another one."""
        self.count -= len(self._column(at).lstrip(allowed))

    def first(self, least_timestamp: int, least_offset: int) -> RecordTime | None:
        """See `first_record`."""
        # The last byte has the highest bits of the number, which is twice the difference.
        least_top = max(2 * least_timestamp >> 7 * (self._width - 1), 0)
        if least_top > 127:
            return None
        candidates = self._column(self._time_at + self._width - 1).translate(_AT_LEAST[least_top])
        number = candidates.find(1)
        while number >= 0:
            timestamp_delta, at = read_varlong(self._body, self._time_at + number * self._step)
            if timestamp_delta >= least_timestamp:
                offset_delta, _ = read_varint(self._body, at)
                if offset_delta >= least_offset:
                    return RecordTime(timestamp_delta, offset_delta)
            number = candidates.find(1, number + 1)
        return None


_AT_LEAST = [bytes(least) + b"\1" * (256 - least) for least in range(128)]
"""Tables that make 1 of every byte from a value on, and 0 of the others."""
