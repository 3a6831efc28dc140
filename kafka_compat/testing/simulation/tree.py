"""The journal of a metadata tree, in memory."""

from __future__ import annotations

from collections.abc import Callable

from kafka_compat.coordination.store.embedded import EmbeddedMetadataStore
from kafka_compat.coordination.store.journal import Journal, decode, encode_snapshot
from kafka_compat.coordination.store.tree import Tree


class MemoryJournal(Journal):
    """What was appended is there for whoever opens it next, as on a disk."""

    def __init__(self, kept: bytearray) -> None:
        super().__init__("the journal of the simulation")
        self._kept = kept

    def open(self) -> Tree:
        if not self._kept:
            tree = Tree()
            self.compact(encode_snapshot(tree))
            return tree
        tree, self._snapshot_bytes, self._bytes = decode(bytes(self._kept), self.path)
        return tree

    def append(self, lines: bytes) -> None:
        self._kept += lines
        self._bytes += len(lines)

    def compact(self, snapshot: bytes) -> None:
        self._kept[:] = snapshot
        self._snapshot_bytes = self._bytes = len(snapshot)

    def close(self) -> None:
        """Nothing is to be given back."""


def tree_of(kept: bytearray) -> Callable[[str, Callable[[], int]], EmbeddedMetadataStore]:
    """Opens the tree whose journal is `kept`."""
    return lambda path, now_ms: EmbeddedMetadataStore(path, now_ms, MemoryJournal(kept))
