"""The frame around each record of the metadata log, as in Kafka: the frame's version (1), the type and the
version of the record as unsigned varints, and then the payload.

Kafka's record types are below 100. Our own types begin at 1000, so that genuine nodes do not mistake them for
theirs. Records have null keys.
"""

from collections.abc import Iterator
from typing import Final

from kafka_compat.coordination.replicated_store.metadata_log import AppliedRecord
from kafka_compat.storage.errors import InvalidRecord
from kafka_compat.storage.records.batch import BatchHeader, Buffer
from kafka_compat.storage.records.records import iter_body, records_body

FRAME_VERSION: Final = 1
OWN_TYPES_START: Final = 1000
"""The lowest of our own record types."""
UNREADABLE: Final = -1
"""The type of a record whose frame has an unknown version or is incomplete."""
_VARINT_BYTES_MAX: Final = 5


def frame(record_type: int, version: int, payload: bytes) -> bytes:
    """Return the value of a record."""
    return b"".join((_varint(FRAME_VERSION), _varint(record_type), _varint(version), payload))


def unframe(value: bytes) -> tuple[int, int, bytes]:
    """Return the type, the version and the payload of a record. Raises InvalidRecord if the frame is
    incomplete or has an unknown version.
    """
    frame_version, position = _read_varint(value, 0)
    if frame_version != FRAME_VERSION:
        raise InvalidRecord(f"a metadata record has the unknown frame version {frame_version}")
    record_type, position = _read_varint(value, position)
    version, position = _read_varint(value, position)
    return record_type, version, value[position:]


def framed_records(header: BatchHeader, batch: Buffer) -> Iterator[AppliedRecord]:
    """Iterate over the records of a batch that is not a control batch. Records with invalid frames have the
    type UNREADABLE and their whole value, because only the receiver can decide to stop. Raises CorruptRecord
    or InvalidRecord if the batch is damaged.
    """
    for record in iter_body(header, records_body(batch, header)):
        value = record.value or b""
        try:
            record_type, version, payload = unframe(value)
        except InvalidRecord:
            record_type, version, payload = UNREADABLE, 0, value
        yield AppliedRecord(record.offset, record_type, version, payload)


def _varint(value: int) -> bytes:
    encoded = bytearray()
    while value > 127:
        encoded.append(value & 127 | 128)
        value >>= 7
    encoded.append(value)
    return bytes(encoded)


def _read_varint(data: bytes, position: int) -> tuple[int, int]:
    value = 0
    for index in range(_VARINT_BYTES_MAX):
        if position + index >= len(data):
            break
        byte = data[position + index]
        value |= (byte & 127) << 7 * index
        if byte < 128:
            return value, position + index + 1
    raise InvalidRecord("the frame of a metadata record is incomplete")
