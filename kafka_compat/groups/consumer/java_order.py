"""The iteration order of Java's hash tables.

Kafka's assignors break ties in the order in which `java.util.HashMap` and `HashSet` iterate over member IDs,
topic IDs and partitions, and write target assignments to `__consumer_offsets` in this order. A broker assigns
the same partitions as Apache Kafka only if it reproduces this order.

Rules (Java 17)
1. A table has a power of two of bins, and a key is in the bin of the lowest bits of its spread hash code.
   Iteration visits the bins in order. A new key is the last of its bin, but the first if `computeIfAbsent`
   adds it.
2. If there are more keys than three quarters of the bins, the number of bins doubles. The order within a bin
   does not change. `computeIfAbsent` checks this before it adds a key, all other methods check it afterwards.
   Tables never shrink.
3. If a bin contains nine keys, a table of fewer than 64 bins doubles; in a larger table, the bin becomes a
   tree (java_tree_bin.py).
4. Copies have as many bins as the number of keys requires, but at least 16 for a HashSet. Since Java 19, a
   HashSet with a number of keys that is exactly three quarters of a power of two (12, 24, …) has half as many
   bins as here.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final, TypeVar

from kafka_compat.groups.consumer.java_tree_bin import TreeBin

if TYPE_CHECKING:
    from uuid import UUID

    from mypy_extensions import i64

    from kafka_compat.long_work import Steps

T = TypeVar("T")

DEFAULT_CAPACITY: Final = 16
"""Number of bins of a HashMap or HashSet that is created without a capacity."""

_LONG_BIN: Final = 8
"""Number of keys in a bin above which the table doubles, or the bin becomes a tree."""
_TREES_MIN_CAPACITY: Final = 64
_SMALL_HASH: Final = 1 << 16
"""Hash codes below this number are their own spread hash codes."""
_STEP_LENGTH: Final = 10_000
"""Number of characters per step of long work."""
_SMALL_TREE: Final = 6
"""Number of keys up to which a tree becomes a list when it is split."""

_32_BITS: Final = 0xFFFFFFFF
_64_BITS: Final = 0xFFFFFFFFFFFFFFFF
_SLOT_FACTOR: Final = 0x9E3779B97F4A7C15
"""The 64-bit golden ratio, with which Kafka's TimelineHashMap multiplies hash codes."""


def string_hash(text: str) -> int:
    """Return `String.hashCode()`, a signed number of 32 bits."""
    value: i64 = 0
    if text.isascii():
        data = text.encode("ascii")
        index: i64 = 0
        length: i64 = len(data)
        while index < length:
            value = (value * 31 + data[index]) & 0xFFFFFFFF
            index += 1
    else:
        units = text.encode("utf-16-be", "surrogatepass")
        for high, low in zip(units[::2], units[1::2], strict=True):
            value = (value * 31 + (high << 8) + low) & 0xFFFFFFFF
    return int(value) if value < 0x80000000 else int(value) - 0x100000000


def uuid_hash(uuid: UUID) -> int:
    """Return the hash code of Kafka's Uuid, a signed number of 32 bits."""
    number = uuid.int
    number ^= number >> 64
    number = (number ^ number >> 32) & _32_BITS
    return number if number < 0x80000000 else number - 0x100000000


def utf16_key(text: str) -> bytes:
    """Return a key that sorts strings like `String.compareTo`: by UTF-16 code unit."""
    return text.encode("utf-16-be", "surrogatepass")


def sorted_strings(strings: Sequence[str]) -> list[str]:
    """Return the strings in the order of `String.compareTo`."""
    if all(map(str.isascii, strings)):
        return sorted(strings)
    return sorted(strings, key=utf16_key)


def uuid_key(uuid: UUID) -> int:
    """Return a key that sorts UUIDs like Kafka's Uuid: as two signed numbers of 64 bits."""
    return uuid.int ^ (1 << 127 | 1 << 63)


