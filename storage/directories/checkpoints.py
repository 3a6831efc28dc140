"""Formats of Kafka's small text files: offset checkpoints, meta.properties, partition.metadata and the
clean-shutdown marker.

Callers replace each file atomically. This module only encodes and decodes the content.
"""

from __future__ import annotations

import base64
import json
import time
from collections.abc import Collection, Mapping
from sys import intern
from typing import TYPE_CHECKING

from kafka_compat.storage.errors import CorruptFile

if TYPE_CHECKING:
    from uuid import UUID

TopicPartition = tuple[str, int]

RECOVERY_POINTS = "recovery-point-offset-checkpoint"
LOG_START_OFFSETS = "log-start-offset-checkpoint"
HIGH_WATERMARKS = "replication-offset-checkpoint"
CLEANER_OFFSETS = "cleaner-offset-checkpoint"
OFFSETS = (RECOVERY_POINTS, LOG_START_OFFSETS, HIGH_WATERMARKS, CLEANER_OFFSETS)
META_PROPERTIES = "meta.properties"
PARTITION_METADATA = "partition.metadata"
CLEAN_SHUTDOWN = ".kafka_cleanshutdown"
LOCK = ".lock"


def encode_offsets(offsets: Mapping[TopicPartition, int]) -> bytes:
    """Encode an offset checkpoint: version 0, the number of entries, then `topic partition offset` lines."""
    return join_lines([encode_line(key, offset) for key, offset in offsets.items()])


def encode_line(key: TopicPartition, offset: int) -> bytes:
    """Encode one entry of an offset checkpoint."""
    return f"{key[0]} {key[1]} {offset}\n".encode()


def join_lines(lines: Collection[bytes]) -> bytes:
    """Join encoded entries into an offset checkpoint."""
    return b"0\n%d\n%b" % (len(lines), b"".join(lines))


def decode_number(text: str, bits: int) -> int:
    """Decode a decimal number as Java's parseInt (32 bits) and parseLong (64 bits) do. Raises ValueError."""
    number = int(text)
    if "_" in text or not -(1 << (bits - 1)) <= number < 1 << (bits - 1):
        raise ValueError(f"{text} is not a number of at most {bits} bits")
    return number


def decode_offsets(content: bytes) -> dict[TopicPartition, int]:
    """Decode an offset checkpoint. Raises CorruptFile if any line is malformed, as in Apache Kafka.

    An empty file is valid: Kafka creates it empty and writes the first entries a minute later.
    """
    if not content:
        return {}
    try:
        version, count, *lines = content.decode().splitlines()
        if decode_number(version, 32) != 0:
            raise CorruptFile(f"offset checkpoint of unknown version {version}")
        offsets = {}
        for line in lines:
            topic, partition, offset = line.split()
            offsets[intern(topic), decode_number(partition, 32)] = decode_number(offset, 64)
        if len(lines) != decode_number(count, 32):
            raise CorruptFile(f"offset checkpoint announces {count} entries but has {len(lines)}")
    except ValueError as error:
        raise CorruptFile(f"malformed offset checkpoint: {error}") from None
    return offsets


def encode_properties(properties: Mapping[str, str]) -> bytes:
    """Encode a Java properties file without escapes, with a date line in Java's format."""
    lines = ["#", "#" + time.strftime("%a %b %d %H:%M:%S UTC %Y", time.gmtime())]
    lines += [f"{name}={value}" for name, value in properties.items()]
    return ("\n".join(lines) + "\n").encode()


def encode_topic_id(topic_id: UUID) -> str:
    """Encode a topic ID as Kafka prints it: base64url of its 16 bytes, unpadded."""
    return base64.urlsafe_b64encode(topic_id.bytes).rstrip(b"=").decode()


def decode_topic_id(text: str) -> UUID:
    """Decode a topic ID from `encode_topic_id`. Raises ValueError if `text` is not a topic ID."""
    from uuid import UUID

    return UUID(bytes=base64.urlsafe_b64decode(text + "=="))


def encode_partition_metadata(topic_id: UUID) -> bytes:
    """Encode partition.metadata, version 0 (KIP-516)."""
    return f"version: 0\ntopic_id: {encode_topic_id(topic_id)}".encode()


def decode_partition_metadata(content: bytes) -> UUID:
    """Decode partition.metadata and return the topic ID. Raises CorruptFile if the ID is missing."""
    fields = dict(line.split(":", 1) for line in content.decode(errors="replace").splitlines() if ":" in line)
    try:
        return decode_topic_id(fields["topic_id"].strip())
    except (KeyError, ValueError) as error:
        raise CorruptFile(f"malformed partition.metadata: {error}") from None


def encode_clean_shutdown(broker_epoch: int = -1) -> bytes:
    """Encode the clean-shutdown marker. The broker epoch is -1 if there is none (KIP-966)."""
    return json.dumps({"version": 0, "brokerEpoch": broker_epoch}, separators=(",", ":")).encode()
