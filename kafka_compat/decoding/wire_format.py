"""Parse the header that schema registry serializers put before a value. No I/O.

The header is a zero byte, the schema ID in four bytes, and for Protobuf the index path of the message in its
file.
"""

from collections.abc import Sequence
from typing import Final, NamedTuple

from kafka_compat.decoding.plain import NotSo

_MAGIC: Final = 0
_START_BYTES: Final = 5
_DEPTH_MAX: Final = 100
_VARINT_BYTES_MAX: Final = 5


class Framed(NamedTuple):
    """A value without its header."""

    schema_id: int
    content: bytes


def framed(content: bytes) -> Framed | None:
    """Split a value into schema ID and content. Return None if the header is missing or the ID is 0."""
    if len(content) < _START_BYTES or content[0] != _MAGIC:
        return None
    schema_id = int.from_bytes(content[1:_START_BYTES], "big")
    # If the schema ID is 0, the value is probably a small integer.
    return Framed(schema_id, content[_START_BYTES:]) if schema_id else None


def message_indexes(content: bytes) -> tuple[Sequence[int], bytes]:
    """Return the path to the message in its Protobuf file, starting at the outermost message, and the bytes
    of the message. Raises NotSo if the path is invalid.
    """
    count, position = _varint(content, 0)
    if count == 0:
        # An empty path is the short form for [0], by far the most common path.
        return [0], content[position:]
    if not 0 < count <= _DEPTH_MAX:
        raise NotSo(f"a message nested in {count} others")
    indexes = []
    for _ in range(count):
        index, position = _varint(content, position)
        indexes.append(index)
    return indexes, content[position:]


def _varint(content: bytes, position: int) -> tuple[int, int]:
    """Return a zigzag varint and the position after it.

    The broker's own reader is not used, because Spark's executors run this module without the broker.
    """
    value = 0
    for index, byte in enumerate(content[position : position + _VARINT_BYTES_MAX]):
        value |= (byte & 0x7F) << (7 * index)
        if byte < 0x80:
            return (value >> 1) ^ -(value & 1), position + index + 1
    raise NotSo("it ends within the message's indexes")
