"""Access to Apache Kafka's record classes, in a JVM that runs for the test session (RecordOracle.java)."""

from __future__ import annotations

import struct
import subprocess
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import NamedTuple, Self

from kafka_compat.storage.records.kinds import CompressionType, TimestampType
from kafka_compat.storage.records.records import Record
from tests.clients.programs import java_command

_SOURCE = Path(__file__).with_name("RecordOracle.java")


class Verdict(NamedTuple):
    """Kafka's error code for a batch (0 if it would be appended) and error message."""

    code: int
    text: str


class RecordOracle:
    """The record classes of Kafka `release`. A context manager that stops its JVM on exit."""

    def __init__(self, release: str = "3.9.1") -> None:
        self._jvm = subprocess.Popen(
            java_command("RecordOracle", release, (str(_SOURCE),)),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._jvm.stdin is not None
        assert self._jvm.stdout is not None
        self._jvm.stdin.close()
        self._jvm.wait(timeout=30)
        self._jvm.stdout.close()

    def _ask(self, operation: bytes, payload: bytes) -> bytes:
        assert self._jvm.stdin is not None
        assert self._jvm.stdout is not None
        self._jvm.stdin.write(operation + struct.pack(">i", len(payload)) + payload)
        self._jvm.stdin.flush()
        (length,) = struct.unpack(">i", self._jvm.stdout.read(4))
        answer = self._jvm.stdout.read(length)
        if answer[:1] == b"!":
            raise AssertionError(answer[1:].decode(errors="replace"))
        return answer

    def build(
        self,
        records: Sequence[Record],
        *,
        magic: int = 2,
        codec: CompressionType = CompressionType.NONE,
        timestamp_type: TimestampType = TimestampType.CREATE_TIME,
        base_offset: int = 0,
        append_time: int = -1,
        producer_id: int = -1,
        producer_epoch: int = -1,
        base_sequence: int = -1,
    ) -> bytes:
        """Serialize `records` with Kafka's MemoryRecordsBuilder."""
        head = struct.pack(
            ">bbbqqqhii",
            magic,
            codec,
            timestamp_type,
            base_offset,
            append_time,
            producer_id,
            producer_epoch,
            base_sequence,
            len(records),
        )
        return self._ask(b"B", head + b"".join(map(_pack_record, records)))

    def read(self, data: bytes) -> list[Record]:
        """Return all records that Kafka reads from batches of any format; Kafka checks the CRC of each
        batch.
        """
        return [_parse_line(line) for line in self._ask(b"L", data).decode().splitlines()]

    def down_convert(self, data: bytes, magic: int, first_offset: int = 0) -> bytes:
        return self._ask(b"D", struct.pack(">bq", magic, first_offset) + data)

    def rewrite_snapshot(self, snapshot: bytes) -> bytes:
        """Have Kafka read a producer snapshot, and return it as Kafka writes it. Raises AssertionError if
        Kafka cannot read it.
        """
        return self._ask(b"S", snapshot)

    def validate(
        self,
        data: bytes,
        *,
        produce_version: int = 9,
        compact: bool = False,
        timestamp_type: TimestampType = TimestampType.CREATE_TIME,
        before_max_ms: int = 2**63 - 1,
        after_max_ms: int = 2**63 - 1,
    ) -> Verdict:
        """Validate one partition's Produce data as a Kafka leader does."""
        head = struct.pack(">hbbqq", produce_version, compact, timestamp_type, before_max_ms, after_max_ms)
        code, _, text = self._ask(b"V", head + data).decode(errors="replace").partition(" ")
        return Verdict(int(code), text)


def _pack_record(record: Record) -> bytes:
    parts = [struct.pack(">q", record.timestamp), _pack_bytes(record.key), _pack_bytes(record.value)]
    parts.append(struct.pack(">i", len(record.headers)))
    for name, value in record.headers:
        parts += [_pack_bytes(name.encode()), _pack_bytes(value)]
    return b"".join(parts)


def _pack_bytes(content: bytes | None) -> bytes:
    return struct.pack(">i", -1) if content is None else struct.pack(">i", len(content)) + content


def _parse_line(line: str) -> Record:
    offset, timestamp, key, value, *headers = line.split(" ")
    pairs = [header.partition("=") for header in headers]
    return Record(
        int(offset),
        int(timestamp),
        _parse_bytes(key),
        _parse_bytes(value),
        [(name, _parse_bytes(content)) for name, _, content in pairs],
    )


def _parse_bytes(text: str) -> bytes | None:
    return None if text == "-" else bytes.fromhex(text[1:])