def table_capacity(requested: int) -> int:
    """Return the number of bins of `new HashMap(requested)`: the next power of two."""
    return 1 << (requested - 1).bit_length() if requested > 1 else 1


def copy_capacity(size: int) -> int:
    """Return the number of bins of `new HashSet(collection)`, for a collection of that size."""
    return max(table_capacity(size * 4 // 3 + 1), DEFAULT_CAPACITY)


def sized_capacity(size: int) -> int:
    """Return the number of bins of a HashMap that Kafka creates for `size` keys."""
    return table_capacity(size * 4 // 3 + 1)


def string_order(strings: Sequence[str], capacity: int = DEFAULT_CAPACITY) -> list[str]:
    """Return different strings in the order of a HashMap to which they are added one after another."""
    return _string_order(strings, [string_hash(text) for text in strings], capacity)


def string_order_in_steps(strings: Sequence[str]) -> Steps[list[str]]:
    """Do the same as string_order, in steps, for many strings."""
    hashes: list[int] = []
    length = 0
    for text in strings:
        hashes.append(string_hash(text))
        length += len(text)
        if length > _STEP_LENGTH:
            length = 0
            yield None
    ordered = _string_order(strings, hashes, DEFAULT_CAPACITY)
    yield None
    return ordered


def _string_order(strings: Sequence[str], hashes: list[int], capacity: int) -> list[str]:
    ordered = _bin_order(strings, hashes, capacity)
    if ordered is not None:
        return ordered
    table = HashTable(capacity)
    ranked = sorted(range(len(strings)), key=lambda position: utf16_key(strings[position]))
    ranks = {position: rank for rank, position in enumerate(ranked)}
    for position, hash_code in enumerate(hashes):
        table.put(ranks[position], hash_code)
    return [strings[ranked[rank]] for rank in table.ordered_keys()]


def uuid_order(uuids: Sequence[UUID], capacity: int = DEFAULT_CAPACITY) -> list[UUID]:
    """Return different UUIDs in the order of a HashMap to which they are added one after another."""
    if len(uuids) < 2:
        return list(uuids)
    hashes = [uuid_hash(uuid) for uuid in uuids]
    ordered = _bin_order(uuids, hashes, capacity)
    if ordered is not None:
        return ordered
    table = HashTable(capacity)
    by_key: dict[int, UUID] = {}
    for uuid, hash_code in zip(uuids, hashes, strict=True):
        key = uuid_key(uuid)
        by_key[key] = uuid
        table.put(key, hash_code)
    return [by_key[key] for key in table.ordered_keys()]


def int_order(numbers: Sequence[int], capacity: int) -> list[int]:
    """Return different numbers ≥ 0 in the order of a HashSet to which they are added one after another."""
    ordered = short_bins_order(numbers, capacity)
    if ordered is not None:
        return ordered
    table = HashTable(capacity)
    for number in numbers:
        table.put(number, number)
    return table.ordered_keys()


def short_bins_order(numbers: Sequence[int], capacity: int) -> list[int] | None:
    """Do the same as int_order, or return None if a bin becomes too long. Otherwise, the order stays the same
    when numbers are removed.
    """
    if len(numbers) < 2:
        return list(numbers)
    bin_count = table_capacity(capacity)
    lowest, highest = min(numbers), max(numbers)
    if highest >= _SMALL_HASH or highest - lowest >= bin_count * _LONG_BIN:
        return _bin_order(numbers, list(numbers), capacity)
    # No bin becomes too long, even before the table grows.
    while len(numbers) > bin_count * 3 // 4:
        bin_count *= 2
    bins = [number & (bin_count - 1) for number in numbers]
    return [numbers[position] for position in sorted(range(len(numbers)), key=bins.__getitem__)]


def _bin_order(keys: Sequence[T], hashes: list[int], capacity: int) -> list[T] | None:
    """Return the keys in iteration order, or None if a bin becomes too long."""
    spread = [code ^ ((code & _32_BITS) >> 16) for code in hashes]
    bin_count = table_capacity(capacity)
    threshold = bin_count * 3 // 4
    while len(keys) > threshold:
        if _has_long_bin(spread, threshold + 1, bin_count):
            return None
        bin_count *= 2
        threshold = bin_count * 3 // 4
    mask: i64 = bin_count - 1
    first: list[T | None] = [None] * bin_count
    sizes = [0] * bin_count
    others: dict[int, list[T]] = {}
    """The keys after the first, for bins with several keys."""
    for key, code in zip(keys, spread, strict=True):
        index: i64 = code & mask
        size = sizes[index]
        if size == 0:
            first[index] = key
        elif size == 1:
            others[index] = [key]
        elif size < _LONG_BIN:
            others[index].append(key)
        else:
            return None
        sizes[index] = size + 1
    ordered: list[T] = []
    for index, key_or_none in enumerate(first):
        if key_or_none is not None:
            ordered.append(key_or_none)
            if sizes[index] > 1:
                ordered += others[index]
    return ordered


def _has_long_bin(spread: list[int], count: int, bin_count: int) -> bool:
    if count <= _LONG_BIN:
        return False
    mask: i64 = bin_count - 1
    sizes = [0] * bin_count
    position: i64 = 0
    while position < count:
        index: i64 = spread[position] & mask
        size = sizes[index]
        if size == _LONG_BIN:
            return True
        sizes[index] = size + 1
        position += 1
    return False


class HashTable:
    """The keys of one HashMap or HashSet, each a number whose order is the order of Java's keys."""

    __slots__ = ("_bins", "_capacity", "_hashes")

    def __init__(self, capacity: int) -> None:
        self._capacity = table_capacity(capacity)
        self._hashes: dict[int, int] = {}
        """The spread hash code of each key, in the order in which the keys were added."""
        self._bins: list[list[int] | TreeBin] = []
        """Empty while the order within each bin is the order in which the keys were added."""

    def put(self, key: int, hash_code: int) -> None:
        """Add the key as `HashMap.put` does, or do nothing if the table contains it."""
        if key in self._hashes:
            return
        if not self._bins and len(self._hashes) == _LONG_BIN:
            self._fill_bins()
        spread_hash = hash_code ^ ((hash_code & _32_BITS) >> 16)
        self._hashes[key] = spread_hash
        if self._bins:
            index = spread_hash & (self._capacity - 1)
            keys = self._bins[index]
            if isinstance(keys, TreeBin):
                keys.put(key, spread_hash)
            else:
                keys.append(key)
                if len(keys) > _LONG_BIN:
                    self._shorten(index)
        if len(self._hashes) > self._capacity * 3 // 4:
            self._double()

    def compute_if_absent(self, key: int, hash_code: int) -> None:
        """Add the key as `HashMap.computeIfAbsent` does, or look it up if the table contains it."""
        if len(self._hashes) > self._capacity * 3 // 4:
            self._double()
        if key in self._hashes:
            return
        if not self._bins and self._hashes:
            self._fill_bins()
        spread_hash = hash_code ^ ((hash_code & _32_BITS) >> 16)
        self._hashes[key] = spread_hash
        if not self._bins:
            return
        index = spread_hash & (self._capacity - 1)
        keys = self._bins[index]
        if isinstance(keys, TreeBin):
            keys.put(key, spread_hash)
        else:
            keys.insert(0, key)
            if len(keys) >= _LONG_BIN:
                self._shorten(index)

    def remove(self, key: int) -> None:
        """Remove a key that the table contains."""
        spread_hash = self._hashes.pop(key)
        if not self._bins:
            return
        index = spread_hash & (self._capacity - 1)
        keys = self._bins[index]
        if not isinstance(keys, TreeBin):
            keys.remove(key)
        elif not keys.remove(key):
            self._bins[index] = keys.ordered_keys()

    def ordered_keys(self) -> list[int]:
        """Return all keys in iteration order."""
        if not self._bins:
            mask = self._capacity - 1
            return sorted(self._hashes, key=lambda key: self._hashes[key] & mask)
        found: list[int] = []
        for keys in self._bins:
            found += keys.ordered_keys() if isinstance(keys, TreeBin) else keys
        return found

    def __len__(self) -> int:
        return len(self._hashes)

    def _fill_bins(self) -> None:
        bins: list[list[int] | TreeBin] = []
        filled: list[list[int]] = []
        for _ in range(self._capacity):
            keys: list[int] = []
            filled.append(keys)
            bins.append(keys)
        mask = self._capacity - 1
        for key, spread_hash in self._hashes.items():
            filled[spread_hash & mask].append(key)
        self._bins = bins

    def _shorten(self, index: int) -> None:
        if self._capacity < _TREES_MIN_CAPACITY:
            self._double()
            return
        keys = self._bins[index]
        assert not isinstance(keys, TreeBin)
        self._bins[index] = TreeBin([(key, self._hashes[key]) for key in keys])

    def _double(self) -> None:
        bit = self._capacity
        self._capacity *= 2
        if not self._bins:
            return
        low: list[list[int] | TreeBin] = []
        high: list[list[int] | TreeBin] = []
        for keys in self._bins:
            if isinstance(keys, TreeBin):
                low_tree, high_tree = _split(keys, bit)
                low.append(low_tree)
                high.append(high_tree)
            else:
                low.append([key for key in keys if not self._hashes[key] & bit])
                high.append([key for key in keys if self._hashes[key] & bit])
        self._bins = low + high


def _split(tree: TreeBin, bit: int) -> tuple[list[int] | TreeBin, list[int] | TreeBin]:
    low = [entry for entry in tree.entries() if not entry[1] & bit]
    high = [entry for entry in tree.entries() if entry[1] & bit]
    if not low:
        return [], tree if len(high) > _SMALL_TREE else [key for key, _ in high]
    if not high:
        return tree if len(low) > _SMALL_TREE else [key for key, _ in low], []
    return (
        TreeBin(low) if len(low) > _SMALL_TREE else [key for key, _ in low],
        TreeBin(high) if len(high) > _SMALL_TREE else [key for key, _ in high],
    )


class TimelineOrder:
    """The keys of one of Kafka's TimelineHashMaps, such as the members of a group, in its iteration order.

    Within a slot, Kafka iterates from the newest key to the oldest. The table never shrinks, so the order
    depends on the largest number of keys that the map ever contained.
    """

    __slots__ = ("_bits", "_hashes", "_slots")

    def __init__(self) -> None:
        self._bits = 1
        self._hashes: dict[str, int] = {}
        """The hash code of each key, because it takes long to compute those of long keys."""
        self._slots: dict[int, list[str]] = {}
        """The keys of each slot that is not empty."""

    def put(self, key: str) -> None:
        """Add the key, or replace its value."""
        if (len(self._hashes) + 1) * 3 > 4 << self._bits:
            self._double()
        if key not in self._hashes:
            self._hashes[key] = string_hash(key)
            self._slots.setdefault(self._slot(key), []).append(key)

    def remove(self, key: str) -> None:
        """Remove the key if the map contains it."""
        if key in self._hashes:
            slot = self._slot(key)
            self._slots[slot].remove(key)
            if not self._slots[slot]:
                del self._slots[slot]
            del self._hashes[key]
            if not self._hashes:
                # Free the memory of dicts that may have been large.
                self._hashes.clear()
                self._slots.clear()

    def ordered_keys(self) -> list[str]:
        """Return all keys in iteration order."""
        return [key for slot in sorted(self._slots) for key in reversed(self._slots[slot])]

    def __len__(self) -> int:
        return len(self._hashes)

    def _slot(self, key: str) -> int:
        return (self._hashes[key] * _SLOT_FACTOR & _64_BITS) >> (64 - self._bits)

    def _double(self) -> None:
        self._bits += 1
        slots: dict[int, list[str]] = {}
        for index in sorted(self._slots):
            for key in self._slots[index]:
                slots.setdefault(self._slot(key), []).append(key)
        self._slots = slots
