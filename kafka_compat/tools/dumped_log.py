"""The output of kafka-dump-log for segments and metadata snapshots."""

import mmap
import os
import struct
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

from kafka_compat.storage.records import legacy
from kafka_compat.storage.records.batch import (
    LEGACY_HEADER_SIZE,
    LOG_OVERHEAD,
    MAGIC_POSITION,
    NO_SEQUENCE,
    BatchHeader,
    add_sequence,
    crc_ok,
    read_header,
)
from kafka_compat.storage.records.compression import decompress
from kafka_compat.storage.records.kinds import CompressionType, ControlRecordType, TimestampType
from kafka_compat.storage.records.records import Record, control_record_type, iter_records
from kafka_compat.tools.failure import illegal_argument
from kafka_compat.tools.internal_records import Decoder

_SIZE: Final = struct.Struct(">i")
_MARKER_VALUE: Final = struct.Struct(">hi")
_HEADER_SIZE_UP_TO_MAGIC: Final = MAGIC_POSITION + 1
_TIMESTAMP_TYPES: Final = {
    TimestampType.CREATE_TIME: "CreateTime",
    TimestampType.LOG_APPEND_TIME: "LogAppendTime",
}
_CODECS: Final = frozenset(CompressionType)
NO_LIMIT: Final = 2**31 - 1


class BrokenSegment(Exception):
    """Raised if a batch in a segment has an invalid size."""


@dataclass(slots=True)
class Shown:
    """Options that select what is printed. `decoder` is None if keys and values are not printed."""

    deep: bool = False
    decoder: Decoder | None = None
    record_metadata: bool = True
    bytes_max: int = NO_LIMIT


@dataclass(slots=True)
class DumpedLog:
    """The lines for one segment. After all lines have been read, `gaps` contains each gap in the offsets as
    (last offset before it, first offset after it). The offset before the first record is taken to be -1.
    """

    path: str
    shown: Shown
    gaps: list[tuple[int, int]] = field(default_factory=list)

    def lines(self) -> Iterator[str]:
        """Yield the lines. Raises OSError, BrokenSegment or a StorageError if the file is unreadable."""
        with open(self.path, "rb") as file:
            size_bytes = os.fstat(file.fileno()).st_size
            if size_bytes == 0:
                return
            with mmap.mmap(file.fileno(), size_bytes, access=mmap.ACCESS_READ) as content:
                yield from self._lines(content, min(size_bytes, self.shown.bytes_max))

    def _lines(self, content: mmap.mmap, end: int) -> Iterator[str]:
        last_offset = -1
        position = 0
        for position, header in batches(content, 0, end, self.path):
            batch = content[position : position + header.size_bytes]
            if header.attributes & 7 not in _CODECS:
                raise illegal_argument(f"Unknown compression type id: {header.attributes & 7}")
            yield _batch_line(batch, header, position)
            if self.shown.deep:
                for record, line in self._record_lines(batch, header):
                    if record.offset != last_offset + 1:
                        self.gaps.append((last_offset, record.offset))
                    last_offset = record.offset
                    yield line
            position += header.size_bytes
        if position < end and self.shown.bytes_max == NO_LIMIT:
            yield f"Found {end - position} invalid bytes at the end of {os.path.basename(self.path)}"

    def _record_lines(self, batch: bytes, header: BatchHeader) -> Iterator[tuple[Record, str]]:
        records = iter_records(batch) if header.magic > 1 else legacy.records_of(batch)
        crcs: Iterator[int] = iter(()) if header.magic > 1 else _message_crcs(batch, header)
        kind = timestamp_type(header)
        for record in records:
            parts: list[str] = []
            if self.shown.record_metadata:
                parts.append(
                    f"| offset: {record.offset} {kind}: {record.timestamp} keySize: {_size(record.key)} "
                    f"valueSize: {_size(record.value)}"
                )
                if header.magic > 1:
                    names = ",".join(name for name, _ in record.headers)
                    parts.append(f"sequence: {_sequence(header, record)} headerKeys: [{names}]")
                else:
                    parts.append(f"isValid: true crc: {next(crcs)}")
                if header.is_control:
                    parts.append(_control(record))
            if self.shown.decoder and not header.is_control:
                key, value = self.shown.decoder(record)
                if key is not None:
                    parts.append(f"key: {key}" if parts else f"| key: {key}")
                if value is not None:
                    parts.append(f"payload: {value}" if parts else f"| payload: {value}")
            yield record, " ".join(parts)


