"""Batch headers of record format 2 (RecordBatch, KIP-98). Messages of formats 0 and 1 are read as batches.

    offset  bytes  field
         0      8  base offset             outside the CRC: an append stamps it in place
         8      4  batch length            of the bytes after this field
        12      4  partition leader epoch  outside the CRC: an append stamps it in place
        16      1  magic                   2; at the same place in formats 0 and 1
        17      4  CRC-32C                 of everything from `attributes` to the end
        21      2  attributes
        23      4  last offset delta
        27      8  base timestamp          ms
        35      8  max timestamp           ms
        43      8  producer ID
        51      2  producer epoch
        53      4  base sequence
        57      4  record count
        61         the records, compressed together if the attributes name a codec

Offsets, lengths and counts are big-endian and signed.

Messages of formats 0 and 1 have no batch header. A log directory written by an old Kafka may contain such
messages (see `legacy` for their layout). Each message is presented as a batch of one record without a leader
epoch or producer. The offset of a compressed message is the offset of its last record; the other offsets are
unknown until the message is decompressed.
"""

from __future__ import annotations

import struct
import zlib
from types import BuiltinFunctionType
from typing import Final

from librt.strings import BytesWriter, read_i16_be, read_i32_be, read_i64_be, write_i32_be, write_i64_be

from kafka_compat.storage.errors import CorruptRecord
from kafka_compat.storage.records.crc import crc32c
from kafka_compat.storage.records.kinds import CompressionType, TimestampType

Buffer = bytes | bytearray | memoryview

HEADER_SIZE: Final = 61
LEGACY_HEADER_SIZE: Final = 26
"""Minimum size in bytes of a format 0 or 1 message, and size of a format 1 message before its key length."""
LOG_OVERHEAD: Final = 12
"""Size in bytes of the base offset and the batch length, which the batch length excludes in all formats."""
MAGIC_POSITION: Final = 16
CRC_START: Final = 21
MAX_SEQUENCE: Final = 2**31 - 1

NO_TIMESTAMP: Final = -1
NO_PRODUCER_ID: Final = -1
NO_PRODUCER_EPOCH: Final = -1
NO_SEQUENCE: Final = -1

COMPRESSION_MASK: Final = 0x07
TIMESTAMP_TYPE_FLAG: Final = 0x08
TRANSACTIONAL_FLAG: Final = 0x10
CONTROL_FLAG: Final = 0x20
DELETE_HORIZON_FLAG: Final = 0x40

HEADER: Final = struct.Struct(">qiibIhiqqqhii")
FIELDS: Final = (
    "base_offset",
    "batch_length",
    "partition_leader_epoch",
    "magic",
    "crc",
    "attributes",
    "last_offset_delta",
    "base_timestamp",
    "max_timestamp",
    "producer_id",
    "producer_epoch",
    "base_sequence",
    "record_count",
)
_LEGACY_HEADER: Final = struct.Struct(">qiIbbq")
_stamp: Final = struct.Struct(">qii").pack_into
_START: Final = struct.Struct(">qiibI")
_CRC: Final = struct.Struct(">I")


