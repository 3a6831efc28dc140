"""Encoder of the topics in Metadata responses, which keeps the bytes of each topic until the topic changes.

It writes partitions without creating objects. The bytes of a partition after its leader epoch depend only on
its replicas, and are encoded once for all partitions with the same replicas.
"""

from struct import Struct
from typing import Any, Final

from kafka_compat.errors import ErrorCode
from kafka_compat.long_work import Steps, batched
from kafka_compat.metadata.cache import NO_LEADER, MetadataCache, PartitionMetadata, TopicMetadata
from kafka_compat.protocol import codec
from kafka_compat.protocol.buffers import uvarint
from kafka_compat.protocol.encoded_array import EncodedArray
from kafka_compat.protocol.messages.metadata import (
    MetadataResponse,
    MetadataResponsePartition,
    MetadataResponseTopic,
)

KEPT_BYTES_MAX: Final = 8 * 1024 * 1024
"""Number of encoded bytes after which a broker drops all kept topics, in all versions."""
_OVERHEAD_BYTES: Final = 200
"""Approximate memory for a kept topic besides its bytes."""
_PARTITIONS_AT_ONCE: Final = 64
_TOPICS_AT_ONCE: Final = 2_000

_INT: Final = Struct(">i")
_PARTITION: Final = Struct(">hiii")


class TopicEncoder:
    """Encoder for one version of the response. It is replaced when the set of live brokers changes."""

    def __init__(self, cache: MetadataCache, version: int) -> None:
        self._cache = cache
        self._version = version
        self._is_flexible = version >= 9
        self._partition_bytes = _PARTITION.size - (version < 7) * 4
        """Size in bytes of the fields before a partition's replicas."""
        self._tail_bytes = (version >= 8) * 4 + self._is_flexible
        """Size of the fields after a topic's partitions: the authorized operations, and the tagged fields."""
        self._end_bytes = (8 <= version <= 10) * 4 + (version >= 13) * 2 + self._is_flexible
        """Size of the fields after the topics."""
        self._framer = codec.framer(MetadataResponse, version)
        self._count_bytes = len(self._count(0))
        self._start_bytes = len(self._encode([])) - self._end_bytes
        self._ends: dict[tuple[Any, ...], bytes] = {}
        """Maps the replicas, ISR and offline replicas of a partition to its bytes after the leader epoch."""
        self.topics: dict[str, tuple[bytes, int]] = {}
        """The kept topics, by name. The metadata cache removes topics that change."""
        self.encoded_bytes = 0

    def kept(self, topic: TopicMetadata) -> tuple[bytes, int] | None:
        """Return the bytes of a topic, without authorized operations, and the number of its partitions
        without a leader. Return None if the topic is not kept, or is not the current one.
        """
        return self.topics.get(topic.name) if self._cache.topics.get(topic.name) is topic else None

    def encode(self, topic: TopicMetadata) -> Steps[tuple[bytes, int]]:
        """Encode a topic, and keep it. Return the same as `kept`."""
        yield None
        cache, ends, start_bytes = self._cache, self._ends, self._partition_bytes
        whole = self.described(
            MetadataResponseTopic(name=topic.name, topic_id=topic.topic_id, is_internal=topic.is_internal)
        )
        end = len(whole) - self._tail_bytes
        parts = [whole[: end - self._count_bytes], self._count(len(topic.partitions))]
        leaderless = 0
        for number, partition in enumerate(topic.partitions, 1):
            code, leader = ErrorCode.NONE, cache.reachable_leader(partition)
            if leader is None:
                code, leader = ErrorCode.LEADER_NOT_AVAILABLE, NO_LEADER
                leaderless += 1
            start = _PARTITION.pack(code, partition.partition, leader, partition.leader_epoch)
            parts.append(start[:start_bytes])
            replicas = partition.replicas, partition.isr, partition.offline
            parts.append(ends.get(replicas) or ends.setdefault(replicas, self._end(partition)))
            if number % _PARTITIONS_AT_ONCE == 0:
                yield None
        parts.append(whole[end:])
        encoded = b"".join(parts), leaderless
        if cache.topics.get(topic.name) is topic:
            self.topics[topic.name] = encoded
            self._limit(encoded[0])
        return encoded

    def described(self, topic: MetadataResponseTopic) -> bytes:
        """Encode a topic that is not kept."""
        whole = self._encode([topic])
        end = len(whole) - self._end_bytes
        return whole[self._start_bytes : end]

    def with_operations(self, encoded: bytes, operations: int) -> bytes:
        """Set the authorized operations of an encoded topic, in version 8 and later."""
        end = len(encoded) - self._tail_bytes
        return encoded[:end] + _INT.pack(operations) + encoded[end + _INT.size :]

    def array(self, topics: list[bytes], codes: dict[int, int]) -> Steps[EncodedArray]:
        """Join encoded topics. `codes` contains the number of occurrences of each error code."""
        parts = [self._count(len(topics))]
        for some in batched(topics, _TOPICS_AT_ONCE):
            parts.append(b"".join(some))
            yield None
        return EncodedArray(parts, codes, self._end_bytes)

    def decoded(self, array: EncodedArray) -> list[MetadataResponseTopic]:
        """Decode topics for a reader in this process."""
        empty = codec.encode(MetadataResponse(), self._version)
        end = len(empty) - self._end_bytes
        whole = b"".join((empty[: end - self._count_bytes], *array.parts, empty[end:]))
        return codec.decode(MetadataResponse, self._version, whole).topics

    def _end(self, partition: PartitionMetadata) -> bytes:
        described = MetadataResponsePartition(
            replica_nodes=list(partition.replicas),
            isr_nodes=list(partition.isr),
            offline_replicas=self._cache.offline_replicas(partition),
        )
        start = len(self.described(MetadataResponseTopic())) - self._tail_bytes
        start += self._partition_bytes
        whole = self.described(MetadataResponseTopic(partitions=[described]))
        stop = len(whole) - self._tail_bytes
        self._limit(whole[start:stop])
        return whole[start:stop]

    def _encode(self, topics: list[MetadataResponseTopic]) -> bytes:
        """Encode a response, preceded by a frame header."""
        frame: list[bytes] = self._framer(MetadataResponse(topics=topics), 0, codec.UNBOUNDED)
        return frame[0]

    def _count(self, count: int) -> bytes:
        """Encode the number of elements of an array."""
        return uvarint(count + 1) if self._is_flexible else _INT.pack(count)

    def _limit(self, kept: bytes) -> None:
        self.encoded_bytes += len(kept) + _OVERHEAD_BYTES
        encoders = self._cache.topic_encoders
        if sum(encoder.encoded_bytes for encoder in encoders.values()) > KEPT_BYTES_MAX:
            self._cache.topic_encoders = {}


def topic_encoder(cache: MetadataCache, version: int) -> TopicEncoder:
    """Return the current encoder for a version."""
    known: TopicEncoder | None = cache.topic_encoders.get(version)
    if known is None:
        known = cache.topic_encoders[version] = TopicEncoder(cache, version)
    return known
