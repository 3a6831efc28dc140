"""Interface of the metadata store that brokers share: a tree of small versioned nodes, as in ZooKeeper.

Rules:
- Every change has a transaction ID (zxid) greater than all earlier ones, also across restarts.
- A node's version counts its writes from 0; a write or delete may require a version (-1: any).
- Ephemeral nodes exist as long as the session that created them, and have no children.
- Names of sequential nodes end with a ten-digit counter of their parent.
- `multi` performs all of its operations or none.
- A watch is called once, at the first change after the read that set it, before that change can be read.
- A session may be suspended (the store is unreachable; nothing is lost) or expire: its ephemeral nodes are
  deleted, every later call raises SessionExpired, and its owner must start from scratch.
"""

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from contextlib import suppress
from enum import Enum
from typing import NamedTuple

ANY_VERSION = -1


_AT_ONCE = 256
"""How many nodes of a tree are removed in one transaction."""


class MetadataStoreError(Exception):
    """The root of what a store may answer instead of doing what it was asked."""


class NoNode(MetadataStoreError):
    """The path, or the parent of a node to create, does not exist."""


class NodeExists(MetadataStoreError):
    """The path to create exists."""


class BadVersion(MetadataStoreError):
    """The node was changed since the version that the caller demands."""


class NotEmpty(MetadataStoreError):
    """A node with children cannot be deleted."""


class NoChildrenForEphemerals(MetadataStoreError):
    """An ephemeral node cannot be a parent."""


class SessionExpired(MetadataStoreError):
    """The session is over; its ephemerals are gone."""


class ConnectionLost(MetadataStoreError):
    """No answer came: the operation may or may not have been done."""


class NotAllowed(MetadataStoreError):
    """The node's ACL does not let this session do that."""


class LoginFailed(MetadataStoreError):
    """The store takes nobody who does not log in, or not with these credentials; the text tells what to
    set."""


class TransactionFailed(MetadataStoreError):
    """A multi did nothing, because of `cause` at the operation `index`."""

    def __init__(self, index: int, cause: MetadataStoreError) -> None:
        super().__init__(f"operation {index}: {cause!r}")
        self.index = index
        self._cause: MetadataStoreError | None = cause

    @property
    def cause(self) -> MetadataStoreError:
        """Why the operation failed."""
        assert self._cause is not None
        return self._cause

    def take_cause(self) -> MetadataStoreError:
        """The cause, to be raised instead of this error, which lets go of it.

        The context of the raised cause is this error: if each kept the other, only the garbage collector
        would free them, and all that the frames of their tracebacks hold.
        """
        cause = self.cause
        self._cause = None
        return cause


class Stat(NamedTuple):
    """What is known of a node beside its data. `ephemeral_owner` is a session id, or 0."""

    czxid: int
    mzxid: int
    version: int
    children_version: int
    ephemeral_owner: int
    children_count: int
    ctime_ms: int
    mtime_ms: int


class EventKind(Enum):
    """What happened to a watched node."""

    CREATED = "created"
    CHANGED = "changed"
    DELETED = "deleted"
    CHILDREN = "children"


class Event(NamedTuple):
    """What a watch is called with."""

    kind: EventKind
    path: str


class SessionState(Enum):
    """How a session stands."""

    CONNECTED = "connected"
    SUSPENDED = "suspended"
    EXPIRED = "expired"
    CLOSED = "closed"


Watch = Callable[[Event], None]
StateListener = Callable[[SessionState], None]


class Create(NamedTuple):
    """Make a node."""

    path: str
    data: bytes | None = None
    ephemeral: bool = False
    sequential: bool = False


class SetData(NamedTuple):
    """Replace a node's data."""

    path: str
    data: bytes | None
    version: int = ANY_VERSION


class Delete(NamedTuple):
    """Remove a node."""

    path: str
    version: int = ANY_VERSION


class Check(NamedTuple):
    """Do nothing, but fail the multi unless the node has this version."""

    path: str
    version: int


Operation = Create | SetData | Delete | Check


