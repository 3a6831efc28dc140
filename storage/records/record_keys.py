"""Keys and positions of a batch's records, extracted for compaction.

The loop skips the values and headers of the records. Numbers of one or two bytes are decoded inline; larger
numbers are decoded by a function call, which takes ten times as long.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from kafka_compat.storage.errors import InvalidRecord
from kafka_compat.storage.records.batch import BatchHeader
from kafka_compat.storage.records.records import read_varint, read_varlong


class RecordKeys(NamedTuple):
    """The keys and positions of a batch's records, as columns."""

    keys: list[bytes]
    """One key per record. If the key is null, the entry is empty."""
    offset_deltas: list[int]
    bounds: list[int]
    """The start position of each record in the body, followed by the end of the body."""
    keyless: list[int]
    """Indexes of the records whose key is null."""
    tombstones: list[int]
    """Indexes of the records whose value is null."""


def read_keys(header: BatchHeader, body: bytes) -> RecordKeys:
    """Read the keys and positions of a batch's records. `body` contains the uncompressed records.

    Raises InvalidRecord if the records do not fill `body` or are out of order.
    """
    found = RecordKeys([], [], [0], [], [])
    try:
        _walk(body, header.record_count, found)
    except IndexError:
        raise InvalidRecord("a record extends past the end of its batch") from None
    if found.bounds[-1] != len(body):
        raise InvalidRecord(f"{header.record_count} records end at {found.bounds[-1]} of {len(body)} bytes")
    deltas = found.offset_deltas
    if deltas and (deltas != sorted(deltas) or deltas[0] < 0 or deltas[-1] > header.last_offset_delta):
        raise InvalidRecord("the records of a batch are not in offset order")
    return found


_BEYOND: Final = 1 << 40
"""Step for a negative length. It leads beyond the end of any batch, so that the check of the end fails."""
_STEP: Final = [
    (1 if byte < 128 else 2) + ((byte & 127) >> 1) if byte % 2 == 0 else _BEYOND for byte in range(256)
]
"""Maps the first byte of a field's length to a step: the size of the length (one or two bytes) plus the part
of its value that this byte determines.
"""
_ZIGZAG: Final = [(byte >> 1) ^ -(byte & 1) for byte in range(128)]


def _walk(body: bytes, count: int, found: RecordKeys) -> None:
    add_key, add_delta, add_bound = found.keys.append, found.offset_deltas.append, found.bounds.append
    step, zigzag = _STEP, _ZIGZAG
    position = 0
    for index in range(count):
        byte = body[position]
        end = position + step[byte]
        if byte < 128:
            position += 2
        else:
            second = body[position + 1]
            if second < 128:
                end += second << 6
                position += 3
            else:
                length, position = read_varint(body, position)
                end = position + length if length >= 0 else _BEYOND
                position += 1
        while body[position] > 127:
            position += 1
        byte = body[position + 1]
        if byte < 128:
            add_delta(zigzag[byte])
            position += 2
        else:
            second = body[position + 2]
            if second < 128 and not byte & 1:
                add_delta((byte & 127 | second << 7) >> 1)
                position += 3
            else:
                delta, position = read_varint(body, position + 1)
                add_delta(delta)
        byte = body[position]
        if byte < 128 and not byte & 1:
            value_at = position + step[byte]
            add_key(body[position + 1 : value_at])
        else:
            length, position = read_varint(body, position)
            value_at = position + max(length, 0)
            add_key(body[position:value_at])
            if length < 0:
                found.keyless.append(index)
        # An odd first byte means that the length is negative and the value is null.
        if body[value_at] & 1:
            found.tombstones.append(index)
        if value_at >= end:
            raise InvalidRecord(f"the key of record {index} does not fit into it")
        add_bound(end)
        position = end


def timestamp_delta_at(body: bytes, start: int) -> tuple[int, int]:
    """Return the timestamp delta in ms of the record at `start`, and the position after the delta."""
    while body[start] > 127:
        start += 1
    # Skip the length and the attributes.
    return read_varlong(body, start + 2)
