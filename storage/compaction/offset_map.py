"""Offset map for a cleaning: the last offset of each key, in at most log.cleaner.dedupe.buffer.size bytes.

There are two implementations. A dictionary is about ten times faster, but takes about 200 bytes per key. A
table of slots takes 24 bytes per key, as in Apache Kafka, so a log with many keys needs fewer passes. An
`OffsetMap` starts with the dictionary and switches to slots when the dictionary is full.
"""

import hashlib
import mmap
import struct
from array import array
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Sequence

from kafka_compat.storage.records.batch import Buffer

DICT_ENTRY_BYTES = 176
"""Memory in bytes that a dictionary entry takes, without its key, while the dictionary is being enlarged."""
SLOT_BYTES = 24
TOMBSTONES_MAX = 1 << 20
"""Maximum number of tracked batches with tombstones. Each takes eight bytes."""
_DIGEST = struct.Struct("<QQ")


class OffsetMap:
    """The last offset of each key in the records from `first_offset` to `latest_offset` (-1 if empty)."""

    __slots__ = (
        "_load_factor",
        "_memory_bytes",
        "_table",
        "_tombstones",
        "first_offset",
        "get",
        "latest_offset",
    )

    get: Callable[[bytes], int | None]
    """Function that returns the last offset of a key, or None if the key is unknown."""

    def __init__(self, memory_bytes: int, load_factor: float, first_offset: int = 0) -> None:
        """`load_factor` is the maximum fraction of used slots."""
        self.first_offset = first_offset
        self.latest_offset = -1
        self._memory_bytes = memory_bytes
        self._load_factor = load_factor
        self._tombstones = array("q")
        self._use(_Dictionary(memory_bytes))

    def _use(self, table: "_Dictionary | _Slots") -> None:
        self._table = table
        self.get = table.get

    def __len__(self) -> int:
        return len(self._table)

    def put(self, keys: Sequence[bytes], offsets: Sequence[int]) -> bool:
        """Add the keys of the records at these ascending offsets, and return whether all keys fit. If they do
        not, the map covers the records up to `latest_offset`.
        """
        count = self._table.put(keys, offsets)
        if count < len(keys) and isinstance(self._table, _Dictionary):
            slots = self._table.into_slots(self._memory_bytes, self._load_factor)
            if slots is not None:
                self._use(slots)
                count += slots.put(keys[count:], offsets[count:])
        if count:
            self.latest_offset = offsets[count - 1]
        return count == len(keys)

    def note_tombstones(self, base_offset: int) -> None:
        """Record that the batch at `base_offset` contains tombstones. Call this in offset order."""
        if len(self._tombstones) < TOMBSTONES_MAX:
            self._tombstones.append(base_offset)

    def may_hold_tombstones(self, base_offset: int) -> bool:
        """Whether the batch at `base_offset` may contain tombstones, according to `note_tombstones`."""
        noted = self._tombstones
        at = bisect_left(noted, base_offset)
        return len(noted) == TOMBSTONES_MAX if at == len(noted) else noted[at] == base_offset

    def holds_all_of(self, first_offset: int, last_offset: int) -> bool:
        """Whether the map covers all offsets from `first_offset` to `last_offset`."""
        return self.first_offset <= first_offset and last_offset <= self.latest_offset

    def flags(self, start: int, count: int) -> bytearray:
        """Return one byte per offset, starting at `start`: 1 for the last offset of a key, otherwise 0."""
        flags = bytearray(count)
        stop = start + count
        for offset in self._table.offsets():
            if start <= offset < stop:
                flags[offset - start] = 1
        return flags


