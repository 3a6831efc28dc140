"""Mapping of a key to its internal topic partition: a group to `__consumer_offsets`, a transactional ID to
`__transaction_state`. All brokers compute the same partition.
"""

from functools import lru_cache


@lru_cache(maxsize=1024)
def shard_of(key: str, shard_count: int) -> int:
    """Return the partition of a key: the absolute value of its Java hash modulo the partition count."""
    code = java_hash_code(key)
    # In Java, the absolute value of the smallest int is negative. Kafka uses 0 instead.
    return (0 if code == -(1 << 31) else abs(code)) % shard_count


def java_hash_code(text: str) -> int:
    """Return Java's String.hashCode of the text: a signed 32-bit number, computed from UTF-16 code units."""
    code = 0
    units = text.encode("utf-16-be", "surrogatepass")
    for index in range(0, len(units), 2):
        code = (31 * code + (units[index] << 8 | units[index + 1])) & 0xFFFF_FFFF
    return code - (1 << 32) if code >= 1 << 31 else code
