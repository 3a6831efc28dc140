"""Encoding and decoding of the records in a batch of format 2 (KIP-98).

    length varint | attributes 1 byte | timestamp delta varlong | offset delta varint
    | key length varint, key | value length varint, value | header count varint
    | per header: key length varint, key, value length varint, value

Varints are zigzag-encoded. A length of -1 means null. `length` is the number of bytes after itself.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from typing import Final, NamedTuple

from kafka_compat.storage.errors import CorruptRecord, InvalidRecord
from kafka_compat.storage.records.batch import (
    CONTROL_FLAG,
    HEADER_SIZE,
    LOG_OVERHEAD,
    NO_PRODUCER_EPOCH,
    NO_PRODUCER_ID,
    NO_SEQUENCE,
    NO_TIMESTAMP,
    TIMESTAMP_TYPE_FLAG,
    TRANSACTIONAL_FLAG,
    BatchHeader,
    Buffer,
    read_header,
    seal,
)
from kafka_compat.storage.records.compression import compress, decompress
from kafka_compat.storage.records.kinds import CompressionType, ControlRecordType, TimestampType

Header = tuple[str, bytes | None]

_LENGTH: Final = struct.Struct(">i")
_LENGTH_POSITION: Final = 8


class Record(NamedTuple):
    """One record. The timestamp is in ms since 1970, or -1 if there is none. The offset is absolute."""

    offset: int = 0
    timestamp: int = NO_TIMESTAMP
    key: bytes | None = None
    value: bytes | None = None
    headers: Sequence[Header] = ()


@lru_cache(maxsize=1024)
def encode_varint(value: int) -> bytes:
    """Encode a signed number of up to 64 bits as a zigzag varint."""
    rest = (value << 1) ^ (value >> 63)
    if rest < 128:
        return bytes((rest,))
    encoded = bytearray()
    while rest > 127:
        encoded.append(rest & 127 | 128)
        rest >>= 7
    encoded.append(rest)
    return bytes(encoded)


def read_varint(data: Buffer, position: int) -> tuple[int, int]:
    """Decode the 32-bit varint at `position`, and return (value, next position).

    Raises InvalidRecord if the varint is incomplete or too long.
    """
    size = len(data)
    if position < size and (byte := data[position]) < 128:
        return (byte >> 1) ^ -(byte & 1), position + 1
    if position + 1 < size and (second := data[position + 1]) < 128:
        return (byte & 127 | second << 7) >> 1 ^ -(byte & 1), position + 2
    value, position = _read_unsigned(data, position, 28)
    value &= 0xFFFF_FFFF
    return (value >> 1) ^ -(value & 1), position


def read_varlong(data: Buffer, position: int) -> tuple[int, int]:
    """Decode a 64-bit varint. The arguments, result and errors are the same as for `read_varint`."""
    if position < len(data) and (byte := data[position]) < 128:
        return (byte >> 1) ^ -(byte & 1), position + 1
    value, position = _read_unsigned(data, position, 63)
    value &= 0xFFFF_FFFF_FFFF_FFFF
    return (value >> 1) ^ -(value & 1), position


def _read_unsigned(data: Buffer, position: int, last_shift: int) -> tuple[int, int]:
    value = 0
    end = len(data)
    for shift in range(0, last_shift + 1, 7):
        if position >= end:
            raise InvalidRecord("a record ends inside a number")
        byte = data[position]
        position += 1
        if byte < 128:
            return value | byte << shift, position
        value |= (byte & 127) << shift
    raise InvalidRecord("a number in a record has too many bytes")


def encode_record(
    offset_delta: int,
    timestamp_delta: int,
    key: bytes | None,
    value: bytes | None,
    headers: Sequence[Header] = (),
) -> bytes:
    """Encode one record with its length prefix."""
    parts = [b"\0", encode_varint(timestamp_delta), encode_varint(offset_delta)]
    _put_bytes(parts, key)
    _put_bytes(parts, value)
    parts.append(encode_varint(len(headers)))
    for name, content in headers:
        _put_bytes(parts, name.encode())
        _put_bytes(parts, content)
    body = b"".join(parts)
    return encode_varint(len(body)) + body


def _put_bytes(parts: list[bytes], content: bytes | None) -> None:
    if content is None:
        parts.append(b"\1")
    else:
        parts.append(encode_varint(len(content)))
        parts.append(content)


def build_batch(
    records: Iterable[Record],
    *,
    base_offset: int = 0,
    compression: CompressionType = CompressionType.NONE,
    producer_id: int = NO_PRODUCER_ID,
    producer_epoch: int = NO_PRODUCER_EPOCH,
    base_sequence: int = NO_SEQUENCE,
    transactional: bool = False,
    control: bool = False,
    timestamp_type: TimestampType = TimestampType.CREATE_TIME,
    leader_epoch: int = -1,
    level: int | None = None,
) -> bytes:
    """Build a batch of `records` at the offsets `base_offset`, `base_offset + 1` and so on.

    `level` is the compression level, or None for the codec's default. Raises ValueError if there are no
    records.
    """
    records = list(records)
    if not records:
        raise ValueError("a batch contains at least one record")
    base_timestamp = records[0].timestamp
    body = b"".join(
        encode_record(delta, record.timestamp - base_timestamp, record.key, record.value, record.headers)
        for delta, record in enumerate(records)
    )
    attributes = int(compression)
    if timestamp_type is TimestampType.LOG_APPEND_TIME:
        attributes |= TIMESTAMP_TYPE_FLAG
    if transactional:
        attributes |= TRANSACTIONAL_FLAG
    if control:
        attributes |= CONTROL_FLAG
    count = len(records)
    max_timestamp = base_timestamp if count == 1 else max(record.timestamp for record in records)
    # `join_batch` sets the length and the CRC.
    offsets = base_offset, 0, leader_epoch, 2, 0, attributes, count - 1
    producer = producer_id, producer_epoch, base_sequence
    header = BatchHeader(*offsets, base_timestamp, max_timestamp, *producer, count)
    return join_batch(header, body, level=level)


def join_batch(header: BatchHeader, body: bytes, *, level: int | None = None) -> bytes:
    """Build a batch from `header` and the uncompressed records in `body`, and compute its length and CRC."""
    if header.attributes & 7:
        body = compress(header.compression, body, level=level)
    batch = bytearray(header.pack())
    batch += body
    _LENGTH.pack_into(batch, _LENGTH_POSITION, len(batch) - LOG_OVERHEAD)
    seal(batch)
    return bytes(batch)


def records_body(batch: Buffer, header: BatchHeader) -> bytes:
    """Return the uncompressed records of the batch at the start of `batch`.

    Raises CorruptRecord if the batch is incomplete or its compressed data is broken, and MessageTooLarge if
    the decompressed size exceeds the limit (see `compression`).
    """
    if header.batch_length < HEADER_SIZE - LOG_OVERHEAD or header.size_bytes > len(batch):
        raise CorruptRecord(f"a batch of {header.size_bytes} bytes does not fit into {len(batch)}")
    body = memoryview(batch)[HEADER_SIZE : header.size_bytes]
    if header.attributes & 7:
        return decompress(header.attributes & 7, body)
    return bytes(body)


def iter_records(batch: Buffer) -> Iterator[Record]:
    """Iterate over the records of the batch of format 2 at the start of `batch`, including control records.

    Raises CorruptRecord if `batch` is not a batch, and InvalidRecord if the structure of its records is
    invalid. The CRC is not checked.
    """
    header = read_header(batch)
    if header.magic != 2:
        raise CorruptRecord(f"magic {header.magic} is not record format 2")
    return iter_body(header, records_body(batch, header))


def iter_body(header: BatchHeader, body: bytes) -> Iterator[Record]:
    """Iterate over the records of a batch, given its header and its uncompressed body."""
    append_time = header.max_timestamp if header.attributes & TIMESTAMP_TYPE_FLAG else None
    base_offset, base_timestamp = header.base_offset, header.base_timestamp
    position = 0
    for _ in range(header.record_count):
        length, position = read_varint(body, position)
        end = position + length
        if length < 0 or end > len(body):
            raise InvalidRecord(f"a record of {length} bytes does not fit into its batch")
        timestamp_delta, position = read_varlong(body, position + 1)
        offset_delta, position = read_varint(body, position)
        key, position = _read_bytes(body, position)
        value, position = _read_bytes(body, position)
        header_count, position = read_varint(body, position)
        headers: list[Header] = []
        if header_count < 0 or header_count > end - position:
            raise InvalidRecord(f"a record cannot have {header_count} headers")
        for _ in range(header_count):
            name, position = _read_bytes(body, position)
            if name is None:
                raise InvalidRecord("a record header has no name")
            content, position = _read_bytes(body, position)
            headers.append((name.decode(errors="replace"), content))
        if position != end:
            raise InvalidRecord("the length of a record does not match its content")
        timestamp = base_timestamp + timestamp_delta if append_time is None else append_time
        yield Record(base_offset + offset_delta, timestamp, key, value, headers)
    if position != len(body):
        raise InvalidRecord("a batch has bytes after its last record")


def _read_bytes(data: bytes, position: int) -> tuple[bytes | None, int]:
    length, position = read_varint(data, position)
    if length < 0:
        return None, position
    end = position + length
    if end > len(data):
        raise InvalidRecord(f"a field of {length} bytes does not fit into its batch")
    return data[position:end], end


class EndTransactionMarker(NamedTuple):
    """The type and coordinator epoch in the control batch that ends a transaction."""

    type: ControlRecordType
    coordinator_epoch: int


_CONTROL_KEY: Final = struct.Struct(">hh")
_MARKER_VALUE: Final = struct.Struct(">hi")


def build_marker(
    marker: EndTransactionMarker,
    *,
    producer_id: int,
    producer_epoch: int,
    timestamp: int,
    base_offset: int = 0,
    leader_epoch: int = -1,
) -> bytes:
    """Build the control batch that aborts or commits a producer's transaction in one partition (KIP-98)."""
    record = Record(
        timestamp=timestamp,
        key=_CONTROL_KEY.pack(0, marker.type),
        value=_MARKER_VALUE.pack(0, marker.coordinator_epoch),
    )
    return build_batch(
        [record],
        base_offset=base_offset,
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        transactional=True,
        control=True,
        leader_epoch=leader_epoch,
    )


def control_record_type(record: Record) -> ControlRecordType | None:
    """Return the type of a control record, or None for an unknown type, which readers must skip.

    Raises InvalidRecord if the key is too short.
    """
    if record.key is None or len(record.key) < _CONTROL_KEY.size:
        raise InvalidRecord("a control record has no key of four bytes")
    _, number = _CONTROL_KEY.unpack_from(record.key)
    return ControlRecordType(number) if 0 <= number <= ControlRecordType.KRAFT_VOTERS else None


def read_marker(batch: Buffer) -> EndTransactionMarker | None:
    """Return the transaction marker in a control batch, or None if its record has a different type."""
    for record in iter_records(batch):
        kind = control_record_type(record)
        if kind is not ControlRecordType.ABORT and kind is not ControlRecordType.COMMIT:
            return None
        if record.value is None or len(record.value) < _MARKER_VALUE.size:
            raise InvalidRecord("a transaction marker has no coordinator epoch")
        _, coordinator_epoch = _MARKER_VALUE.unpack_from(record.value)
        return EndTransactionMarker(kind, coordinator_epoch)
    return None
