"""Loading of the dynamic broker settings, at startup and after changes. `config_manager` changes them."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from kafka_compat.config import ConfigError, broker_keys
from kafka_compat.config.keys import dynamic_only_keys
from kafka_compat.coordination.nodes import znodes
from kafka_compat.coordination.nodes.malformed_nodes import MalformedNode
from kafka_compat.coordination.store.metadata_store import NoNode
from kafka_compat.metadata.feed import ConfigChange

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from kafka_compat.config import BrokerConfig
    from kafka_compat.coordination.store.metadata_store import MetadataStore
    from kafka_compat.metadata.cache import MetadataCache

    BrokerCheck = Callable[[BrokerConfig], Awaitable[None]]

log = logging.getLogger(__name__)


class DynamicSettings:
    """The stored settings of a broker, and the checks of new ones."""

    def __init__(self, config: BrokerConfig, store: MetadataStore, metadata: MetadataCache) -> None:
        self.config = config
        self.store = store
        self.metadata = metadata
        #: Functions that check a broker's settings before they are stored. They raise ConfigError.
        self.broker_checks: list[BrokerCheck] = []
        #: Functions that check the files named in settings, even if the settings are unchanged.
        self.file_checks: list[BrokerCheck] = []

    async def load(self) -> None:
        """Load the stored dynamic broker settings. Invalid settings are skipped and logged."""
        try:
            default = _usable(await self.stored("brokers", znodes.DEFAULT_ENTITY), "all brokers")
            broker = _usable(await self.stored("brokers", str(self.config.broker_id)), "this broker")
        except MalformedNode as error:
            log.error("Could not read the dynamic broker settings: %s; keeping the previous settings", error)
            return
        try:
            self.config.set_dynamic(default, broker)
        except ConfigError as error:
            log.error("Ignored invalid dynamic broker settings: %s. Set them again", error)

    async def reload(self) -> None:
        """Reload the dynamic broker settings, because another broker changed them, and publish the change."""
        await self.load()
        self.metadata.feed.publish_config(ConfigChange(f"brokers/{self.config.broker_id}"))

    async def stored(self, entity_type: str, entity: str) -> dict[str, str]:
        """Return the stored settings of an entity, which are empty if there are none."""
        try:
            path = znodes.config_path(entity_type, entity)
            data, _ = await self.store.get(path)
        except (NoNode, ValueError):
            return {}
        return znodes.decode_config(path, data)


def _usable(settings: dict[str, str], whom: str) -> dict[str, str]:
    usable = {}
    for name, value in settings.items():
        key = broker_keys().get(name) or dynamic_only_keys().get(name)
        try:
            if key:
                key.parse(value)
            usable[name] = value
        except ConfigError as error:
            log.error("Ignored an invalid dynamic setting of %s: %s. Set it again", whom, error)
    return usable
