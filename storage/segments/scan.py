"""Iteration over the batches of a segment file, either by headers only or, for recovery, with all checks."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol

from librt.strings import read_i32_be, read_i64_be

from kafka_compat.storage.errors import CorruptRecord
from kafka_compat.storage.records.batch import (
    CRC_START,
    HEADER_SIZE,
    LEGACY_HEADER_SIZE,
    LOG_OVERHEAD,
    MAGIC_POSITION,
    BatchHeader,
    crc_ok,
    read_header,
)
from kafka_compat.storage.records.crc import crc32c

if TYPE_CHECKING:
    from mypy_extensions import i64

    from kafka_compat.storage.filesystem import File

CHUNK_SIZE_BYTES: Final = 1024 * 1024


class ScannedBatch(NamedTuple):
    """A batch and its position in the file."""

    position: int
    header: BatchHeader
    data: "memoryview"  # noqa: UP037 - mypyc looks the name up among those of the module
    """The whole batch from `scan_batches`, but only its first bytes from `scan_headers`."""


def scan_headers(
    file: File, position: int, end: int, chunk_size_bytes: int = CHUNK_SIZE_BYTES
) -> Iterator[ScannedBatch]:
    """Iterate over the headers of the whole batches in [position, end). Stop silently at invalid bytes."""
    while position < end:
        chunk = file.pread(min(max(chunk_size_bytes, HEADER_SIZE), end - position), position)
        view = memoryview(chunk)
        start, at = position, 0
        while at + LEGACY_HEADER_SIZE <= len(chunk):
            try:
                header = read_header(view, at)
            except CorruptRecord:
                # The remainder of the header is in the next chunk.
                break
            if header.batch_length < LEGACY_HEADER_SIZE - LOG_OVERHEAD or not 0 <= header.magic <= 2:
                return
            if position + header.size_bytes > end:
                return
            yield ScannedBatch(position, header, view[at : at + header.size_bytes])
            at += header.size_bytes
            position = start + at
        if position == start:
            return


def position_of_offset(file: File, position: int, end: int, offset: int, chunk_size_bytes: int) -> int:
    """Return the position of the first batch in [position, end) that ends at or after `offset`, or `end`."""
    # Every fetch of older records calls this, so recent batches are examined without creating objects.
    chunk = file.pread(min(max(chunk_size_bytes, HEADER_SIZE), end - position), position)
    at: i64 = 0
    size: i64 = len(chunk)
    while at + HEADER_SIZE <= size and chunk[at + MAGIC_POSITION] == 2:
        batch_length: i64 = int(read_i32_be(chunk, at + 8))
        if batch_length < HEADER_SIZE - LOG_OVERHEAD or position + at + LOG_OVERHEAD + batch_length > end:
            return end
        last_offset: i64 = read_i64_be(chunk, at) + int(read_i32_be(chunk, at + 23))
        if last_offset >= offset:
            return position + at
        at += LOG_OVERHEAD + batch_length
    for batch in scan_headers(file, position + at, end, chunk_size_bytes):
        if batch.header.last_offset >= offset:
            return batch.position
    return end


class Readable(Protocol):
    """Interface of a file that can be scanned."""

    def pread(self, size_bytes: int, position: int) -> bytes:
        """Read `size_bytes` starting at `position`. Fewer bytes are returned only at the end of the file."""


def scan_batches(file: Readable, position: int, end: int, next_offset: int = 0) -> Iterator[ScannedBatch]:
    """Iterate over the intact batches in [position, end), with their bytes.

    Raises CorruptRecord at the first batch that is torn, has a wrong CRC, or begins before the end of the
    previous batch (or before `next_offset`). The batches before it are the valid prefix of the file.
    """
    while position < end:
        chunk = memoryview(file.pread(min(CHUNK_SIZE_BYTES, end - position), position))
        at, size = 0, len(chunk)
        while at + LEGACY_HEADER_SIZE <= size:
            try:
                header = read_header(chunk, at)
            except CorruptRecord:
                break
            stop = at + LOG_OVERHEAD + header.batch_length
            if stop > size:
                break
            # Inline `_check_intact`, because calling it for every batch slows down scans of small batches.
            if (
                header.magic != 2
                or stop < at + HEADER_SIZE
                or header.base_offset < next_offset
                or crc32c(chunk[at + CRC_START : stop]) != header.crc
                or header.last_offset_delta < 0
            ):
                _check_intact(chunk, at, header, next_offset)
            next_offset = header.base_offset + header.last_offset_delta + 1
            yield ScannedBatch(position + at, header, chunk[at:stop])
            at = stop
        if at == 0:
            # The batch is larger than the chunk, or its length is invalid.
            try:
                header = read_header(chunk)
            except CorruptRecord:
                raise CorruptRecord(f"the batch at {position} is incomplete") from None
            if header.size_bytes > end - position:
                raise CorruptRecord(f"the batch at {position} is incomplete")
            chunk = memoryview(file.pread(header.size_bytes, position))
            if len(chunk) < header.size_bytes:
                raise CorruptRecord(f"the batch at {position} is incomplete")
            _check_intact(chunk, 0, header, next_offset)
            next_offset = header.next_offset
            yield ScannedBatch(position, header, chunk)
            at = header.size_bytes
        position += at


def _check_intact(buffer: memoryview, position: int, header: BatchHeader, next_offset: int) -> None:
    if header.batch_length < LEGACY_HEADER_SIZE - LOG_OVERHEAD or not 0 <= header.magic <= 2:
        raise CorruptRecord(f"unknown batch format: length {header.batch_length}, magic {header.magic}")
    if not crc_ok(buffer, position, header):
        raise CorruptRecord(f"CRC mismatch in the batch of offset {header.base_offset}")
    if header.last_offset_delta < 0:
        raise CorruptRecord(f"negative last offset delta in the batch of offset {header.base_offset}")
    if header.base_offset < next_offset:
        raise CorruptRecord(f"offset {header.base_offset} where {next_offset} or more was expected")
