"""Aborted transactions of one segment, stored in `<base offset>.txnindex` with entries of 34 bytes.

    version int16 = 0 | producer ID int64 | first offset int64 | last offset int64 | last stable offset int64

The last offset is the offset of the abort marker. The last stable offset is that of the partition after the
marker was written. A lookup stops at the first entry whose last stable offset is at or after the end of the
range.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Final, NamedTuple

from kafka_compat.storage.directories.disk import FULL, SHORTAGES
from kafka_compat.storage.errors import CorruptFile

if TYPE_CHECKING:
    from kafka_compat.storage.filesystem import Filesystem

_ENTRY: Final = struct.Struct(">hqqqq")
_VERSION: Final = 0


class AbortedTransaction(NamedTuple):
    """An entry in a Fetch response. read_committed consumers use it to skip a producer's aborted records."""

    producer_id: int
    first_offset: int


class AbortedTxn(NamedTuple):
    """One entry of the index. The module docstring explains the fields."""

    producer_id: int
    first_offset: int
    last_offset: int
    last_stable_offset: int


def encode(entries: list[AbortedTxn]) -> bytes:
    """Encode an index file."""
    return b"".join(_ENTRY.pack(_VERSION, *entry) for entry in entries)


def decode(content: bytes) -> list[AbortedTxn]:
    """Decode an index file. Raises CorruptFile if it is torn, out of order, or of an unknown version."""
    if len(content) % _ENTRY.size:
        raise CorruptFile(f"a transaction index of {len(content)} bytes ends inside an entry")
    entries: list[AbortedTxn] = []
    for version, *fields in _ENTRY.iter_unpack(content):
        entry = AbortedTxn(*fields)
        if version != _VERSION:
            raise CorruptFile(f"a transaction index has an entry of version {version}")
        if entry.first_offset > entry.last_offset or (
            entries and entries[-1].last_offset >= entry.last_offset
        ):
            raise CorruptFile(f"a transaction index is out of order at {entry}")
        entries.append(entry)
    return entries


class TransactionIndex:
    """The transaction index of one segment. Its file is read on demand, and created with the first entry."""

    __slots__ = ("_entries", "_filesystem", "_path", "_stored")

    def __init__(self, filesystem: Filesystem, path: str) -> None:
        self._filesystem = filesystem
        self._path = path
        self._entries: list[AbortedTxn] | None = None
        self._stored = True

    @property
    def is_loaded(self) -> bool:
        return self._entries is not None

    def load(self) -> list[AbortedTxn]:
        """Return the entries. The first call reads the file. Raises OSError or CorruptFile."""
        if self._entries is None:
            exists = self._filesystem.exists(self._path)
            self._entries = decode(self._filesystem.read_file(self._path)) if exists else []
        return self._entries

    def __len__(self) -> int:
        """Return the number of entries. All methods that read the file raise what `load` raises."""
        return len(self.load())

    def append(self, entry: AbortedTxn) -> None:
        """Append an entry. Raises ValueError if its last offset is not above all earlier last offsets.

        Call `load` before the marker is written to the log: reading the file may fail, and an entry whose
        marker is in the log must not be lost. If the disk is full or no descriptor is left, the entry is kept
        in memory. The caller must call `store` later.
        """
        entries = self.load()
        if entries and entries[-1].last_offset >= entry.last_offset:
            raise ValueError(f"{entry} ends before {entries[-1]}")
        filesystem = self._filesystem
        entries.append(entry)
        if not self._stored:
            return
        try:
            exists = filesystem.exists(self._path)
            file = filesystem.open(self._path) if exists else filesystem.create(self._path)
            self._stored = file.write(encode([entry])) == _ENTRY.size
        except OSError as error:
            if error.errno not in FULL and error.errno not in SHORTAGES:
                raise
            self._stored = False

    def store(self) -> None:
        """Write the index to its file unless the file is up to date. Raises OSError."""
        if not self._stored:
            self._filesystem.write_file(self._path, encode(self.load()))
            self._stored = True

    def collect(self, fetch_offset: int, upper_bound: int) -> tuple[list[AbortedTransaction], bool]:
        """Return the aborted transactions with offsets in [fetch_offset, upper_bound), and whether the list
        is complete. If it is not, the indexes of later segments may contain more transactions.
        """
        found: list[AbortedTransaction] = []
        for entry in self.load():
            if entry.last_offset >= fetch_offset and entry.first_offset < upper_bound:
                found.append(AbortedTransaction(entry.producer_id, entry.first_offset))
            if entry.last_stable_offset >= upper_bound:
                return found, True
        return found, False

    def replace(self, entries: list[AbortedTxn]) -> None:
        """Replace all entries, even those of an unreadable file. Call `store` to write the file."""
        self._entries = entries
        self._stored = not entries and not self._filesystem.exists(self._path)

    def truncate_to(self, offset: int) -> None:
        """Remove transactions that ended at `offset` or later. Call `store` to write the file."""
        entries = self.load()
        kept = [entry for entry in entries if entry.last_offset < offset]
        if len(kept) < len(entries):
            self._stored = False
            self._entries = kept

    def reset(self) -> None:
        """Remove all entries, even from an unreadable file, before the segment is scanned again."""
        if self._filesystem.exists(self._path):
            self._filesystem.unshare(self._path)
            self._filesystem.open(self._path).truncate(0)
        self._entries = []
        self._stored = True

    def check(self, base_offset: int) -> None:
        """Raise CorruptFile if this cannot be the index of the segment that starts at `base_offset`."""
        for entry in self.load():
            if entry.last_offset < base_offset:
                raise CorruptFile(f"{entry} ends before its segment at {base_offset}")
