"""The output of kafka-dump-log for indexes and producer snapshots, and what differs from the segments.

Index files are not repaired: corruption is reported, and preallocated zeros at the end are skipped.
"""

import os
import struct
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from kafka_compat.storage.log.producer_state import ProducerState
from kafka_compat.storage.records.legacy import records_of
from kafka_compat.storage.segments.txn_index import decode as decode_aborted
from kafka_compat.tools.dumped_log import batches, optional
from kafka_compat.tools.failure import illegal_argument, java_int

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
