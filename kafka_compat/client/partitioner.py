"""Choose partitions like Kafka's producer: by key, or with the sticky strategy if there is no key."""

from collections.abc import Callable, Sequence
from typing import Final

_SEED: Final = 0x9747B28C
_M: Final = 0x5BD1E995
_MASK: Final = 0xFFFFFFFF


def murmur2(data: bytes) -> int:
    """Return the unsigned MurmurHash2 of `data`, with the seed of Kafka's partitioner."""
    length = len(data)
    found = _SEED ^ length
    whole = length & ~3
    for position in range(0, whole, 4):
        k = int.from_bytes(data[position : position + 4], "little") * _M & _MASK
        k = (k ^ (k >> 24)) * _M & _MASK
        found = (found * _M & _MASK) ^ k
    if length > whole:
        found = (found ^ int.from_bytes(data[whole:], "little")) * _M & _MASK
    found = (found ^ (found >> 13)) * _M & _MASK
    return found ^ (found >> 15)


def partition_of(key: bytes, count: int) -> int:
    """Choose the partition for a key among `count` partitions."""
    return (murmur2(key) & 0x7FFFFFFF) % count


class Sticky:
    """A partitioner for records without a key. It switches partitions after `batch_bytes` (KIP-794)."""

    def __init__(self, batch_bytes: int, choose: Callable[[Sequence[int]], int]) -> None:
        """Create a partitioner. `choose` picks one of several partitions at random."""
        self._batch_bytes = batch_bytes
        self._choose = choose
        self._current: dict[str, tuple[int, int]] = {}

    def partition(self, topic: str, available: Sequence[int], size_bytes: int) -> int:
        """Choose the partition for a record of this size. `available` lists the partitions with a leader."""
        current, sent_bytes = self._current.get(topic, (-1, 0))
        if current not in available or sent_bytes >= self._batch_bytes:
            others = [number for number in available if number != current] or list(available)
            current, sent_bytes = self._choose(others), 0
        self._current[topic] = (current, sent_bytes + size_bytes)
        return current
