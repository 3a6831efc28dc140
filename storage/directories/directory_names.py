"""Names of partition directories, as in Kafka, and the partitions that they denote."""

from __future__ import annotations

from sys import intern
from uuid import uuid4

from kafka_compat.storage.directories.checkpoints import TopicPartition

DELETE_SUFFIX = "-delete"
STRAY_SUFFIX = "-stray"
FUTURE_SUFFIX = "-future"
NAME_BYTES_MAX = 255
RETURNING = ".kafka-compat-restoring"
"""A file that is there while the logs return to a state of before: see `saved_states`."""


def directory_name(key: TopicPartition) -> str:
    """The directory of a log."""
    return f"{key[0]}-{key[1]}"


def unique_name(key: TopicPartition, ending: str) -> str:
    """A directory with a random part and an ending. Long topic names are cut so that it stays within the
    bytes that a file name may have, as Kafka does.
    """
    suffix = f".{uuid4().hex}{ending}"
    return directory_name(key)[: NAME_BYTES_MAX - len(suffix)] + suffix


def partition_of(name: str) -> TopicPartition | None:
    """The partition that a directory of this name holds, or holds a copy of; None for anything else, and
    where the name of a copy was cut.
    """
    if is_future(name):
        return parse_name(name.rpartition(".")[0]) if len(name) < NAME_BYTES_MAX else None
    return parse_name(name)


def is_future(name: str) -> bool:
    """Whether a directory of this name holds a copy that is to take a log's place."""
    return name.endswith(FUTURE_SUFFIX)


def parse_name(name: str) -> TopicPartition | None:
    """The partition whose log has this directory; None for anything else, which is left alone."""
    topic, separator, number = name.rpartition("-")
    if not separator or not topic or not number.isdecimal() or "." in number:
        return None
    # One text for all partitions of a topic, wherever it is asked from.
    return intern(topic), int(number)
