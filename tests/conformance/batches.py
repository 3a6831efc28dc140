"""Records as producers send them, whole or broken in one chosen place."""

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
    """One batch of `count` records, a second apart."""
    numbered = [record(number) for number in range(start, start + count)]
    return build_batch(numbered, compression=compression, **more)  # type: ignore[arg-type]


def sealed(data: bytes | bytearray) -> bytes:
    """The batch with its CRC made right again."""
    found = bytearray(data)
    found[CRC_AT : CRC_AT + 4] = struct.pack(">I", crc32c.crc32c(bytes(found[ATTRIBUTES_AT:])))
    return bytes(found)


def changed(data: bytes, at: int, code: str, value: int, *, seal: bool = True) -> bytes:
    """The batch with one field replaced; its CRC fits unless `seal` is false."""
    found = bytearray(data)
    struct.pack_into(f">{code}", found, at, value)
    return sealed(found) if seal else bytes(found)


def old_message(
    magic: int, value: bytes | None, key: bytes | None = None, *, offset: int = 0, number: int = 0
) -> bytes:
    """One uncompressed message of format 0 or 1 (Produce 0-2), with its offset and size in front."""
    start = struct.pack(">bb", magic, 0)
    if magic == 1:
        start += struct.pack(">q", START_MS + number * 1000)
    for part in (key, value):
        start += struct.pack(">i", -1) if part is None else struct.pack(">i", len(part)) + part
    message = struct.pack(">I", zlib.crc32(start)) + start
    return struct.pack(">qi", offset, len(message)) + message
