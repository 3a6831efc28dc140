"""kafka-dump-log: print the contents of log files (org.apache.kafka.tools.DumpLogSegments).

Index files are not repaired: corruption is reported, and preallocated zeros at the end are skipped.
"""

import mmap
import os
import struct
import sys
from bisect import bisect_right
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Final

from kafka_compat.storage.errors import CorruptFile, StorageError
from kafka_compat.storage.log.producer_state import ProducerState
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
from kafka_compat.storage.records.legacy import records_of
from kafka_compat.storage.records.records import Record, control_record_type, iter_records
from kafka_compat.storage.segments.txn_index import decode as decode_aborted
from kafka_compat.tools import internal_records
from kafka_compat.tools.failure import Failure, illegal_argument, java_int
from kafka_compat.tools.internal_records import Decoder
from kafka_compat.tools.options import Options

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


_OFFSET_ENTRY: Final = struct.Struct(">ii")
_TIME_ENTRY: Final = struct.Struct(">qi")
_NO_TIMESTAMP: Final = -1


class CorruptIndex(Exception):
    """Raised for an index that is so corrupt that a broker would rebuild it."""


class NoBatch(Exception):
    """Raised if there is no batch at the position in an index entry."""


@dataclass(slots=True)
class Mismatches:
    """Differences between indexes and segments. The keys are absolute paths of index files."""

    offsets: dict[str, list[tuple[int, int]]] = field(default_factory=dict)
    timestamps: dict[str, list[tuple[int, int]]] = field(default_factory=dict)
    order: dict[str, list[tuple[int, int]]] = field(default_factory=dict)
    missing: dict[str, list[tuple[int, int]]] = field(default_factory=dict)

    def lines(self) -> Iterator[str]:
        """Yield the differences as lines for stderr."""
        for path, pairs in self.offsets.items():
            yield f"Mismatches in :{path}"
            for indexed, found in reversed(pairs):
                yield f"  Index offset: {indexed}, log offset: {found}"
        for path, pairs in self.timestamps.items():
            yield f"Found timestamp mismatch in :{path}"
            for indexed, found in pairs:
                yield f"  Index timestamp: {indexed}, log timestamp: {found}"
        for path, pairs in self.order.items():
            yield f"Found out of order timestamp in :{path}"
            for indexed, before in pairs:
                yield f"  Index timestamp: {indexed}, Previously indexed timestamp: {before}"
        for path, pairs in self.missing.items():
            yield f"Offsets in the index but not in the log :{path}"
            for indexed, found in pairs:
                yield f"Indexed offset: {indexed}, found log offset: {found}"


def base_offset_of(path: str) -> int:
    """Return the base offset in a segment's file name. Raises Failure if the name contains none."""
    return java_int(os.path.basename(path).split(".")[0], 64)


def _check_position(position: int, log: bytes, path: str) -> None:
    if not 0 <= position <= len(log):
        raise illegal_argument(
            f"Position {position} in {os.path.abspath(path)} is outside the log of {len(log)} bytes"
        )


def _log_of(path: str) -> bytes:
    return Path(path).with_name(os.path.basename(path).split(".")[0] + ".log").read_bytes()


def _offset_entries(path: str) -> list[tuple[int, int]]:
    content = Path(path).read_bytes() if os.path.exists(path) else b""
    whole = len(content) - len(content) % _OFFSET_ENTRY.size
    return list(_OFFSET_ENTRY.iter_unpack(memoryview(content)[:whole]))


def offset_index(
    path: str, found: Mismatches, *, sanity_only: bool, verify_only: bool, message_bytes_max: int
) -> Iterator[str]:
    """Yield an offset index's lines. Add mismatches to `found`. May raise CorruptIndex if `sanity_only`."""
    base_offset = base_offset_of(path)
    log = _log_of(path)
    entries = _offset_entries(path)
    if not entries:
        yield f"{path} is empty."
        return
    if sanity_only:
        _check_offsets(path, entries, base_offset)
        yield f"{path} passed sanity check."
        return
    for number, (relative, position) in enumerate(entries):
        if relative == 0 and number:
            return
        _check_position(position, log, path)
        end = min(len(log), position + message_bytes_max)
        first = next((header for _, header in batches(log, position, end, path)), None)
        if first is None:
            raise NoBatch
        if first.last_offset != base_offset + relative:
            pairs = found.offsets.setdefault(os.path.abspath(path), [])
            pairs.append((base_offset + relative, first.last_offset))
        if not verify_only:
            yield f"offset: {base_offset + relative} position: {position}"


def _check_offsets(path: str, entries: list[tuple[int, int]], base_offset: int) -> None:
    size_bytes = os.path.getsize(path)
    last = base_offset + entries[-1][0]
    if last < base_offset:
        raise CorruptIndex(
            f"Index file {os.path.abspath(path)} is corrupt: its last offset {last} is below the base offset "
            f"{base_offset}"
        )
    if size_bytes % _OFFSET_ENTRY.size:
        raise CorruptIndex(
            f"Index file {os.path.abspath(path)} is corrupt: {size_bytes} bytes, expected a multiple of 8"
        )


