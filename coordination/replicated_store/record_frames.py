"""The frame around each record of the metadata log, as in Kafka: the frame's version (1), the type and the
version of the record as unsigned varints, and the payload.

Kafka's record types are below 100. Our own types begin at 1000, so that genuine nodes do not mistake them for
theirs.
"""

from typing import Final

from kafka_compat.coordination.replicated_store.metadata_log import AppliedRecord

UNREADABLE: Final = -1
"""The type of a record whose frame is incomplete or has an unknown version."""

_FRAME_VERSION: Final = 1
_VARINT_BYTES_MAX: Final = 5


def frame(record_type: int, version: int, payload: bytes) -> bytes:
    """Return the value of a record in the log."""
    return b"".join((_varint(_FRAME_VERSION), _varint(record_type), _varint(version), payload))


def unframe(offset: int, value: bytes) -> AppliedRecord:
    """Split the value of a record. If its frame cannot be read, the record has the type UNREADABLE and the
    whole value, because only the store can decide to stop.
    """
    numbers = []
    position = 0
    for _ in range(3):
        number, position = _read_varint(value, position)
        numbers.append(number)
    frame_version, record_type, version = numbers
    if frame_version != _FRAME_VERSION or UNREADABLE in numbers:
        return AppliedRecord(offset, UNREADABLE, 0, value)
    return AppliedRecord(offset, record_type, version, value[position:])


def _varint(number: int) -> bytes:
    encoded = bytearray()
    while number > 127:
        encoded.append(number & 127 | 128)
        number >>= 7
    encoded.append(number)
    return bytes(encoded)


def _read_varint(data: bytes, start: int) -> tuple[int, int]:
    """Return a number and the position after it, or UNREADABLE if it is incomplete or too long."""
    number = 0
    for index, byte in enumerate(data[start : start + _VARINT_BYTES_MAX]):
        number |= (byte & 127) << 7 * index
        if byte < 128:
            return number, start + index + 1
    return UNREADABLE, len(data)
