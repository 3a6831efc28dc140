"""kafka-dump-log: print the contents of log files (org.apache.kafka.tools.DumpLogSegments)."""

import os
import struct
import sys
from collections.abc import Iterable, Iterator
from functools import cached_property

from kafka_compat.storage.errors import CorruptFile, StorageError
from kafka_compat.tools import internal_records
from kafka_compat.tools.dumped_indexes import (
    CorruptIndex,
    Mismatches,
    NoBatch,
    base_offset_of,
    offset_index,
    producer_snapshot,
    time_index,
    transaction_index,
)
from kafka_compat.tools.dumped_log import NO_LIMIT, BrokenSegment, DumpedLog, Shown
from kafka_compat.tools.failure import Failure, java_int
from kafka_compat.tools.options import Options

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