def time_index(path: str, found: Mismatches, *, sanity_only: bool, verify_only: bool) -> Iterator[str]:
    """Yield a time index's lines. Add mismatches to `found`. May raise CorruptIndex if `sanity_only`."""
    base_offset = base_offset_of(path)
    log = _log_of(path)
    content = Path(path).read_bytes()
    whole = len(content) - len(content) % _TIME_ENTRY.size
    entries = list(_TIME_ENTRY.iter_unpack(memoryview(content)[:whole]))
    if sanity_only:
        _check_times(path, entries, base_offset, len(content))
        yield f"{path} passed sanity check."
        return
    positions = [entry for entry in _offset_entries(path.removesuffix(".timeindex") + ".index") if any(entry)]
    previous = _NO_TIMESTAMP
    name = os.path.abspath(path)
    for number, (timestamp, relative) in enumerate(entries):
        if relative == 0 and number:
            return
        offset = base_offset + relative
        at = bisect_right(positions, relative, key=lambda entry: entry[0])
        last_offset, max_timestamp = _batch_with(log, positions[at - 1][1] if at else 0, offset, path)
        if last_offset != offset:
            found.missing.setdefault(name, []).append((offset, last_offset))
        else:
            if max_timestamp != timestamp:
                found.timestamps.setdefault(name, []).append((timestamp, max_timestamp))
            if previous >= timestamp:
                found.order.setdefault(name, []).append((timestamp, previous))
        if not verify_only:
            yield f"timestamp: {timestamp} offset: {offset}"
        previous = timestamp


def _batch_with(log: bytes, position: int, offset: int, path: str) -> tuple[int, int]:
    """Return (last offset, largest timestamp) of the batch with `offset`, or (-1, -1) if there is none."""
    _check_position(position, log, path)
    for start, header in batches(log, position, len(log), path):
        if header.last_offset >= offset:
            batch = log[start : start + header.size_bytes]
            timestamps = (record.timestamp for record in records_of(batch))
            return header.last_offset, max(timestamps, default=_NO_TIMESTAMP)
    return -1, -1


def _check_times(path: str, entries: list[tuple[int, int]], base_offset: int, size_bytes: int) -> None:
    start = f"Time index file {os.path.abspath(path)} is corrupt: its last"
    if entries and entries[-1][0] < entries[0][0]:
        raise CorruptIndex(f"{start} timestamp {entries[-1][0]} is before the first, {entries[0][0]}")
    if entries and entries[-1][1] < 0:
        raise CorruptIndex(
            f"{start} offset {base_offset + entries[-1][1]} is below the base offset {base_offset}"
        )
    if size_bytes % _TIME_ENTRY.size:
        raise CorruptIndex(
            f"Time index file {os.path.abspath(path)} is corrupt: {size_bytes} bytes, "
            "expected a multiple of 12"
        )


def transaction_index(path: str) -> Iterator[str]:
    """Yield the lines of a transaction index, if the file exists. Raises CorruptFile if it is corrupt."""
    if not os.path.exists(path):
        return
    for entry in decode_aborted(Path(path).read_bytes()):
        yield (
            f"version: 0 producerId: {entry.producer_id} firstOffset: {entry.first_offset} "
            f"lastOffset: {entry.last_offset} lastStableOffset: {entry.last_stable_offset}"
        )


def producer_snapshot(path: str) -> Iterator[str]:
    """Yield the lines of a producer snapshot. Raises CorruptFile if the file is corrupt."""
    for entry in ProducerState.decode_snapshot(Path(path).read_bytes()).entries.values():
        first = entry.current_txn_first_offset
        line = (
            f"producerId: {entry.producer_id} producerEpoch: {entry.producer_epoch} "
            f"coordinatorEpoch: {entry.coordinator_epoch} "
            f"currentTxnFirstOffset: {optional(first if first >= 0 else None)} "
            f"lastTimestamp: {entry.last_timestamp}"
        )
        for batch in [*entry.batches][:1]:
            line += (
                f" firstSequence: {batch.first_sequence} lastSequence: {batch.last_sequence} "
                f"lastOffset: {batch.last_offset} offsetDelta: {batch.offset_delta} "
                f"timestamp: {batch.timestamp}"
            )
        yield line


_NOT_HERE = ("cluster-metadata-decoder", "remote-log-metadata-decoder")
_STRING_DECODERS = ("kafka.serializer.StringDecoder", "org.apache.kafka.tools.api.StringDecoder")
_MESSAGE_BYTES_MAX = 5 * 1024 * 1024
_LINES = 1000
"""Maximum number of lines that are printed with one call."""


def run(arguments: list[str]) -> int:
    """Run the command and return its exit code. Raises Failure if a flag or a file is invalid."""
    options = Options("dump-log", arguments)
    options.exit_for_help()
    options.require("files")
    dump = _Dump(options)
    for path in options.given("files").split(","):
        print(f"Dumping {path}")
        _print(dump.file(path))
    sys.stdout.flush()
    for line in dump.complaints():
        print(line, file=sys.stderr)
    return 0


