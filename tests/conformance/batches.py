"""Record batches as producers send them, valid or with one chosen field corrupted."""

from __future__ import annotations

import struct
import time
import zlib

import crc32c

from kafka_compat.storage.records.kinds import CompressionType
from kafka_compat.storage.records.records import Record, build_batch

START_MS = int(time.time()) * 1000 - 3_600_000

MAGIC_AT, CRC_AT, ATTRIBUTES_AT, LAST_OFFSET_DELTA_AT, BASE_SEQUENCE_AT, COUNT_AT = 16, 17, 21, 23, 53, 57
RECORDS_AT = 61


def record(number: int, value: bytes | None = None, key: bytes | None = b"key") -> Record:
    content = b"value-%d" % number if value is None else value
    return Record(offset=0, timestamp=START_MS + number * 1000, key=key, value=content, headers=())


def batch(
    count: int = 3, *, start: int = 0, compression: CompressionType = CompressionType.NONE, **more: object
) -> bytes:
    """Return one batch of `count` records whose timestamps are one second apart."""
    numbered = [record(number) for number in range(start, start + count)]
    return build_batch(numbered, compression=compression, **more)  # type: ignore[arg-type]


def sealed(data: bytes | bytearray) -> bytes:
    """Return the batch with its CRC recalculated."""
    found = bytearray(data)
    found[CRC_AT : CRC_AT + 4] = struct.pack(">I", crc32c.crc32c(bytes(found[ATTRIBUTES_AT:])))
    return bytes(found)


def changed(data: bytes, at: int, code: str, value: int, *, seal: bool = True) -> bytes:
    """Return the batch with one field replaced. The CRC is recalculated unless `seal` is false."""
    found = bytearray(data)
    struct.pack_into(f">{code}", found, at, value)
    return sealed(found) if seal else bytes(found)


def old_message(
    magic: int, value: bytes | None, key: bytes | None = None, *, offset: int = 0, number: int = 0
) -> bytes:
    """Return one uncompressed message in format 0 or 1 (Produce versions 0 to 2), preceded by its offset and
    size.
    """
    start = struct.pack(">bb", magic, 0)
    if magic == 1:
        start += struct.pack(">q", START_MS + number * 1000)
    for part in (key, value):
        start += struct.pack(">i", -1) if part is None else struct.pack(">i", len(part)) + part
    message = struct.pack(">I", zlib.crc32(start)) + start
    return struct.pack(">qi", offset, len(message)) + message
