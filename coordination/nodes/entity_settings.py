"""Quotas and credentials of users, clients and IP addresses, stored under /config."""

from kafka_compat.coordination.nodes import znodes
from kafka_compat.coordination.store.metadata_store import MetadataStore, NoNode


async def stored_settings(store: MetadataStore, path: str) -> dict[str, str]:
    """Return the settings in a node, or {} if it is missing. Raises MalformedNode if they are invalid."""
    try:
        data, _ = await store.get(path)
    except NoNode:
        return {}
    return znodes.decode_config(path, data)


async def entity_paths(store: MetadataStore) -> list[str]:
    """Return the paths, relative to /config, of all entities that may have quotas: `clients/C`, `ips/A` and
    `users/U`. After each user come the paths of the user's clients, `users/U/clients/C`.
    """
    found: list[str] = []
    for folder in ("clients", "ips", "users"):
        for path in await _children(store, folder):
            found.append(path)
            if folder == "users":
                found += await _children(store, f"{path}/clients")
    return found


async def _children(store: MetadataStore, folder: str) -> list[str]:
    try:
        return [f"{folder}/{name}" for name in sorted(await store.children(f"/config/{folder}"))]
    except NoNode:
        return []
