"""Log summaries: the state of all logs at a clean shutdown, in one file per log directory.

With summaries, startup need not read each partition directory, which saves minutes with 100,000 partitions.

A summary is valid as long as the sizes and modification times of the partition directory and of the newest
log file are unchanged since the shutdown. Adding, removing or renaming a file changes the directory;
appending or truncating changes the file. If a summary is outdated, because the broker was killed later or
Apache Kafka used the directory, the log is opened file by file. After a machine crash, summaries are used
only if the shutdown was clean.

Log starts, recovery points and clean offsets are stored in Kafka's checkpoint files, not in summaries.
"""

import zlib
from collections.abc import Iterable
from functools import lru_cache
from sys import intern
from typing import TYPE_CHECKING, NamedTuple

from kafka_compat.storage.directories.checkpoints import TopicPartition
from kafka_compat.storage.errors import CorruptFile
from kafka_compat.storage.log.leader_epochs import EpochEntry

if TYPE_CHECKING:
    from uuid import UUID

    from kafka_compat.storage.log.log import Log

LOG_SUMMARIES = "kafka-compat-log-summaries"
_VERSION = "1"
_NONE = "-"


class LogSummary(NamedTuple):
    """The state of one log when it was closed."""

    directory_changed_ns: int
    log_changed_ns: int
    """Modification time of the newest log file."""
    end_offset: int
    has_producers: bool
    """Whether the producer snapshot at the log end contains any producers."""
    topic_id: "UUID | None"
    epochs: tuple[EpochEntry, ...]
    segments: tuple[tuple[int, int], ...]
    """Base offset and size in bytes of each segment (at least one), oldest first."""


def summarize(log: "Log") -> LogSummary:
    """Return the summary of a closed log. Raises OSError."""
    directory_changed_ns, log_changed_ns = log.files.stamps(log.segments.active)
    end_offset = log.log_end_offset
    return LogSummary(
        directory_changed_ns,
        log_changed_ns,
        end_offset,
        bool(log.producers.entries),
        log.topic_id,
        tuple([entry for entry in log.leader_epochs.entries if entry.start_offset < end_offset]),
        tuple([(segment.base_offset, segment.size_bytes) for segment in log.segments.all]),
    )


def encode_line(key: TopicPartition, summary: LogSummary) -> str:
    """Encode the summary of one log as a line."""
    topic_id = summary.topic_id.hex if summary.topic_id is not None else _NONE
    return (
        f"{key[0]} {key[1]} {summary.directory_changed_ns} {summary.log_changed_ns} {summary.end_offset} "
        f"{int(summary.has_producers)} {topic_id} {_pairs(summary.epochs)} {_pairs(summary.segments)}\n"
    )


def encode(lines: Iterable[str]) -> bytes:
    """Encode a summary file: its version and checksum, then `lines`."""
    content = "".join(lines).encode()
    return f"{_VERSION} {zlib.crc32(content)}\n".encode() + content


def read_lines(content: bytes) -> dict[TopicPartition, str]:
    """Return the encoded summaries in a file. Raises CorruptFile if its version or checksum is wrong."""
    head, _, rest = content.partition(b"\n")
    if head != f"{_VERSION} {zlib.crc32(rest)}".encode():
        raise CorruptFile("it is damaged or from another version")
    found: dict[TopicPartition, str] = {}
    for line in rest.decode().splitlines():
        topic, partition, summary = line.split(" ", 2)
        found[intern(topic), int(partition)] = summary
    return found


def decode(line: str) -> LogSummary:
    """Decode one summary returned by `read_lines`."""
    directory_ns, log_ns, end_offset, has_producers, topic_id, epochs, segments = line.split(" ")
    return LogSummary(
        int(directory_ns),
        int(log_ns),
        int(end_offset),
        has_producers == "1",
        _topic_id(topic_id),
        _epochs(epochs),
        _segments(segments),
    )


# Cache these objects: most logs have the same values, and can share them.


@lru_cache(256)
def _topic_id(text: str) -> "UUID | None":
    from uuid import UUID

    return None if text == _NONE else UUID(hex=text)


@lru_cache(256)
def _epochs(text: str) -> tuple[EpochEntry, ...]:
    return tuple([EpochEntry(*pair) for pair in _split(text)])


@lru_cache(256)
def _segments(text: str) -> tuple[tuple[int, int], ...]:
    return tuple(_split(text))


def _pairs(pairs: Iterable[tuple[int, int]]) -> str:
    return ",".join([f"{first}:{second}" for first, second in pairs]) or _NONE


def _split(text: str) -> list[tuple[int, int]]:
    if text == _NONE:
        return []
    pairs = []
    for pair in text.split(","):
        first, second = pair.split(":")
        pairs.append((int(first), int(second)))
    return pairs
