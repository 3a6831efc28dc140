"""Records on their way to partitions, gathered to batches; pure.

A batch is due when it is full, when its first record has waited for the linger time, or when all are asked
for. A partition's batches leave in their order, one at a time.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import Any, Final

from kafka_compat.client.partitions import TopicPartition
from kafka_compat.storage.records.records import Header, Record, encode_varint

RECORD_OVERHEAD_BYTES: Final = 21
"""What Kafka's producer reckons for length, attributes, timestamp and offset of a record."""
BATCH_OVERHEAD_BYTES: Final = 61


class Pending:
    """A batch. `tags` are what its sender wants back with each record."""

    __slots__ = ("attempts", "born_s", "records", "sequence", "size_bytes", "tags")

    def __init__(self, born_s: float) -> None:
        self.born_s = born_s
        self.records: list[Record] = []
        self.tags: list[Any] = []
        self.size_bytes = BATCH_OVERHEAD_BYTES
        self.attempts = 0
        self.sequence: int | None = None
        """Of its first record; None until it is sent."""


class PendingBatches:
    """Those of all partitions. Times are seconds of one clock."""

    def __init__(self, batch_bytes: int, linger_s: float) -> None:
        self._batch_bytes = batch_bytes
        self._linger_s = linger_s
        self._queues: dict[TopicPartition, deque[Pending]] = {}

    def add(self, place: TopicPartition, record: Record, tag: Any, now_s: float) -> bool:
        """Whether a batch is full now."""
        size_bytes = size_of(record.key, record.value, record.headers)
        queue = self._queues.setdefault(place, deque())
        if not queue or queue[-1].attempts or queue[-1].size_bytes + size_bytes > self._batch_bytes:
            queue.append(Pending(now_s))
        batch = queue[-1]
        batch.records.append(record)
        batch.tags.append(tag)
        batch.size_bytes += size_bytes
        return len(queue) > 1 or batch.size_bytes >= self._batch_bytes

    def due(self, now_s: float, *, all_of_them: bool = False) -> dict[TopicPartition, Pending]:
        """The first batch of each partition that has one that is due."""
        return {
            place: queue[0]
            for place, queue in self._queues.items()
            if queue
            and (
                all_of_them
                or len(queue) > 1
                or queue[0].attempts
                or queue[0].size_bytes >= self._batch_bytes
                or now_s - queue[0].born_s >= self._linger_s
            )
        }

    def wait_s(self, now_s: float) -> float | None:
        """Until the next batch is due; None where there is none."""
        ages = [now_s - queue[0].born_s for queue in self._queues.values() if queue]
        return max(self._linger_s - max(ages), 0.0) if ages else None

    def done(self, place: TopicPartition) -> Pending:
        """The first batch of a partition is off."""
        queue = self._queues[place]
        batch = queue.popleft()
        if not queue:
            del self._queues[place]
        return batch

    def __bool__(self) -> bool:
        return bool(self._queues)


def size_of(key: bytes | None, value: bytes | None, headers: Sequence[Header]) -> int:
    """The most that a record may take, as Kafka's producer reckons before it encodes it."""
    size_bytes = RECORD_OVERHEAD_BYTES + _sized(key) + _sized(value) + len(encode_varint(len(headers)))
    for name, content in headers:
        size_bytes += _sized(name.encode()) + _sized(content)
    return size_bytes


def _sized(content: bytes | None) -> int:
    return 1 if content is None else len(encode_varint(len(content))) + len(content)
