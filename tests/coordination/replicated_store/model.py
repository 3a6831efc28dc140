"""A model of the tree, as a function from a state and an operation to a state and a result."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from kafka_compat.coordination.store import metadata_store as stores


class Value(NamedTuple):
    """A node. `created` counts the children that were ever created."""

    data: bytes | None
    version: int = 0
    owner: int = 0
    created: int = 0


State = Mapping[str, Value]
EMPTY: State = {"/": Value(None)}

Results = tuple[object, ...]
"""A path for a Create, a version for a SetData, None for others. After a failure, the index and the error."""


def parent_of(path: str) -> str:
    return path.rpartition("/")[0] or "/"


def multi(state: State, session: int, operations: Sequence[stores.Operation]) -> tuple[State, Results]:
    """Perform a transaction."""
    nodes = dict(state)
    results: list[object] = []
    for index, operation in enumerate(operations):
        path = operation.path
        parent = parent_of(path)
        if isinstance(operation, stores.Create):
            if parent not in nodes:
                return state, (index, stores.NoNode)
            if nodes[parent].owner:
                return state, (index, stores.NoChildrenForEphemerals)
            if operation.sequential:
                path += f"{nodes[parent].created:010d}"
            if path in nodes:
                return state, (index, stores.NodeExists)
            nodes[path] = Value(operation.data, owner=session if operation.ephemeral else 0)
            results.append(path)
            nodes[parent] = nodes[parent]._replace(created=nodes[parent].created + 1)
        else:
            if path not in nodes:
                return state, (index, stores.NoNode)
            if operation.version not in (-1, nodes[path].version):
                return state, (index, stores.BadVersion)
            if isinstance(operation, stores.SetData):
                version = nodes[path].version + 1
                nodes[path] = nodes[path]._replace(data=operation.data, version=version)
                results.append(version)
                continue
            results.append(None)
            if isinstance(operation, stores.Check):
                continue
            if any(parent_of(other) == path for other in nodes if other != "/"):
                return state, (index, stores.NotEmpty)
            del nodes[path]
    return nodes, tuple(results)


def end(state: State, session: int) -> State:
    """Delete the ephemeral nodes of a session."""
    nodes = dict(state)
    for path in [path for path, node in state.items() if node.owner == session]:
        del nodes[path]
    return nodes


def read(state: State, path: str) -> Results:
    """Return the data, version and owner of a node, and its number of children, or () if it is missing."""
    node = state.get(path)
    if node is None:
        return ()
    count = sum(1 for other in state if other != "/" and parent_of(other) == path)
    return node.data, node.version, node.owner, count
