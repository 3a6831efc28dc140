"""In-memory tree of versioned nodes, without a clock, disk or sessions."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from kafka_compat.coordination.store import metadata_store as stores
from kafka_compat.coordination.store.metadata_store import Event, EventKind, MetadataStoreError, Stat

NO_CHILDREN: "dict[str, Node]" = {}

NodeValues = tuple[bytes | None, int, int, int, int, int, int, int]
"""data, czxid, mzxid, version, children created, owner, creation time and modification time of a node."""


class Node:
    """One node of the tree. `children` maps names to nodes."""

    __slots__ = (
        "children",
        "created_children",
        "ctime_ms",
        "czxid",
        "data",
        "mtime_ms",
        "mzxid",
        "owner",
        "version",
    )

    def __init__(self, data: bytes | None, zxid: int, now_ms: int, owner: int) -> None:
        self.data = data
        self.czxid = self.mzxid = zxid
        self.ctime_ms = self.mtime_ms = now_ms
        self.version = 0
        self.created_children = 0
        """How many children were ever created: the number of the next sequential node, as in ZooKeeper."""
        self.owner = owner
        self.children = NO_CHILDREN
        """Nodes without children share one empty object, which `adopt` replaces."""

    def adopt(self, name: str, child: "Node") -> None:
        """Add a child with this name."""
        if not self.children:
            self.children = {}
        self.children[name] = child

    def values(self) -> "NodeValues":
        """Return a copy of everything but the children."""
        return (
            self.data,
            self.czxid,
            self.mzxid,
            self.version,
            self.created_children,
            self.owner,
            self.ctime_ms,
            self.mtime_ms,
        )

    @property
    def children_version(self) -> int:
        """Return how many times children have been created or deleted."""
        return 2 * self.created_children - len(self.children)

    def stat(self) -> Stat:
        """Return the current stat."""
        return Stat(
            self.czxid,
            self.mzxid,
            self.version,
            self.children_version,
            self.owner,
            len(self.children),
            self.ctime_ms,
            self.mtime_ms,
        )


def check_path(path: str) -> None:
    """Raise ValueError if `path` is not a valid node path."""
    if not path.startswith("/") or (path != "/" and path.endswith("/")) or "//" in path or "\0" in path:
        raise ValueError(f"{path!r} is not a path: expected /name/name")


def split(path: str) -> tuple[str, str]:
    """Split a path into its parent and its name: "/a/b" into "/a" and "b"."""
    parent, _, name = path.rpartition("/")
    return parent or "/", name


class ImageClosed(Exception):
    """An image that can no longer be read."""


class TreeImage:
    """The nodes of a tree at one moment, read little by little while the tree changes."""

    def __init__(self, tree: "Tree") -> None:
        self._tree: Tree | None = tree
        self._paths = list(tree.nodes)
        self._kept: dict[str, NodeValues] = {}
        """The earlier values of nodes that have changed or been deleted since."""
        self.count = len(self._paths)

    def keep(self, path: str, node: Node) -> None:
        """Keep the values of a node that is about to change."""
        if path not in self._kept:
            self._kept[path] = node.values()

    def read(self) -> Iterator[tuple[str, NodeValues]]:
        """Yield all nodes once, parents before their children. Raises ImageClosed."""
        for path in self._paths:
            if self._tree is None:
                raise ImageClosed("a later image or tree has replaced this one")
            yield path, self._kept.get(path) or self._tree.nodes[path].values()

    def close(self) -> None:
        """Stop keeping values."""
        if self._tree is not None and self._tree.image is self:
            self._tree.image = None
        self._tree = None


class Tree:
    """A tree of nodes, and the ID of its last transaction."""

    def __init__(self) -> None:
        self.nodes: dict[str, Node] = {"/": Node(None, 0, 0, 0)}
        self.zxid = 0
        self.image: TreeImage | None = None

    def take_image(self) -> TreeImage:
        """Return an image of the current tree. An earlier image is closed."""
        if self.image is not None:
            self.image.close()
        self.image = TreeImage(self)
        return self.image

    def node(self, path: str) -> Node:
        """Return the node at a path. Raises NoNode if it is missing."""
        try:
            return self.nodes[path]
        except KeyError:
            raise stores.NoNode(path) from None

    def apply(
        self, operations: Sequence[stores.Operation], session_id: int, now_ms: int
    ) -> tuple[list[str | Stat | None], list[list[Any]], list[Event]]:
        """Perform all operations. Return their results, the changes to pass to `replay`, and the events
        for watches of the changed nodes. Raises TransactionFailed, without changes, if an operation fails.
        """
        zxid = self.zxid + 1
        results: list[str | Stat | None] = []
        changes: list[list[Any]] = []
        undo: list[Callable[[], None]] = []
        for index, operation in enumerate(operations):
            try:
                results.append(self._apply_one(operation, session_id, zxid, now_ms, changes, undo))
            except MetadataStoreError as error:
                for step in reversed(undo):
                    step()
                raise stores.TransactionFailed(index, error) from None
        if changes:
            self.zxid = zxid
        return results, changes, list(_events(changes))

    def replay(self, zxid: int, now_ms: int, changes: Iterable[Sequence[Any]]) -> None:
        """Repeat the changes of an earlier transaction."""
        for kind, path, *rest in changes:
            if kind == "create":
                self._add(path, rest[0], zxid, now_ms, rest[1])
            elif kind == "set":
                self._set(path, self.node(path), rest[0], zxid, now_ms)
            else:
                self._remove(path)
        self.zxid = zxid

    def ephemerals(self, session_id: int | None = None) -> list[str]:
        """Return the paths of the ephemeral nodes of a session, or of all sessions if None."""
        return [
            path
            for path, node in self.nodes.items()
            if node.owner and (session_id is None or node.owner == session_id)
        ]

    def _apply_one(
        self,
        operation: stores.Operation,
        session_id: int,
        zxid: int,
        now_ms: int,
        changes: list[list[Any]],
        undo: list[Callable[[], None]],
    ) -> str | Stat | None:
        path = operation.path
        check_path(path)
        if isinstance(operation, stores.Create):
            parent_path, _ = split(path)
            parent = self.node(parent_path)
            if parent.owner:
                raise stores.NoChildrenForEphemerals(path)
            if operation.sequential:
                path = f"{path}{parent.created_children:010d}"
            if path in self.nodes:
                raise stores.NodeExists(path)
            owner = session_id if operation.ephemeral else 0
            undo.append(self._undo_create(path, parent))
            self._add(path, operation.data, zxid, now_ms, owner)
            changes.append(["create", path, operation.data, owner])
            return path
        node = self.node(path)
        if operation.version not in (stores.ANY_VERSION, node.version):
            raise stores.BadVersion(f"{path}: is {node.version}, not {operation.version}")
        if isinstance(operation, stores.Check):
            return None
        if isinstance(operation, stores.SetData):
            undo.append(self._undo_set(node))
            self._set(path, node, operation.data, zxid, now_ms)
            changes.append(["set", path, operation.data])
            return node.stat()
        assert isinstance(operation, stores.Delete)
        if node.children or path == "/":
            raise stores.NotEmpty(path)
        parent = self.nodes[split(path)[0]]
        undo.append(self._undo_delete(path, node, parent))
        self._remove(path)
        changes.append(["delete", path])
        return None

    def _undo_create(self, path: str, parent: Node) -> Callable[[], None]:
        def step() -> None:
            del self.nodes[path], parent.children[split(path)[1]]
            parent.created_children -= 1

        return step

    def _undo_set(self, node: Node) -> Callable[[], None]:
        before = node.data, node.mzxid, node.mtime_ms, node.version

        def step() -> None:
            node.data, node.mzxid, node.mtime_ms, node.version = before

        return step

    def _undo_delete(self, path: str, node: Node, parent: Node) -> Callable[[], None]:
        def step() -> None:
            self.nodes[path] = node
            parent.adopt(split(path)[1], node)

        return step

    def _add(self, path: str, data: bytes | None, zxid: int, now_ms: int, owner: int) -> None:
        parent_path, name = split(path)
        parent = self.node(parent_path)
        if self.image is not None:
            self.image.keep(parent_path, parent)
        node = self.nodes[path] = Node(data, zxid, now_ms, owner)
        parent.adopt(name, node)
        parent.created_children += 1

    def _set(self, path: str, node: Node, data: bytes | None, zxid: int, now_ms: int) -> None:
        if self.image is not None:
            self.image.keep(path, node)
        node.data = data
        node.mzxid = zxid
        node.mtime_ms = now_ms
        node.version += 1

    def _remove(self, path: str) -> None:
        parent_path, name = split(path)
        parent = self.node(parent_path)
        if self.image is not None:
            self.image.keep(parent_path, parent)
            self.image.keep(path, self.nodes[path])
        del self.nodes[path]
        del parent.children[name]


def _events(changes: Iterable[Sequence[Any]]) -> Iterator[Event]:
    for kind, path, *_ in changes:
        if kind == "set":
            yield Event(EventKind.CHANGED, path)
            continue
        yield Event(EventKind.CREATED if kind == "create" else EventKind.DELETED, path)
        yield Event(EventKind.CHILDREN, split(path)[0])