class BatchHeader:
    """The fields of a batch header, in byte order. They are not modified."""

    __slots__ = FIELDS

    def __init__(
        self,
        base_offset: int,
        batch_length: int,
        partition_leader_epoch: int,
        magic: int,
        crc: int,
        attributes: int,
        last_offset_delta: int,
        base_timestamp: int,
        max_timestamp: int,
        producer_id: int,
        producer_epoch: int,
        base_sequence: int,
        record_count: int,
    ) -> None:
        self.base_offset = base_offset
        self.batch_length = batch_length
        self.partition_leader_epoch = partition_leader_epoch
        self.magic = magic
        self.crc = crc
        self.attributes = attributes
        self.last_offset_delta = last_offset_delta
        self.base_timestamp = base_timestamp
        self.max_timestamp = max_timestamp
        self.producer_id = producer_id
        self.producer_epoch = producer_epoch
        self.base_sequence = base_sequence
        self.record_count = record_count

    def fields(self) -> dict[str, int]:
        """Return the fields by name, in byte order."""
        return {name: getattr(self, name) for name in FIELDS}

    def replace(self, **changes: int) -> BatchHeader:
        """Return a copy of the header in which the given fields are replaced."""
        return BatchHeader(**(self.fields() | changes))

    def pack(self) -> bytes:
        return HEADER.pack(*self.fields().values())

    def __eq__(self, other: object) -> bool:
        return isinstance(other, BatchHeader) and self.fields() == other.fields()

    def __repr__(self) -> str:
        return f"BatchHeader({self.fields()})"

    @property
    def size_bytes(self) -> int:
        """Size of the whole batch in bytes, including the header."""
        return LOG_OVERHEAD + self.batch_length

    @property
    def last_offset(self) -> int:
        return self.base_offset + self.last_offset_delta

    @property
    def next_offset(self) -> int:
        return self.base_offset + self.last_offset_delta + 1

    @property
    def compression(self) -> CompressionType:
        """The compression codec. Raises ValueError for the undefined codes 5 to 7."""
        return CompressionType(self.attributes & COMPRESSION_MASK)

    @property
    def timestamp_type(self) -> TimestampType:
        return (
            TimestampType.LOG_APPEND_TIME
            if self.attributes & TIMESTAMP_TYPE_FLAG
            else TimestampType.CREATE_TIME
        )

    @property
    def is_transactional(self) -> bool:
        return self.attributes & TRANSACTIONAL_FLAG != 0

    @property
    def is_control(self) -> bool:
        return self.attributes & CONTROL_FLAG != 0

    @property
    def has_producer_id(self) -> bool:
        return self.producer_id > NO_PRODUCER_ID

    @property
    def delete_horizon_ms(self) -> int | None:
        """The time at which compaction may remove the tombstones (KIP-534), or None if it is not set."""
        return self.base_timestamp if self.attributes & DELETE_HORIZON_FLAG else None

    @property
    def last_sequence(self) -> int:
        """The sequence number of the last record, or -1 if there is none. It wraps to 0 after 2^31 - 1."""
        if self.base_sequence == NO_SEQUENCE:
            return NO_SEQUENCE
        return add_sequence(self.base_sequence, self.last_offset_delta)


def add_sequence(sequence: int, increment: int) -> int:
    """Return `sequence + increment` modulo 2^31, because sequence numbers wrap."""
    return (sequence + increment) & MAX_SEQUENCE


def read_header(buffer: Buffer, position: int = 0) -> BatchHeader:
    """Read the header of a batch of any format at `position`, without checking its values.

    Raises CorruptRecord if the header is incomplete.
    """
    size = len(buffer)
    if position + HEADER_SIZE <= size and buffer[position + MAGIC_POSITION] == 2:
        return unpack_header(buffer, position)
    if position + LEGACY_HEADER_SIZE <= size and buffer[position + MAGIC_POSITION] < 2:
        return _read_legacy_header(buffer, position)
    try:
        return unpack_header(buffer, position)
    except struct.error:
        raise CorruptRecord(f"{size - position} bytes cannot hold a batch header of {HEADER_SIZE}") from None


def unpack_header(buffer: Buffer, position: int) -> BatchHeader:
    """Read a header of format 2. Raises struct.error if it is incomplete."""
    if not IS_COMPILED:
        return BatchHeader(*HEADER.unpack_from(buffer, position))
    if isinstance(buffer, bytes):
        header = buffer
    else:
        header = bytes(buffer[position : position + HEADER_SIZE])
        position = 0
    if len(header) - position < HEADER_SIZE:
        raise struct.error("an incomplete batch header")
    return BatchHeader(
        int(read_i64_be(header, position)),
        int(read_i32_be(header, position + 8)),
        int(read_i32_be(header, position + 12)),
        (header[position + MAGIC_POSITION] ^ 0x80) - 0x80,
        int(read_i32_be(header, position + 17)) & 0xFFFFFFFF,
        int(read_i16_be(header, position + CRC_START)),
        int(read_i32_be(header, position + 23)),
        int(read_i64_be(header, position + 27)),
        int(read_i64_be(header, position + 35)),
        int(read_i64_be(header, position + 43)),
        int(read_i16_be(header, position + 51)),
        int(read_i32_be(header, position + 53)),
        int(read_i32_be(header, position + 57)),
    )


