"""Values that show their current and their committed state, like the timeline collections of Apache Kafka.

A record is replayed when it is appended. Until it is committed, a `TimelineDict` or a `TimelineValue` keeps
the state before it: requests decide on the current state, and lists and descriptions show the committed one.
All values of a shard share one `SnapshotRegistry`, which knows the order of the appends.
"""

from collections import deque
from collections.abc import Iterator, Mapping
from typing import Final, Generic, Protocol, TypeVar, cast

K = TypeVar("K")
V = TypeVar("V")


class _Missing:
    """The type of `_MISSING`, the former value of a key that did not exist."""


_MISSING: Final = _Missing()


class _Tracked(Protocol):
    """A value with uncommitted changes."""

    def commit_oldest(self, key: object) -> None:
        """Commit the oldest uncommitted change of this key."""


class SnapshotRegistry:
    """The uncommitted changes of one shard. Changes outside of `begin` and `end` are committed at once."""

    __slots__ = ("_appends", "_open")

    def __init__(self) -> None:
        self._appends: deque[tuple[int, list[tuple[_Tracked, object]]]] = deque()
        self._open: list[tuple[_Tracked, object]] | None = None

    @property
    def is_open(self) -> bool:
        """Whether the current changes belong to an append."""
        return self._open is not None

    def begin(self, end_offset: int) -> None:
        """Assign the following changes to the append that ends before this offset."""
        self._open = []
        self._appends.append((end_offset, self._open))

    def end(self) -> None:
        self._open = None

    def changed(self, tracked: _Tracked, key: object) -> None:
        """Note that the open append has changed a key."""
        if self._open is not None:
            self._open.append((tracked, key))

    def commit(self, offset: int) -> None:
        """Commit the changes of all appends below this offset."""
        while self._appends and self._appends[0][0] <= offset:
            for tracked, key in self._appends.popleft()[1]:
                tracked.commit_oldest(key)


def _free_if_empty(table: dict[K, V]) -> None:
    """Free the memory of a dict that has become empty, which may have been large."""
    if not table:
        table.clear()


class TimelineDict(Generic[K, V]):
    """A dict with a current and a committed state. Do not change `current` directly."""

    __slots__ = ("_before", "_registry", "current")

    def __init__(self, registry: SnapshotRegistry) -> None:
        self.current: dict[K, V] = {}
        self._registry = registry
        self._before: dict[K, deque[V | _Missing]] = {}
        """The former values of each key with uncommitted changes, oldest first. The first is committed."""

    @property
    def committed(self) -> Mapping[K, V]:
        """The committed state. It is valid until the next change."""
        if not self._before:
            return self.current
        committed = {key: value for key, value in self.current.items() if key not in self._before}
        for key, before in self._before.items():
            if before[0] is not _MISSING:
                committed[key] = cast("V", before[0])
        return committed

    def get_committed(self, key: K) -> V | None:
        """Return the committed value of a key, or None."""
        before = self._before.get(key)
        if before is None:
            return self.current.get(key)
        return None if before[0] is _MISSING else cast("V", before[0])

    def set(self, key: K, value: V) -> None:
        self._keep(key)
        self.current[key] = value

    def remove(self, key: K) -> None:
        """Remove a key. A missing key is ignored."""
        if key in self.current:
            self._keep(key)
            del self.current[key]
            _free_if_empty(self.current)

    def clear(self) -> None:
        for key in list(self.current):
            self.remove(key)

    def _keep(self, key: K) -> None:
        if self._registry.is_open:
            self._before.setdefault(key, deque()).append(self.current.get(key, _MISSING))
            self._registry.changed(self, key)

    def commit_oldest(self, key: object) -> None:
        before = self._before[cast("K", key)]
        before.popleft()
        if not before:
            del self._before[cast("K", key)]
            _free_if_empty(self._before)

    @property
    def is_empty(self) -> bool:
        """Whether the current and the committed state are both empty."""
        return not self.current and not self._before

    def __contains__(self, key: object) -> bool:
        return key in self.current

    def __getitem__(self, key: K) -> V:
        return self.current[key]

    def __iter__(self) -> Iterator[K]:
        return iter(self.current)

    def __len__(self) -> int:
        return len(self.current)


class TimelineValue(Generic[V]):
    """A value with a current and a committed state."""

    __slots__ = ("_before", "_registry", "current")

    def __init__(self, registry: SnapshotRegistry, initial: V) -> None:
        self.current = initial
        self._registry = registry
        self._before: deque[V] = deque()

    @property
    def committed(self) -> V:
        return self._before[0] if self._before else self.current

    def set(self, value: V) -> None:
        if self._registry.is_open:
            self._before.append(self.current)
            self._registry.changed(self, None)
        self.current = value

    def commit_oldest(self, key: object) -> None:
        self._before.popleft()
