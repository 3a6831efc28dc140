"""The structure of all records of one batch, checked as fast as Python can.

Two ways give the same answer. `_walk` goes from record to record. `_uniform_run` looks at many records at
once: when others of the same length and shape follow a record, a slice with that length as its step is one
column of bytes down the run (all second bytes of the value length, say), and whole columns compare at C's
speed. By induction that is exact: record i + 1 begins where record i ends, has the same bytes wherever its
structure is written down, and so ends one length later. Benchmarks and sensors write such batches; a batch of
irregular records costs a few failed attempts of half a microsecond each.
"""

from __future__ import annotations

from typing import NamedTuple

from storage.errors import InvalidRecord
from storage.records import encode_varint, read_varint, read_varlong


class Scan(NamedTuple):
    """What sound records say: the extremes of their timestamp deltas in ms, and whether a key is null."""

    min_timestamp_delta: int
    max_timestamp_delta: int
    has_null_key: bool


def scan(body: bytes, count: int) -> Scan:
    """Check that `body` is exactly `count` > 0 records of format 2 with the offset deltas 0, 1, 2, …

    Raises InvalidRecord otherwise; a wrong offset delta is told by the index of its record.
    """
    if count * _MIN_RECORD_BYTES > len(body):
        raise InvalidRecord(f"{len(body)} bytes cannot hold {count} records")
    state = _State()
    attempt_at = 0
    pause = _FIRST_PAUSE
    try:
        while state.index < count:
            stop = count
            if count - state.index >= _RUN_MIN:
                if state.index >= attempt_at:
                    if _uniform_run(body, count, state):
                        continue
                    attempt_at = state.index + pause
                    pause *= 2
                stop = min(count, attempt_at)
            _walk(body, stop, state)
    except IndexError:
        raise InvalidRecord("a record goes on behind the end of its batch") from None
    if state.position != len(body):
        raise InvalidRecord(f"{len(body) - state.position} bytes follow the last of {count} records")
    return Scan(state.low, state.high, state.has_null_key)


_MIN_RECORD_BYTES = 7
_RUN_MIN = 8
_FIRST_PAUSE = 8


class _State:
    """How far a scan has come, and what it has seen."""

    __slots__ = ("has_null_key", "high", "index", "low", "position")

    def __init__(self) -> None:
        self.index = 0
        self.position = 0
        self.low = 1 << 63
        self.high = -1 << 63
        self.has_null_key = False

    def see(self, low: int, high: int) -> None:
        if low < self.low:
            self.low = low
        if high > self.high:
            self.high = high


_OFFSETS: list[bytes] = [bytes((2 * delta,)) for delta in range(64)]
"""Offset deltas as varints: constants, made when a batch first is that long."""
_OFFSETS_MAX = 8192


def _offsets(start: int, stop: int) -> list[bytes]:
    if stop > len(_OFFSETS):
        missing = range(len(_OFFSETS), min(stop, _OFFSETS_MAX))
        _OFFSETS.extend([bytes((2 * delta & 127 | 128, delta >> 6)) for delta in missing])
    return _OFFSETS[start:stop] + [encode_varint(delta) for delta in range(max(start, _OFFSETS_MAX), stop)]


_BEYOND = 1 << 40
"""Where no batch goes on: a negative length leads there, and so to the check of a record's end."""
_STEP = [(1 if byte < 128 else 2) + ((byte & 127) >> 1) if byte % 2 == 0 else _BEYOND for byte in range(256)]
"""By the first byte of a length of one or two bytes: the bytes of the number and of what it counts, as far as
this byte tells."""


