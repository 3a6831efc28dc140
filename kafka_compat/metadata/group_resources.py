"""DescribeConfigs and AlterConfigs for groups (KIP-848, KIP-1240), as in Apache Kafka 4.4.

A group with settings has a node under /config/groups, which is deleted with its last setting. A group may
have settings before it has members.
"""

from collections.abc import Callable, Sequence
from urllib.parse import unquote

from kafka_compat.config import BrokerConfig, ConfigError
from kafka_compat.config.group import UnknownGroupConfig, check_group_config, group_keys
from kafka_compat.config.synonyms import ConfigEntry, group_entry
from kafka_compat.coordination.nodes import znodes
from kafka_compat.coordination.nodes.entity_settings import stored_settings
from kafka_compat.coordination.nodes.znodes import resource_node_name
from kafka_compat.coordination.store import metadata_store as stores
from kafka_compat.coordination.store.metadata_store import MetadataStore
from kafka_compat.error_mapping import store_errors_mapped
from kafka_compat.errors import ErrorCode, KafkaError
from kafka_compat.metadata.feed import ConfigChange


async def names(store: MetadataStore) -> list[str]:
    """Return the IDs of the groups that have settings. Raises MetadataStoreError if the store fails."""
    try:
        return sorted(map(unquote, await store.children(znodes.GROUPS)))
    except stores.NoNode:
        return []


async def described(
    config: BrokerConfig, store: MetadataStore, group_id: str, keys: Sequence[str] | None
) -> list[ConfigEntry]:
    """Return all settings of a group, even if it does not exist. Raises KafkaError if the ID is empty."""
    if not group_id:
        raise KafkaError(ErrorCode.INVALID_REQUEST, "Group name must not be empty")
    with store_errors_mapped():
        overrides = await stored_settings(store, _path(group_id))
    return [group_entry(config, overrides, name) for name in group_keys() if not keys or name in keys]


async def change(
    config: BrokerConfig,
    store: MetadataStore,
    group_id: str,
    new_settings: Callable[[dict[str, str]], dict[str, str]],
    validate_only: bool,
) -> ConfigChange | None:
    """Replace a group's settings, and return the change to publish, if any. Raises KafkaError if the change
    is invalid, and MetadataStoreError if the store fails.
    """
    if not group_id:
        raise KafkaError(ErrorCode.INVALID_REQUEST, "Default group resources are not allowed.")
    path = _path(group_id)
    settings = new_settings(await stored_settings(store, path))
    try:
        check_group_config(config, settings)
    except (UnknownGroupConfig, ConfigError) as error:
        raise KafkaError(ErrorCode.INVALID_CONFIG, str(error)) from error
    if validate_only:
        return None
    if settings:
        await store.put(path, znodes.encode_config(settings))
    else:
        try:
            await store.delete(path)
        except stores.NoNode:
            return None
    return ConfigChange(f"groups/{resource_node_name(group_id)}", settings=settings, is_local=True)


def _path(group_id: str) -> str:
    return znodes.config_path("groups", resource_node_name(group_id))