class MetadataStore(ABC):
    """One session with the store. Callbacks run on the event loop of the caller."""

    @property
    @abstractmethod
    def session_id(self) -> int:
        """The id that this session's ephemerals carry as their owner."""

    @property
    @abstractmethod
    def state(self) -> SessionState:
        """How the session stands now."""

    @abstractmethod
    def on_state(self, listener: StateListener) -> None:
        """Have `listener` called at every change of the session's state from now on."""

    @abstractmethod
    async def get(self, path: str, watch: Watch | None = None) -> tuple[bytes | None, Stat]:
        """Data and stat of a node. NoNode (which sets no watch) when there is none."""

    @abstractmethod
    async def exists(self, path: str, watch: Watch | None = None) -> Stat | None:
        """The stat of a node or None; the watch also tells of its creation."""

    @abstractmethod
    async def children(self, path: str, watch: Watch | None = None) -> list[str]:
        """The names of a node's children, sorted. NoNode (which sets no watch) when there is no such node."""

    @abstractmethod
    async def multi(self, operations: Sequence[Operation]) -> list[str | Stat | None]:
        """Do all operations as one transaction. The results in their order: the path of a Create, the stat
        after a SetData, None else. TransactionFailed when nothing was done.
        """

    @abstractmethod
    async def close(self) -> None:
        """End the session; its ephemerals go at once."""

    async def create(
        self, path: str, data: bytes | None = None, *, ephemeral: bool = False, sequential: bool = False
    ) -> str:
        """Make a node under an existing parent. Returns its path. NodeExists, NoNode,
        NoChildrenForEphemerals."""
        result = await self._one(Create(path, data, ephemeral, sequential))
        assert isinstance(result, str)
        return result

    async def set(self, path: str, data: bytes | None, version: int = ANY_VERSION) -> Stat:
        """Replace a node's data if it has the version. Returns the new stat. NoNode, BadVersion."""
        result = await self._one(SetData(path, data, version))
        assert isinstance(result, Stat)
        return result

    async def delete(self, path: str, version: int = ANY_VERSION) -> None:
        """Remove a node without children if it has the version. NoNode, BadVersion, NotEmpty."""
        await self._one(Delete(path, version))

    async def ensure(self, path: str) -> None:
        """Make the node and its parents, as far as they are missing, persistent and without data."""
        names = path.strip("/").split("/")
        for depth in range(1, len(names) + 1):
            ancestor = "/" + "/".join(names[:depth])
            if await self.exists(ancestor) is None:
                try:
                    await self.create(ancestor)
                except NodeExists:
                    continue

    async def ensure_all(self, paths: Sequence[str]) -> None:
        """As `ensure` for several nodes, in one transaction where nobody else makes them at the same time."""
        missing: list[Operation] = []
        seen: set[str] = set()
        for path in paths:
            names = path.strip("/").split("/")
            for depth in range(1, len(names) + 1):
                ancestor = "/" + "/".join(names[:depth])
                if ancestor not in seen and await self.exists(ancestor) is None:
                    missing.append(Create(ancestor))
                seen.add(ancestor)
        if not missing:
            return
        try:
            await self.multi(missing)
        except TransactionFailed:
            for path in paths:
                await self.ensure(path)

    async def put(self, path: str, data: bytes | None) -> None:
        """Have the node hold `data`, whether it exists or not, and make its parents if they are missing.

        What was not answered is done again, which does no harm: never ConnectionLost.
        """
        while True:
            try:
                await self.set(path, data)
            except ConnectionLost:
                continue
            except NoNode:
                with suppress(NodeExists, ConnectionLost):
                    await self._create_with_parents(path, data)
                    return
            else:
                return

    async def _create_with_parents(self, path: str, data: bytes | None) -> None:
        parent = path.rpartition("/")[0]
        if parent:
            await self.ensure(parent)
        await self.create(path, data)

    async def delete_tree(self, path: str) -> None:
        """Remove a node and all below it, those at the bottom first; nothing when there is none.

        One transaction where there are few, else several: a ZooKeeper takes no more than 1 MB at once.
        """
        operations: list[Operation] = []
        paths = [path]
        while paths:
            current = paths.pop()
            try:
                paths.extend(f"{current}/{name}" for name in await self.children(current))
            except NoNode:
                if current == path:
                    return
                continue
            operations.append(Delete(current))
            if len(operations) % _AT_ONCE == 0:
                # The event loop is others', too.
                await asyncio.sleep(0)
        while operations:
            await self.multi(operations[: -_AT_ONCE - 1 : -1])
            del operations[-_AT_ONCE:]

    async def _one(self, operation: Operation) -> str | Stat | None:
        try:
            return (await self.multi([operation]))[0]
        except TransactionFailed as failed:
            raise failed.take_cause() from None


class StoreSession(MetadataStore):
    """A session that keeps its own state, with what sessions of all kinds of stores have in common."""

    def __init__(self, session_id: int, state: SessionState = SessionState.CONNECTED) -> None:
        self._session_id = session_id
        self._state = state
        self._listeners: list[StateListener] = []

    @property
    def session_id(self) -> int:
        return self._session_id

    @property
    def state(self) -> SessionState:
        return self._state

    def on_state(self, listener: StateListener) -> None:
        self._listeners.append(listener)

    def _change_state(self, state: SessionState) -> None:
        self._state = state
        for listener in self._listeners:
            listener(state)

    def _check_connected(self) -> None:
        """SessionExpired unless the session is CONNECTED."""
        if self._state is not SessionState.CONNECTED:
            raise SessionExpired(f"session {self._session_id} is {self._state.value}")