class _Dump:
    def __init__(self, options: Options) -> None:
        self._sanity_only = options.has("index-sanity-check")
        self._verify_only = options.has("verify-index-only")
        self._message_bytes_max = options.integer("max-message-size") or _MESSAGE_BYTES_MAX
        self._options = options
        self._mismatches = Mismatches()
        self._gaps: dict[str, list[tuple[int, int]]] = {}

    def file(self, path: str) -> Iterator[str]:
        """Yield the lines for one file. Raises Failure if the file cannot be read or is corrupt."""
        try:
            yield from self._lines(path)
        except FileNotFoundError as error:
            raise Failure("java.nio.file.NoSuchFileException", str(error.filename)) from error
        except OSError as error:
            raise Failure("java.io.IOException", str(error)) from error
        except CorruptIndex as error:
            kind = "org.apache.kafka.storage.internals.log.CorruptIndexException"
            raise Failure(kind, str(error)) from error
        except NoBatch as error:
            raise Failure("java.util.NoSuchElementException", "") from error
        except (BrokenSegment, StorageError) as error:
            raise Failure("org.apache.kafka.common.errors.CorruptRecordException", str(error)) from error
        except (ValueError, LookupError, OverflowError, struct.error) as error:
            # Damaged records may contain anything.
            message = f"{path} is damaged: {error}"
            raise Failure("org.apache.kafka.common.errors.CorruptRecordException", message) from error
        except internal_records.MissingKey as error:
            raise Failure("java.lang.RuntimeException", str(error)) from error

    def _lines(self, path: str) -> Iterator[str]:
        name = os.path.basename(path)
        stem, dot, suffix = name.rpartition(".")
        match suffix if dot else "":
            case "log":
                log = DumpedLog(path, self._shown)
                yield f"Log starting offset: {base_offset_of(path)}"
                yield from self._log(log)
            case "checkpoint":
                log = DumpedLog(path, self._shown)
                if name == "bootstrap.checkpoint":
                    yield "KRaft bootstrap snapshot"
                else:
                    offset, _, epoch = stem.partition("-")
                    yield f"Snapshot end offset: {java_int(offset, 64)}, epoch: {java_int(epoch)}"
                yield from self._log(log)
            case "index":
                yield from offset_index(
                    path,
                    self._mismatches,
                    sanity_only=self._sanity_only,
                    verify_only=self._verify_only,
                    message_bytes_max=self._message_bytes_max,
                )
            case "timeindex":
                yield from time_index(
                    path, self._mismatches, sanity_only=self._sanity_only, verify_only=self._verify_only
                )
            case "snapshot":
                try:
                    yield from producer_snapshot(path)
                except CorruptFile as error:
                    print(error, file=sys.stderr)
            case "txnindex":
                yield from transaction_index(path)
            case _:
                print(f"Ignoring unknown file {path}", file=sys.stderr)

    @cached_property
    def _shown(self) -> Shown:
        """Options for segments. As in Kafka's command, they are checked when the first segment is dumped."""
        decoder = _decoder(self._options)
        return Shown(
            deep=decoder is not None or self._options.has("deep-iteration"),
            decoder=decoder,
            record_metadata=not self._options.has("skip-record-metadata"),
            bytes_max=self._options.integer("max-bytes") or NO_LIMIT,
        )

    def _log(self, log: DumpedLog) -> Iterator[str]:
        yield from log.lines()
        if log.gaps:
            self._gaps[os.path.abspath(log.path)] = log.gaps

    def complaints(self) -> Iterator[str]:
        """Yield the mismatches and gaps found in all files."""
        yield from self._mismatches.lines()
        for path, pairs in self._gaps.items():
            yield f"Non-consecutive offsets in {path}"
            for first, second in pairs:
                yield f"  {first} is followed by {second}"


def _decoder(options: Options) -> internal_records.Decoder | None:
    for name in _NOT_HERE:
        if options.has(name):
            raise Failure(
                "java.lang.UnsupportedOperationException", f"--{name} is not supported by this broker"
            )
    if options.has("offsets-decoder"):
        return internal_records.of_offsets
    if options.has("transaction-log-decoder"):
        return internal_records.of_transactions
    if options.has("share-group-state-decoder"):
        return internal_records.of_share_states
    for name in ("value-decoder-class", "key-decoder-class"):
        decoder = options.value(name)
        if decoder and decoder not in _STRING_DECODERS:
            cause = Failure("java.lang.ClassNotFoundException", decoder)
            raise Failure("java.lang.RuntimeException", "Failed to load decoder class", cause)
        if decoder == _STRING_DECODERS[0]:
            print(f"{decoder} is deprecated. Please use {_STRING_DECODERS[1]} instead")
    printed = any(
        options.has(name) for name in ("print-data-log", "value-decoder-class", "key-decoder-class")
    )
    return internal_records.text if printed else None


def _print(lines: Iterable[str]) -> None:
    """Print the lines in blocks. If `lines` raises an error, print the pending lines first."""
    waiting: list[str] = []
    try:
        for line in lines:
            waiting.append(line)
            if len(waiting) == _LINES:
                print("\n".join(waiting))
                waiting.clear()
    finally:
        if waiting:
            print("\n".join(waiting))
