"""The metadata hash of a group: it changes if a subscribed topic changes (KIP-1101).

The hash is stored with the group, so it must match Apache Kafka's: XXH3 of 64 bits over little-endian
numbers, and over text as UTF-16 followed by its number of code units.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Final

from xxhash import xxh3_64_intdigest

from kafka_compat.groups.consumer.java_order import utf16_key

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence
    from uuid import UUID

_VERSION: Final = b"\0"


def topic_hash(topic_id: UUID, name: str, partition_racks: Sequence[Collection[str]]) -> int:
    """Return the hash of a topic, a signed number of 64 bits. `partition_racks` contains, for each partition,
    the racks of its replicas; replicas without a rack are omitted.
    """
    parts = [_VERSION, topic_id.bytes[7::-1], topic_id.bytes[:7:-1], _text(name)]
    parts.append(struct.pack("<i", len(partition_racks)))
    if any(partition_racks):
        for partition, racks in enumerate(partition_racks):
            parts.append(struct.pack("<i", partition))
            for rack in sorted(racks, key=utf16_key):
                text = _text(rack)
                parts += (text[-4:], text)
    else:
        parts.append(struct.pack(f"<{len(partition_racks)}i", *range(len(partition_racks))))
    return _signed(xxh3_64_intdigest(b"".join(parts)))


def group_hash(topic_hashes: Mapping[str, int]) -> int:
    """Return the hash of a group from the hashes of its existing subscribed topics by name, or 0 if there are
    none.
    """
    if not topic_hashes:
        return 0
    hashes = [topic_hashes[name] for name in sorted(topic_hashes, key=utf16_key)]
    return _signed(xxh3_64_intdigest(struct.pack(f"<{len(hashes)}q", *hashes)))


def _text(text: str) -> bytes:
    encoded = text.encode("utf-16-le", "surrogatepass")
    return encoded + struct.pack("<i", len(encoded) // 2)


def _signed(number: int) -> int:
    return number if number < 1 << 63 else number - (1 << 64)