def batches(
    content: mmap.mmap | bytes, position: int, end: int, path: str
) -> Iterator[tuple[int, BatchHeader]]:
    """Yield (position, header) of each complete batch in the range. Raises BrokenSegment on invalid sizes."""
    while position + _HEADER_SIZE_UP_TO_MAGIC < end:
        (length,) = _SIZE.unpack_from(content, position + 8)
        if length < LEGACY_HEADER_SIZE - LOG_OVERHEAD - 8 - 4:
            raise BrokenSegment(f"Record size {length} is below the minimum (14) in file {path}.")
        if position + LOG_OVERHEAD + length > end:
            return
        yield position, read_header(content[position : position + LOG_OVERHEAD + min(length, 64)])
        position += LOG_OVERHEAD + length


def timestamp_type(header: BatchHeader) -> str:
    """Return the name of the batch's timestamp type, as in Kafka's command."""
    return "NoTimestampType" if header.magic == 0 else _TIMESTAMP_TYPES[header.timestamp_type]


def _batch_line(batch: bytes, header: BatchHeader, position: int) -> str:
    horizon = header.delete_horizon_ms
    start = (
        f"baseOffset: {header.base_offset} lastOffset: {header.last_offset} count: {header.record_count} "
        f"baseSequence: {header.base_sequence} lastSequence: {header.last_sequence} "
        f"producerId: {header.producer_id} producerEpoch: {header.producer_epoch} "
        f"partitionLeaderEpoch: {header.partition_leader_epoch} "
        f"isTransactional: {_boolean(header.is_transactional)} isControl: {_boolean(header.is_control)} "
        f"deleteHorizonMs: {optional(horizon)}"
        if header.magic > 1
        else f"offset: {header.last_offset}"
    )
    return (
        f"{start} position: {position} {timestamp_type(header)}: {header.max_timestamp} "
        f"size: {header.size_bytes} magic: {header.magic} compresscodec: {header.compression.name.lower()} "
        f"crc: {header.crc} isvalid: {_boolean(crc_ok(batch, 0, header))}"
    )


def optional(number: int | None) -> str:
    """Format an optional number like Java's OptionalLong."""
    return "OptionalLong.empty" if number is None else f"OptionalLong[{number}]"


def _boolean(value: bool) -> str:
    return "true" if value else "false"


def _size(content: bytes | None) -> int:
    return -1 if content is None else len(content)


def _sequence(header: BatchHeader, record: Record) -> int:
    if header.base_sequence < 0:
        return NO_SEQUENCE
    return add_sequence(header.base_sequence, record.offset - header.base_offset)


def _message_crcs(batch: bytes, header: BatchHeader) -> Iterator[int]:
    if not header.attributes & 7:
        yield header.crc
        return
    wrapper, _ = legacy.read_message(batch, 0)
    content = decompress(wrapper.codec, wrapper.value or b"", magic=wrapper.magic)
    position = 0
    while position < len(content):
        inner = read_header(content, position)
        yield inner.crc
        position += inner.size_bytes


def _control(record: Record) -> str:
    kind = control_record_type(record)
    if kind in (ControlRecordType.ABORT, ControlRecordType.COMMIT):
        _, coordinator_epoch = _MARKER_VALUE.unpack_from(record.value or b"\0" * _MARKER_VALUE.size)
        return f"endTxnMarker: {kind.name} coordinatorEpoch: {coordinator_epoch}"
    number = int.from_bytes((record.key or b"")[2:4], "big", signed=True)
    return f"controlType: {kind.name if kind is not None else 'UNKNOWN'}({number})"
