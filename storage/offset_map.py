"""The last offset of each key: what a cleaning must remember, within log.cleaner.dedupe.buffer.size.

Two tables with one meaning. A dictionary is some six times faster and takes about 270 bytes for a key; the
other takes 24, as genuine Kafka's does, so that a large log needs fewer passes. `new_offset_map` chooses.
"""

from __future__ import annotations

import hashlib
import mmap
import struct
from typing import Protocol

KEY_BYTES_MAX = 32
DICT_ENTRY_BYTES = 240
"""Memory of a dictionary's entry beside its key, at the worst moment of the table's growth."""
SLOT_BYTES = 24
_WORDS = struct.Struct("<QQ")


class OffsetMap(Protocol):
    """The last offset of each key that was put.

    `latest_offset` is the offset up to which all records are in here, -1 when there is none.
    """

    latest_offset: int

    def __len__(self) -> int: ...

    def put(self, key: bytes, offset: int) -> bool:
        """Note that `key` was written at `offset`; False when there is no room for another key."""

    def get(self, key: bytes) -> int:
        """The last offset of `key`, -1 when it is not known."""


def new_offset_map(memory_bytes: int, records: int, load_factor: float) -> OffsetMap:
    """A map within `memory_bytes` for at most `records` keys, or for as many as fit."""
    if records * (DICT_ENTRY_BYTES + KEY_BYTES_MAX) <= memory_bytes:
        return DictOffsetMap(memory_bytes)
    return SlotOffsetMap(memory_bytes // SLOT_BYTES, load_factor)


class DictOffsetMap:
    """The fast one. Keys beyond 32 bytes are replaced by a digest, longer than any key kept as it is."""

    __slots__ = ("_free_bytes", "_offsets", "latest_offset")

    def __init__(self, memory_bytes: int) -> None:
        self.latest_offset = -1
        self._offsets: dict[bytes, int] = {}
        self._free_bytes = memory_bytes

    def __len__(self) -> int:
        return len(self._offsets)

    def put(self, key: bytes, offset: int) -> bool:
        if len(key) > KEY_BYTES_MAX:
            key = _long_digest(key)
        if key not in self._offsets:
            # The first key fits in any case: a cleaning must get on.
            self._free_bytes -= DICT_ENTRY_BYTES + len(key)
            if self._free_bytes < 0 and self._offsets:
                return False
        self._offsets[key] = offset
        self.latest_offset = offset
        return True

    def get(self, key: bytes) -> int:
        return self._offsets.get(_long_digest(key) if len(key) > KEY_BYTES_MAX else key, -1)


class SlotOffsetMap:
    """The small one: slots of a digest of 16 bytes and an offset, found by double hashing.

    Keys with one digest count as one key, as in genuine Kafka; at 128 bits that does not happen.
    """

    __slots__ = ("_count", "_count_max", "_slots", "_words", "latest_offset")

    def __init__(self, slots: int, load_factor: float) -> None:
        self.latest_offset = -1
        self._slots = _prime_up_to(max(slots, 3))
        self._count = 0
        # The first key fits in any case: a cleaning must get on.
        self._count_max = max(int(self._slots * load_factor), 1)
        # Pages that were never written to take no memory.
        self._words = memoryview(mmap.mmap(-1, self._slots * SLOT_BYTES)).cast("Q")

    def __len__(self) -> int:
        return self._count

    def put(self, key: bytes, offset: int) -> bool:
        high, low = _WORDS.unpack(hashlib.blake2b(key, digest_size=16).digest())
        words, at = self._words, self._find(high, low)
        if not words[at]:
            if self._count >= self._count_max:
                return False
            self._count += 1
            words[at + 1], words[at + 2] = high, low
        # One more than the offset: 0 stands in slots that are free.
        words[at] = offset + 1
        self.latest_offset = offset
        return True

    def get(self, key: bytes) -> int:
        high, low = _WORDS.unpack(hashlib.blake2b(key, digest_size=16).digest())
        return self._words[self._find(high, low)] - 1

    def _find(self, high: int, low: int) -> int:
        """Where the three words of the digest's slot begin, or those of the free slot in which it belongs."""
        words, slots = self._words, self._slots
        slot = high % slots
        at = slot * 3
        if not words[at] or (words[at + 1] == high and words[at + 2] == low):
            return at
        # The number of slots is prime: any step meets all of them.
        step = 1 + low % (slots - 1)
        while True:
            slot = (slot + step) % slots
            at = slot * 3
            if not words[at] or (words[at + 1] == high and words[at + 2] == low):
                return at


def _long_digest(key: bytes) -> bytes:
    return hashlib.blake2b(key, digest_size=KEY_BYTES_MAX + 1).digest()


def _prime_up_to(number: int) -> int:
    while any(number % divisor == 0 for divisor in range(2, int(number**0.5) + 1)):
        number -= 1
    return number
