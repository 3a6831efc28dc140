"""Mapping of a key to its internal topic partition: a group to `__consumer_offsets`, a transactional ID to
`__transaction_state`. All brokers compute the same partition.
"""

from __future__ import annotations

from functools import lru_cache


@lru_cache(maxsize=1024)
def shard_of(key: str, shard_count: int) -> int:
    """Kafka's partitioner: the absolute value of Java's String.hashCode, modulo the number of partitions."""
    return _absolute(java_hash_code(key)) % shard_count


def java_hash_code(text: str) -> int:
    """Java's String.hashCode: over UTF-16 code units, as a signed 32-bit number."""
    code = 0
    units = text.encode("utf-16-be", "surrogatepass")
    for index in range(0, len(units), 2):
        code = (31 * code + (units[index] << 8 | units[index + 1])) & 0xFFFF_FFFF
    return code - (1 << 32) if code >= 1 << 31 else code


def _absolute(number: int) -> int:
    # The most negative int has no absolute value in Java; Kafka uses 0 for it.
    return 0 if number == -(1 << 31) else abs(number)