def _walk(data: bytes, stop: int, state: _State) -> None:
    """Check the records up to index `stop` one by one.

    Numbers of one or two bytes are read in place, all others by a function that takes ten times as long. A
    position that leaves the batch needs no check of its own: it ends in an IndexError, or it is not where
    the record ends, or the last record does not end where the batch does.
    """
    position, low, high, null_key = state.position, state.low, state.high, state.has_null_key
    step = _STEP
    last_delta_byte = -1
    for index, offset in enumerate(_offsets(state.index, stop), state.index):
        byte = data[position]
        end = position + step[byte]
        if byte < 128:
            position += 2
        else:
            second = data[position + 1]
            if second < 128:
                end += second << 6
                position += 3
            else:
                length, position = read_varint(data, position)
                end = position + length if length >= 0 else _BEYOND
                position += 1
        byte = data[position]
        if byte == last_delta_byte:
            position += 1
        else:
            if byte < 128:
                last_delta_byte = byte
                delta = (byte >> 1) ^ -(byte & 1)
                position += 1
            else:
                delta, position = read_varlong(data, position)
            if delta > high:
                high = delta
            if delta < low:
                low = delta
        if data.startswith(offset, position):
            position += len(offset)
        else:
            position = _check_offset(data, position, index)
        byte = data[position]
        if byte == 1:
            null_key = True
            position += 1
        elif byte < 128 and not byte & 1:
            position += step[byte]
        else:
            length, position = read_varint(data, position)
            if length < 0:
                null_key = True
            else:
                position += length
        byte = data[position]
        if byte < 128:
            position += 1 if byte & 1 else step[byte]
        else:
            second = data[position + 1]
            if second < 128 and not byte & 1:
                position += step[byte] + (second << 6)
            else:
                length, position = read_varint(data, position)
                if length > 0:
                    position += length
        if data[position] == 0:
            position += 1
        else:
            position = _check_headers(data, position, end, index)
        if position != end:
            raise InvalidRecord(f"the content of record {index} does not end where its length says")
    state.index = stop
    state.position, state.low, state.high, state.has_null_key = position, low, high, null_key


def _check_offset(data: bytes, position: int, index: int) -> int:
    delta, position = read_varint(data, position)
    if delta != index:
        message = f"the offset delta of record {index} is {delta}"
        raise InvalidRecord(message, [(index, message)])
    return position


def _check_headers(data: bytes, position: int, end: int, index: int) -> int:
    count, position = read_varint(data, position)
    if count < 0 or count > end - position:
        raise InvalidRecord(f"record {index} cannot have {count} headers")
    for _ in range(count):
        length, position = read_varint(data, position)
        if length < 0:
            raise InvalidRecord(f"a header of record {index} has no key")
        position += length
        length, position = read_varint(data, position)
        if length > 0:
            position += length
    return position


class _Shape(NamedTuple):
    """One record, taken apart. Positions count from its first byte."""

    size_bytes: int
    timestamp_delta: int
    timestamp_position: int
    offset_position: int
    after_offset: int
    lengths: list[int]
    """Where the bytes of all other numbers are: the same bytes in the same places make the same structure."""
    has_null_key: bool


def _read_shape(data: bytes, start: int, index: int) -> _Shape:
    length, position = read_varint(data, start)
    body = position
    end = position + length
    if length < 0 or end > len(data):
        raise InvalidRecord(f"record {index} has a length of {length} that its batch cannot hold")
    timestamp_position = position + 1
    timestamp_delta, offset_position = read_varlong(data, timestamp_position)
    after_offset = _check_offset(data, offset_position, index)
    lengths = list(range(body - start))
    key_length, position = read_varint(data, after_offset)
    lengths += range(after_offset - start, position - start)
    if key_length > 0:
        position += key_length
    before = position
    value_length, position = read_varint(data, position)
    lengths += range(before - start, position - start)
    if value_length > 0:
        position += value_length
    before = position
    count, position = read_varint(data, position)
    lengths += range(before - start, position - start)
    if count < 0 or count > end - position:
        raise InvalidRecord(f"record {index} cannot have {count} headers")
    for _ in range(count):
        before = position
        length, position = read_varint(data, position)
        if length < 0:
            raise InvalidRecord(f"a header of record {index} has no key")
        lengths += range(before - start, position - start)
        before = position = position + length
        length, position = read_varint(data, position)
        lengths += range(before - start, position - start)
        if length > 0:
            position += length
    if position != end:
        raise InvalidRecord(f"the content of record {index} does not end where its length says")
    return _Shape(
        end - start,
        timestamp_delta,
        timestamp_position - start,
        offset_position - start,
        after_offset - start,
        lengths,
        key_length < 0,
    )


_OFFSET_COLUMN_1 = bytes(range(0, 128, 2))
_CONTINUED = bytes(range(128, 256))
_CONTINUED_EVEN = bytes(range(128, 256, 2))


