"""Interface of the metadata store that brokers share: a tree of small versioned nodes, as in ZooKeeper.

Rules:
- Every change has a transaction ID (zxid) greater than all earlier IDs, even across restarts.
- The version of a node counts its writes, starting at 0. A write or delete may require a version (-1: any).
- Ephemeral nodes exist as long as the session that created them, and have no children.
- The name of a sequential node ends with a ten-digit counter, which its parent keeps.
- `multi` performs either all of its operations or none.
- A watch fires once, at the first change after the read that set it, before that change can be read.
- While the store is unreachable, a session is suspended, but nothing is lost. When a session expires, its
  ephemeral nodes are deleted, all later calls raise SessionExpired, and its owner must open a new session.
"""

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from contextlib import suppress
from enum import Enum
from typing import NamedTuple

ANY_VERSION = -1


_AT_ONCE = 256
"""Maximum number of nodes that `delete_tree` deletes in one transaction."""


class MetadataStoreError(Exception):
    """Base class of all errors from store operations."""


class NoNode(MetadataStoreError):
    """A missing node, or a missing parent of a node to create."""


class NodeExists(MetadataStoreError):
    """A node to create that already exists."""


class BadVersion(MetadataStoreError):
    """A node whose version differs from the required version."""


class NotEmpty(MetadataStoreError):
    """A node that cannot be deleted because it has children."""


class NoChildrenForEphemerals(MetadataStoreError):
    """A node to create under an ephemeral node, which cannot have children."""


class SessionExpired(MetadataStoreError):
    """A session that has ended. Its ephemeral nodes have been deleted."""


class ConnectionLost(MetadataStoreError):
    """An operation without a response, which may or may not have been performed."""


class NotAllowed(MetadataStoreError):
    """An operation that the node's ACL does not allow for this session."""


class LoginFailed(MetadataStoreError):
    """Rejected or missing credentials for the store. The message contains the names of the settings."""


class TransactionFailed(MetadataStoreError):
    """A transaction that had no effect, because the operation at `index` failed with `cause`."""

    def __init__(self, index: int, cause: MetadataStoreError) -> None:
        super().__init__(f"operation {index}: {cause!r}")
        self.index = index
        self._cause: MetadataStoreError | None = cause

    @property
    def cause(self) -> MetadataStoreError:
        """The error of the failed operation."""
        assert self._cause is not None
        return self._cause

    def take_cause(self) -> MetadataStoreError:
        """Return the cause, to be raised instead of this error, and drop the reference to it.

        This error becomes the context of the raised cause. If the errors referred to each other, only the
        garbage collector would free them and the frames of their tracebacks.
        """
        cause = self.cause
        self._cause = None
        return cause


class Stat(NamedTuple):
    """Metadata of a node. `ephemeral_owner` is the session ID of an ephemeral node, and otherwise 0."""

    czxid: int
    mzxid: int
    version: int
    children_version: int
    ephemeral_owner: int
    children_count: int
    ctime_ms: int
    mtime_ms: int


class EventKind(Enum):
    """The kind of change to a watched node."""

    CREATED = "created"
    CHANGED = "changed"
    DELETED = "deleted"
    CHILDREN = "children"


class Event(NamedTuple):
    """A change to a watched node, as passed to the watch."""

    kind: EventKind
    path: str


class SessionState(Enum):
    """State of a session."""

    CONNECTED = "connected"
    SUSPENDED = "suspended"
    EXPIRED = "expired"
    CLOSED = "closed"


Watch = Callable[[Event], None]
StateListener = Callable[[SessionState], None]


class Create(NamedTuple):
    """Operation that creates a node."""

    path: str
    data: bytes | None = None
    ephemeral: bool = False
    sequential: bool = False


class SetData(NamedTuple):
    """Operation that replaces the data of a node."""

    path: str
    data: bytes | None
    version: int = ANY_VERSION


class Delete(NamedTuple):
    """Operation that deletes a node."""

    path: str
    version: int = ANY_VERSION


class Check(NamedTuple):
    """Operation that fails unless the node has this version."""

    path: str
    version: int


Operation = Create | SetData | Delete | Check


class MetadataStore(ABC):
    """One session with the store. Callbacks run on the caller's event loop."""

    @property
    @abstractmethod
    def session_id(self) -> int:
        """The session ID, which identifies the owner of ephemeral nodes."""

    @property
    @abstractmethod
    def state(self) -> SessionState:
        """The current state of the session."""

    @property
    def tree_id(self) -> str:
        """Identifies the tree, if the sessions of a broker may be in several ones. Equal otherwise."""
        return ""

    @abstractmethod
    def on_state(self, listener: StateListener) -> None:
        """Call `listener` at each change of the session's state."""

    @abstractmethod
    async def get(self, path: str, watch: Watch | None = None) -> tuple[bytes | None, Stat]:
        """Return the data and stat of a node. Raises NoNode, without setting the watch, if it is missing."""

    @abstractmethod
    async def exists(self, path: str, watch: Watch | None = None) -> Stat | None:
        """Return the stat of a node. If it is missing, return None, and fire the watch when it is created."""

    @abstractmethod
    async def children(self, path: str, watch: Watch | None = None) -> list[str]:
        """Return a node's child names, sorted. Raises NoNode, without setting the watch, if it is missing."""

    @abstractmethod
    async def multi(self, operations: Sequence[Operation]) -> list[str | Stat | None]:
        """Perform all operations as one transaction. Return the results in order: the path of a Create, the
        stat after a SetData, and None for other operations. Raises TransactionFailed if an operation fails.
        """

    @abstractmethod
    async def close(self) -> None:
        """End the session. Its ephemeral nodes are deleted at once."""

    async def create(
        self, path: str, data: bytes | None = None, *, ephemeral: bool = False, sequential: bool = False
    ) -> str:
        """Create a node, and return its path. Raises NodeExists, NoNode if the parent is missing, or
        NoChildrenForEphemerals if the parent is ephemeral.
        """
        result = await self._one(Create(path, data, ephemeral, sequential))
        assert isinstance(result, str)
        return result

    async def set(self, path: str, data: bytes | None, version: int = ANY_VERSION) -> Stat:
        """Replace the data of a node if it has this version. Return the stat. Raises NoNode or BadVersion."""
        result = await self._one(SetData(path, data, version))
        assert isinstance(result, Stat)
        return result

    async def delete(self, path: str, version: int = ANY_VERSION) -> None:
        """Delete a node if it has this version and no children. Raises NoNode, BadVersion or NotEmpty."""
        await self._one(Delete(path, version))

    async def ensure(self, path: str) -> None:
        """Create a persistent node without data, and its missing parents, unless it exists."""
        names = path.strip("/").split("/")
        for depth in range(1, len(names) + 1):
            ancestor = "/" + "/".join(names[:depth])
            if await self.exists(ancestor) is None:
                try:
                    await self.create(ancestor)
                except NodeExists:
                    continue

    async def ensure_all(self, paths: Sequence[str]) -> None:
        """Create missing nodes and parents in one transaction or, if it fails, one by one."""
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
        """Set the data of a node. Create the node and its parents if they are missing.

        Never raises ConnectionLost: operations without a response are retried, because that is harmless.
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
        """Delete a node, if it exists, and all nodes below it, children first.

        Many nodes are deleted in several transactions, because ZooKeeper accepts at most 1 MB at once.
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
    """Base class of all sessions. It keeps the state of the session."""

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
        if self._state is not SessionState.CONNECTED:
            raise SessionExpired(f"session {self._session_id} is {self._state.value}")