IS_COMPILED: Final = isinstance(unpack_header, BuiltinFunctionType)


def _read_legacy_header(buffer: Buffer, position: int) -> BatchHeader:
    offset, length, crc, magic, attributes, timestamp = _LEGACY_HEADER.unpack_from(buffer, position)
    if magic == 0:
        timestamp = NO_TIMESTAMP
    # Headers in formats 0 and 1 contain no leader epoch and no producer, and count as one record.
    producer = NO_PRODUCER_ID, NO_PRODUCER_EPOCH, NO_SEQUENCE
    return BatchHeader(offset, length, -1, magic, crc, attributes, 0, timestamp, timestamp, *producer, 1)


def read_headers(data: Buffer) -> list[BatchHeader]:
    """Read the headers of contiguous batches. Raises CorruptRecord if a batch is incomplete or too short."""
    headers = []
    position = 0
    while position < len(data):
        header = read_header(data, position)
        if header.batch_length < LEGACY_HEADER_SIZE - LOG_OVERHEAD:
            raise CorruptRecord(f"a batch cannot have {header.batch_length} bytes")
        headers.append(header)
        position += header.size_bytes
    if position != len(data):
        raise CorruptRecord(f"the last batch ends at {position} of {len(data)} bytes")
    return headers


def read_checked_headers(data: Buffer, next_offset: int) -> list[BatchHeader]:
    """Read the headers of batches that a follower fetched from its leader at the offset `next_offset`.

    Raises CorruptRecord if a batch is incomplete, a CRC is wrong, or an offset is lower than expected.
    """
    headers = read_headers(data)
    position = 0
    for header in headers:
        if not crc_ok(data, position, header):
            raise CorruptRecord(f"CRC mismatch in the batch of offset {header.base_offset} from the leader")
        if header.base_offset < next_offset:
            raise CorruptRecord(
                f"offset {header.base_offset} from the leader where {next_offset} or more was expected"
            )
        position += header.size_bytes
        next_offset = header.next_offset
    return headers


def stamp(
    buffer: bytearray | memoryview, position: int, base_offset: int, batch_length: int, leader_epoch: int
) -> None:
    """Write the fields that the CRC excludes to the batch at `position`."""
    _stamp(buffer, position, base_offset, batch_length, leader_epoch)


def stamped(header: BatchHeader, content: bytes, base_offset: int, leader_epoch: int) -> bytes:
    """Return a batch with this base offset and leader epoch, which the CRC excludes. `content` is what the
    CRC covers.
    """
    if not IS_COMPILED:
        return _START.pack(base_offset, header.batch_length, leader_epoch, header.magic, header.crc) + content
    start = BytesWriter()
    write_i64_be(start, base_offset)
    write_i32_be(start, header.batch_length)
    write_i32_be(start, leader_epoch)
    start.append(header.magic)
    write_i32_be(start, (header.crc ^ 0x80000000) - 0x80000000)  # the signed number with the same bits
    return start.getvalue() + content


def crc_ok(buffer: Buffer, position: int, header: BatchHeader) -> bool:
    """Whether the batch at `position` is complete and its CRC is correct."""
    end = position + LOG_OVERHEAD + header.batch_length
    if end > len(buffer):
        return False
    if header.magic < 2:
        smallest = LEGACY_HEADER_SIZE - LOG_OVERHEAD
        content = memoryview(buffer)[position + MAGIC_POSITION : end]
        return header.batch_length >= smallest and zlib.crc32(content) == header.crc
    if header.batch_length < HEADER_SIZE - LOG_OVERHEAD:
        return False
    return crc32c(memoryview(buffer)[position + CRC_START : end]) == header.crc


def seal(batch: bytearray | memoryview) -> None:
    """Compute the CRC of the batch in `batch`, and write it to the header."""
    _CRC.pack_into(batch, 17, crc32c(memoryview(batch)[CRC_START:]))
