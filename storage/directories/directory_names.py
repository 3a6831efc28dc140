"""Creation and parsing of the names of partition directories, as in Kafka."""

from __future__ import annotations

from sys import intern
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from kafka_compat.storage.directories.checkpoints import TopicPartition

DELETE_SUFFIX = "-delete"
METADATA_LOG = "__cluster_metadata-0"
"""Name of the directory of a KRaft node's metadata log, which is not a partition of this broker."""
STRAY_SUFFIX = "-stray"
FUTURE_SUFFIX = "-future"
NAME_BYTES_MAX = 255
METADATA_LOG = "__cluster_metadata-0"
"""The directory of a quorum's metadata log, which belongs to no topic."""
RETURNING = ".kafka-compat-restoring"
"""Marker file that exists while the logs are being restored to a saved state (see `saved_states`)."""


def directory_name(key: TopicPartition) -> str:
    """Return the name of a log's partition directory."""
    return f"{key[0]}-{key[1]}"


def unique_name(key: TopicPartition, ending: str) -> str:
    """Return a directory name for a partition, with a random ID and the suffix `ending`. As in Kafka, a long
    topic name is truncated, so that the result does not exceed the maximum length of a file name.
    """
    from uuid import uuid4

    suffix = f".{uuid4().hex}{ending}"
    return directory_name(key)[: NAME_BYTES_MAX - len(suffix)] + suffix


def partition_of(name: str) -> TopicPartition | None:
    """Return the partition whose log or future copy is in a directory with this name. Return None for other
    directories, and if the name of a future copy was truncated.
    """
    if name == METADATA_LOG:
        return None
    if is_future(name):
        return parse_name(name.rpartition(".")[0]) if len(name) < NAME_BYTES_MAX else None
    return parse_name(name)


def is_future(name: str) -> bool:
    """Whether a directory with this name contains a copy that will replace a log."""
    return name.endswith(FUTURE_SUFFIX)


def parse_name(name: str) -> TopicPartition | None:
    """Return the partition whose log is in a directory named `name`, or None for any other name."""
    topic, separator, number = name.rpartition("-")
    if not separator or not topic or not number.isdecimal() or "." in number:
        return None
    # Intern the name, so that all partitions of a topic share one string.
    return intern(topic), int(number)
