"""Copy of a tree from one metadata store to another, with the versions of its nodes.

The copy can be repeated: nodes that are already equal are not written. Ephemeral nodes are not copied. A
store cannot set the version of a node, so a node is written as often as in the source. Where the version in
the target is too high, the node is deleted and created again, unless it has children.
"""

from collections.abc import Collection, Sequence
from typing import Final, NamedTuple

from kafka_compat.coordination.store import metadata_store as stores
from kafka_compat.coordination.store.metadata_store import MetadataStore, NoNode, Operation, Stat
from kafka_compat.tasks import asked_for_all

_READS: Final = 64
"""Maximum number of concurrent reads of each store."""
_PATHS_AT_ONCE: Final = 512
_OPERATIONS_MOST: Final = 256
_BYTES_MOST: Final = 256 * 1024
_OPERATION_BYTES: Final = 64
"""Size in bytes of an operation without its path and data, generously."""


class _Found(NamedTuple):
    data: bytes | None
    stat: Stat
    children: Sequence[str]


class TreeCopy:
    """One copy of the trees below `roots`. Nodes in `left_out`, and all nodes below nodes in `childless`, are
    neither copied nor deleted. Each transaction in the target includes `guard`.
    """

    def __init__(
        self,
        source: MetadataStore,
        target: MetadataStore,
        guard: Operation,
        *,
        roots: Sequence[str],
        left_out: Collection[str] = (),
        childless: Collection[str] = (),
    ) -> None:
        self._source = source
        self._target = target
        self._guard = guard
        self._roots = roots
        self._left_out = frozenset(left_out)
        self._childless = frozenset(childless)
        self._operations: list[Operation] = []
        self._bytes = 0
        self.nodes = 0
        """The number of nodes that were compared."""
        self.changes = 0
        """The number of nodes that were written or deleted."""

    async def run(self) -> None:
        """Make the target equal to the source. Raises MetadataStoreError, for example if the guard fails."""
        paths = [root for root in self._roots if root not in self._left_out]
        while paths:
            below: list[str] = []
            for start in range(0, len(paths), _PATHS_AT_ONCE):
                some = paths[start : start + _PATHS_AT_ONCE]
                sources = await asked_for_all(some, lambda path: _find(self._source, path), _READS)
                targets = await asked_for_all(some, lambda path: _find(self._target, path), _READS)
                for path, found, existing in zip(some, sources, targets, strict=True):
                    below += await self._compare(path, found, existing)
            # Parents must exist before the nodes of the next level are created.
            await self._flush()
            paths = below

    async def _compare(self, path: str, found: _Found | None, existing: _Found | None) -> list[str]:
        """Write the changes of one node. Return the paths of its children in the source."""
        if found is None or found.stat.ephemeral_owner:
            if existing is not None and not existing.stat.ephemeral_owner:
                await self._delete(path)
            return []
        self.nodes += 1
        names = () if path in self._childless else found.children
        if existing is not None and path not in self._childless:
            for name in sorted(set(existing.children) - set(names)):
                if f"{path}/{name}" not in self._left_out:
                    await self._delete(f"{path}/{name}")
        await self._write(path, found, existing)
        return [child for name in names if (child := f"{path}/{name}") not in self._left_out]

    async def _write(self, path: str, found: _Found, existing: _Found | None) -> None:
        data, wanted = found.data, found.stat.version
        is_equal = existing is not None and (existing.data or b"") == (data or b"")
        if existing is not None and existing.stat.version == wanted and is_equal:
            return
        has_children = bool(found.children or (existing and existing.children))
        if existing is not None and existing.stat.version >= wanted:
            if has_children:
                if not is_equal:
                    await self._add(stores.SetData(path, data))
                    self.changes += 1
                return
            await self._add(stores.Delete(path))
            existing = None
        self.changes += 1
        version = -1 if existing is None else existing.stat.version
        if existing is None:
            version = 0
            await self._add(stores.Create(path, data if wanted == 0 else b""))
        # The last write has the data. If the copy is interrupted before, the version shows it.
        for number in range(version + 1, wanted + 1):
            await self._add(stores.SetData(path, data if number == wanted else b""))

    async def _delete(self, path: str) -> None:
        """Delete a tree of the target, children first."""
        found = await _find(self._target, path)
        if found is None or found.stat.ephemeral_owner:
            return
        for name in found.children:
            await self._delete(f"{path}/{name}")
        await self._add(stores.Delete(path))
        self.changes += 1

    async def _add(self, operation: Operation) -> None:
        data = getattr(operation, "data", None) or b""
        size = len(operation.path) + len(data) * 2 + _OPERATION_BYTES
        if self._operations and (
            len(self._operations) >= _OPERATIONS_MOST or self._bytes + size > _BYTES_MOST
        ):
            await self._flush()
        self._operations.append(operation)
        self._bytes += size

    async def _flush(self) -> None:
        operations, self._operations, self._bytes = self._operations, [], 0
        if operations:
            await self._target.multi([*operations, self._guard])


async def _find(store: MetadataStore, path: str) -> _Found | None:
    try:
        data, stat = await store.get(path)
        children = await store.children(path) if stat.children_count else []
    except NoNode:
        return None
    return _Found(data, stat, children)
