"""Client-metrics resources in the metadata store, under /config/client-metrics.

Apache Kafka stores them only in KRaft mode. Its ZooKeeper-mode brokers do not know that node, and log an
error for a notification in /config/changes about it. Each change therefore also writes the parent node, which
kafka-compat brokers watch.
"""

from collections.abc import Mapping
from urllib.parse import unquote

from kafka_compat.coordination.nodes import znodes
from kafka_compat.coordination.nodes.entity_settings import stored_settings
from kafka_compat.coordination.nodes.znodes import resource_node_name
from kafka_compat.coordination.store import metadata_store as stores
from kafka_compat.coordination.store.metadata_store import MetadataStore


def _path(name: str) -> str:
    return f"{znodes.CLIENT_METRICS}/{resource_node_name(name)}"


async def resource_names(store: MetadataStore, watch: stores.Watch | None = None) -> list[str]:
    """Return the sorted names of all resources, and watch for changes. Raises MetadataStoreError."""
    try:
        if watch is not None:
            await store.get(znodes.CLIENT_METRICS, watch)
        return sorted(map(unquote, await store.children(znodes.CLIENT_METRICS)))
    except stores.NoNode:
        return []


async def resource_settings(store: MetadataStore, name: str) -> dict[str, str]:
    """Return a resource's settings ({} if it does not exist). Raises MalformedNode or MetadataStoreError."""
    return await stored_settings(store, _path(name))


async def put_resource(store: MetadataStore, name: str, settings: Mapping[str, str]) -> None:
    """Replace a resource's settings; without settings, delete the resource. Raises MetadataStoreError."""
    path = _path(name)
    await store.ensure(znodes.CLIENT_METRICS)
    change: list[stores.Operation] = [stores.SetData(znodes.CLIENT_METRICS, b"")]
    is_there = await store.exists(path) is not None
    if settings:
        payload = znodes.encode_config(settings)
        change.append(stores.SetData(path, payload) if is_there else stores.Create(path, payload))
    elif is_there:
        change.append(stores.Delete(path))
    await store.multi(change)
