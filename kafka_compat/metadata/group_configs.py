"""Settings of groups in memory. The metadata feed reports changes.

Coordinators ask `GroupConfigManager` at each heartbeat, so that a change takes effect without a restart.
"""

import logging
from collections.abc import Mapping
from typing import Final

from kafka_compat.config import BrokerConfig
from kafka_compat.config.group import (
    ConsumerGroupConfig,
    ShareGroupConfig,
    consumer_group_config,
    share_group_config,
)
from kafka_compat.coordination.nodes import malformed_nodes, znodes
from kafka_compat.coordination.nodes.malformed_nodes import MalformedNode, MalformedNodes
from kafka_compat.coordination.store.metadata_store import MetadataStore, NoNode
from kafka_compat.metadata.feed import ConfigChange, MetadataDelta, MetadataFeed

log = logging.getLogger(__name__)

_NONE: Final[Mapping[str, str]] = {}


class GroupConfigManager:
    """The effective settings of all groups, and the stored settings that they derive from."""

    def __init__(self, config: BrokerConfig, store: MetadataStore, feed: MetadataFeed) -> None:
        self._config = config
        self._store = store
        self._feed = feed
        self._malformed = MalformedNodes()
        self._overrides: dict[str, Mapping[str, str]] = {}
        self._share: dict[str, ShareGroupConfig] = {}
        self._consumer: dict[str, ConsumerGroupConfig] = {}
        """Effective settings of groups with settings of their own, and with the key "" the broker's defaults.
        They apply to `_revision` of the broker's configuration.
        """
        self._revision = config.revision
        feed.subscribe(self._on_metadata)

    def overrides(self, group_id: str) -> Mapping[str, str]:
        """Return the settings that a group overrides."""
        return self._overrides.get(group_id, _NONE)

    def consumer(self, group_id: str) -> ConsumerGroupConfig:
        """Return a group's effective settings for the consumer protocol, within the broker's limits."""
        self._forget_if_changed()
        key = group_id if group_id in self._overrides else ""
        found = self._consumer.get(key)
        if found is None:
            found = self._consumer[key] = consumer_group_config(self._config, self.overrides(key))
        return found

    def share(self, group_id: str) -> ShareGroupConfig:
        """Return the effective settings of a share group, within the broker's limits."""
        self._forget_if_changed()
        key = group_id if group_id in self._overrides else ""
        found = self._share.get(key)
        if found is None:
            found = self._share[key] = share_group_config(self._config, self.overrides(key))
        return found

    def _forget_if_changed(self) -> None:
        """Forget the effective settings if the broker's configuration has changed."""
        if self._revision != self._config.revision:
            self._revision = self._config.revision
            self._consumer.clear()
            self._share.clear()

    async def read_all(self) -> None:
        """Read the settings of all groups. Raises MetadataStoreError if the store fails."""
        try:
            nodes = await self._store.children(znodes.GROUPS)
        except NoNode:
            return
        for node in nodes:
            change = await self._read(node)
            if change is not None:
                self._know(change)

    async def reread(self, node: str) -> None:
        """Read and publish the current settings of the group with this node under /config/groups."""
        change = await self._read(node)
        if change is not None:
            self._feed.publish_config(change)

    async def _read(self, node: str) -> ConfigChange | None:
        """Read a group's settings, which are empty if the node does not exist. Return None if the node is
        malformed: the group keeps its previous settings.
        """
        path = znodes.config_path("groups", node)
        try:
            data, stat = await self._store.get(path)
        except NoNode:
            return ConfigChange(f"groups/{node}", settings=_NONE)
        try:
            return ConfigChange(f"groups/{node}", settings=znodes.decode_config(path, data))
        except MalformedNode as error:
            self._malformed.report(error, stat.version, malformed_nodes.MALFORMED_GROUP)
            return None

    def _on_metadata(self, delta: MetadataDelta) -> None:
        for change in delta.config_changes:
            self._know(change)

    def _know(self, change: ConfigChange) -> None:
        group_id = change.group
        if group_id is None or change.settings is None:
            return
        self._consumer.pop(group_id, None)
        self._share.pop(group_id, None)
        if change.settings:
            self._overrides[group_id] = dict(change.settings)
        else:
            self._overrides.pop(group_id, None)