class _Dictionary:
    __slots__ = ("_free_bytes", "_offsets", "get")

    def __init__(self, memory_bytes: int) -> None:
        self._offsets: dict[bytes, int] = {}
        self._free_bytes = memory_bytes
        self.get: Callable[[bytes], int | None] = self._offsets.get

    def __len__(self) -> int:
        return len(self._offsets)

    def put(self, keys: Sequence[bytes], offsets: Sequence[int]) -> int:
        known = self._offsets
        before = len(known)
        keys_bytes = sum(map(len, keys))
        if DICT_ENTRY_BYTES * len(keys) + keys_bytes > self._free_bytes:
            return self._put_one_by_one(keys, offsets)
        known.update(zip(keys, offsets, strict=True))
        new = len(known) - before
        if new:
            self._free_bytes -= DICT_ENTRY_BYTES * new + min(keys_bytes, new * max(map(len, keys)))
        return len(keys)

    def _put_one_by_one(self, keys: Sequence[bytes], offsets: Sequence[int]) -> int:
        known = self._offsets
        for index, key in enumerate(keys):
            if key not in known:
                self._free_bytes -= DICT_ENTRY_BYTES + len(key)
                # Always accept the first key, because each cleaning pass must make progress.
                if self._free_bytes < 0 and known:
                    return index
            known[key] = offsets[index]
        return len(keys)

    def offsets(self) -> Iterable[int]:
        return self._offsets.values()

    def into_slots(self, memory_bytes: int, load_factor: float) -> "_Slots | None":
        """Move all entries to a new slot table. Return None if the new table would have too few slots.

        `memory_bytes` is the limit for both tables together.
        """
        slot_count = memory_bytes // SLOT_BYTES - len(self)
        # Require twice the needed slots, because `_Slots` rounds down to a prime, at worst to half of them.
        if slot_count * load_factor < 2 * (len(self) + 1):
            return None
        offsets = array("q", self._offsets.values())
        digests = bytearray()
        while self._offsets:
            # `popitem` removes the newest entry, so the digests are in reverse order.
            digests += _digest(self._offsets.popitem()[0])
        self._offsets.clear()
        offsets.reverse()
        slots = _Slots(slot_count, load_factor)
        slots.put_digests(digests, offsets)
        return slots


class _Slots:
    """A compact hash table with double hashing. Each slot contains the 16-byte digest of a key and an offset.

    Keys whose digests collide are treated as one key, as in Apache Kafka; with 128 bits a collision is
    practically impossible.
    """

    __slots__ = ("_count", "_count_max", "_slots", "_words")

    def __init__(self, slots: int, load_factor: float) -> None:
        self._slots = _prime_up_to(max(slots, 3))
        self._count = 0
        self._count_max = int(self._slots * load_factor)
        # Allocate all slots at once, because untouched pages take no memory.
        self._words = memoryview(mmap.mmap(-1, self._slots * SLOT_BYTES)).cast("Q")

    def __len__(self) -> int:
        return self._count

    def put(self, keys: Sequence[bytes], offsets: Sequence[int]) -> int:
        return self.put_digests(b"".join(map(_digest, keys)), offsets)

    def put_digests(self, digests: Buffer, offsets: Sequence[int]) -> int:
        """Add as many keys as fit, given as their concatenated digests, and return the number added."""
        words, slots = self._words, self._slots
        for index, (high, low) in enumerate(_DIGEST.iter_unpack(digests)):
            at = high % slots * 3
            held = words[at]
            if held and (words[at + 1] != high or words[at + 2] != low):
                at = self._find(high, low)
                held = words[at]
            if not held:
                if self._count >= self._count_max:
                    return index
                self._count += 1
                words[at + 1], words[at + 2] = high, low
            # Store the offset plus one, because 0 marks free slots.
            words[at] = offsets[index] + 1
        return len(offsets)

    def get(self, key: bytes) -> int | None:
        high, low = _DIGEST.unpack(_digest(key))
        word = self._words[self._find(high, low)]
        return word - 1 if word else None

    def offsets(self) -> Iterator[int]:
        return (word - 1 for word in self._words[::3] if word)

    def _find(self, high: int, low: int) -> int:
        words, slots = self._words, self._slots
        slot = high % slots
        at = slot * 3
        if not words[at] or (words[at + 1] == high and words[at + 2] == low):
            return at
        # The number of slots is prime, so any step visits all of them.
        step = 1 + low % (slots - 1)
        while True:
            slot = (slot + step) % slots
            at = slot * 3
            if not words[at] or (words[at + 1] == high and words[at + 2] == low):
                return at


def _digest(key: bytes) -> bytes:
    return hashlib.blake2b(key, digest_size=16).digest()


def _prime_up_to(number: int) -> int:
    while any(number % divisor == 0 for divisor in range(2, int(number**0.5) + 1)):
        number -= 1
    return number