def _uniform_run(data: bytes, count: int, state: _State) -> bool:
    """Check as many records as have the shape of the next one; False and no change when too few have."""
    start, index = state.position, state.index
    # Cheap, and nearly always decisive: does a record of the same length follow?
    length, position = read_varint(data, start)
    size = position - start + length
    if length < 0 or data[start + size : position + size] != data[start:position]:
        return False
    shape = _read_shape(data, start, index)
    offset_width = shape.after_offset - shape.offset_position
    timestamp_width = shape.offset_position - shape.timestamp_position
    if timestamp_width > 2 or offset_width != len(encode_varint(index)):
        return False
    run = min(count, 1 << (7 * offset_width - 1)) - index
    run = min(run, (len(data) - start) // size)
    for column in shape.lengths:
        first = start + column
        values = data[first : first + run * size : size]
        if values != data[first : first + 1] * run:
            run -= len(values.lstrip(data[first : first + 1]))
            if run < _RUN_MIN:
                return False
    if not _offsets_are(data, start + shape.offset_position, size, run, index, offset_width):
        return False
    first = start + shape.timestamp_position
    stop = first + run * size
    if timestamp_width == 1:
        values = data[first:stop:size]
        if not values.isascii():
            run -= len(values.lstrip(_ASCII))
            if run < _RUN_MIN:
                return False
            values = values[:run]
        low, high = _extremes(values)
    else:
        lows, highs = data[first:stop:size], data[first + 1 : stop + 1 : size]
        if lows.strip(_CONTINUED) or not highs.isascii():
            return False
        low, high = _wide_extremes(lows, highs)
    state.see(low, high)
    state.has_null_key |= shape.has_null_key
    state.position = start + run * size
    state.index = index + run
    return True


_ASCII = bytes(range(128))


def _offsets_are(data: bytes, first: int, step: int, run: int, index: int, width: int) -> bool:
    """Whether the column of varints holds index, index + 1, … (`run` of them, all `width` bytes wide)."""
    stop = first + run * step
    if width == 1:
        return data[first:stop:step] == _OFFSET_COLUMN_1[index : index + run]
    # The lowest seven bits come around every 64 records, the next seven every 8,192.
    for byte in range(width):
        if data[first + byte : stop + byte : step] != _offset_column(index, run, byte, byte == width - 1):
            return False
    return True


def _offset_column(index: int, run: int, byte: int, is_last: bool) -> bytes:
    shift = 7 * byte
    continued = 0 if is_last else 128
    if byte == 0:
        rotated = _CONTINUED_EVEN[index & 63 :] + _CONTINUED_EVEN[: index & 63]
        return (rotated * (run // 64 + 1))[:run]
    # Zigzag doubles the delta, so that `period` deltas share one value of this byte.
    period = 1 << (shift - 1)
    parts = []
    position = index
    while position < index + run:
        next_change = (position // period + 1) * period
        parts.append(
            bytes((2 * position >> shift & 127 | continued,)) * (min(next_change, index + run) - position)
        )
        position = next_change
    return b"".join(parts)


def _extremes(zigzags: bytes) -> tuple[int, int]:
    """Least and greatest of the one-byte zigzag numbers."""
    first, last = zigzags[0], zigzags[-1]
    # Time mostly runs forward: no number is negative, the first is the least, the last the greatest.
    if not first & 1 and not zigzags.translate(None, bytes(range(first, last + 1, 2))):
        return first >> 1, last >> 1
    values = [(byte >> 1) ^ -(byte & 1) for byte in set(zigzags)]
    return min(values), max(values)


def _wide_extremes(lows: bytes, highs: bytes) -> tuple[int, int]:
    """Least and greatest of the two-byte zigzag numbers: `lows` has their first bytes, `highs` the second."""
    least, greatest = lows[0], lows[-1]
    # Again time mostly runs forward. Then no high byte lies above the last one, and from where that one first
    # appears no low byte exceeds the last; the other way around for the first.
    if not (
        lows.translate(None, _CONTINUED_EVEN)
        or highs.translate(None, bytes(range(highs[0], highs[-1] + 1)))
        or lows[highs.find(highs[-1]) :].translate(None, bytes(range(128, greatest + 1)))
        or lows[: highs.rfind(highs[0]) + 1].translate(None, bytes(range(least, 256)))
    ):
        return (least & 127 | highs[0] << 7) >> 1, (greatest & 127 | highs[-1] << 7) >> 1
    numbers = {low & 127 | high << 7 for low, high in zip(lows, highs, strict=True)}
    values = [(number >> 1) ^ -(number & 1) for number in numbers]
    return min(values), max(values)
