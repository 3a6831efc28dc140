"""The ACLs of all ZooKeeper nodes below a root, as zkCli's getAcl shows them."""

from __future__ import annotations

from typing import Any

from kazoo.client import KazooClient
from kazoo.exceptions import NoAuthError, NoNodeError

OPEN = ("world:anyone:ALL",)


def node_acls(client: KazooClient, root: str = "") -> dict[str, tuple[str, ...]]:
    """Return the ACLs by path below `root`, with "/" for the root itself. Children of nodes that this client
    may not read are omitted.
    """
    found: dict[str, tuple[str, ...]] = {}
    paths = [""]
    while paths:
        path = paths.pop()
        try:
            acls, _ = client.get_acls(root + path or "/")
        except NoNodeError:
            continue
        found[path or "/"] = tuple(sorted(map(_shown, acls)))
        try:
            paths += [f"{path}/{name}" for name in client.get_children(root + path or "/")]
        except (NoNodeError, NoAuthError):
            continue
    return found


def _shown(acl: Any) -> str:
    return f"{acl.id.scheme}:{acl.id.id}:{'+'.join(acl.acl_list)}"
