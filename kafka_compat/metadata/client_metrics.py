"""DescribeConfigs and AlterConfigs for client-metrics resources (KIP-714), as in Kafka's KRaft mode.

The definitions of these settings are imported on first use.
"""

from collections.abc import Callable, Mapping, Sequence

from kafka_compat.config import ConfigKey
from kafka_compat.config.synonyms import ConfigEntry, ConfigSource, Synonym, type_number
from kafka_compat.coordination.store.metadata_store import MetadataStore
from kafka_compat.error_mapping import store_errors_mapped
from kafka_compat.errors import ErrorCode, KafkaError


async def names(store: MetadataStore) -> list[str]:
    """Return the names of the client-metrics resources. Raises MetadataStoreError if the store fails."""
    from kafka_compat.telemetry.resources import resource_names

    return await resource_names(store)


async def described(store: MetadataStore, name: str, keys: Sequence[str] | None) -> list[ConfigEntry]:
    """Return all settings of a resource, even if it does not exist. Raises KafkaError if `name` is empty."""
    from kafka_compat.telemetry.resources import resource_settings
    from kafka_compat.telemetry.subscriptions import ABOUT, KEYS

    if not name:
        raise KafkaError(ErrorCode.INVALID_REQUEST, "Client metrics subscription name must not be empty")
    with store_errors_mapped():
        given = await resource_settings(store, name)
    return [_entry(key, given, ABOUT[key.name]) for key in KEYS.values() if not keys or key.name in keys]


def _entry(key: ConfigKey, given: Mapping[str, str], about: str) -> ConfigEntry:
    """Return the description of a setting. As in Kafka, the only synonym is the default."""
    kind = type_number(key)
    if key.name not in given:
        return ConfigEntry(key.name, key.default, False, ConfigSource.DEFAULT, False, (), kind, about)
    own = Synonym(key.name, given[key.name], ConfigSource.CLIENT_METRICS)
    return ConfigEntry(key.name, own.value, False, own.source, False, (own,), kind, about)


async def change(
    store: MetadataStore,
    name: str,
    new_settings: Callable[[dict[str, str]], dict[str, str]],
    validate_only: bool,
) -> None:
    """Replace a resource's settings, or delete the resource if no setting remains. Raises KafkaError if the
    change is invalid, and MetadataStoreError if the store fails.
    """
    from kafka_compat.telemetry.resources import put_resource, resource_settings
    from kafka_compat.telemetry.subscriptions import subscription

    settings = new_settings(await resource_settings(store, name) if name else {})
    if not name:
        raise KafkaError(ErrorCode.INVALID_REQUEST, "Subscription name can't be empty")
    subscription(settings)
    if not validate_only:
        await put_resource(store, name, settings)
