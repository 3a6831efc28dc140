"""Apply stored topic settings to logs: to all topics at startup, and to a single topic when its settings
change or when this broker is assigned one of its replicas.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from kafka_compat.coordination.nodes import znodes
from kafka_compat.coordination.nodes.malformed_nodes import MALFORMED_SETTINGS, MalformedNode, MalformedNodes
from kafka_compat.coordination.store.metadata_store import MetadataStore, MetadataStoreError, NoNode
from kafka_compat.metadata.feed import ConfigChange, MetadataDelta

if TYPE_CHECKING:
    from kafka_compat.long_work import Turn
    from kafka_compat.metadata.cache import MetadataCache
    from kafka_compat.metadata.topic_overrides import TopicOverrides
    from kafka_compat.replication.replica_manager import ReplicaManager

log = logging.getLogger(__name__)

RETRY_S = 0.1
DELETES_NOTHING = {"cleanup.policy": "delete", "retention.ms": "-1", "retention.bytes": "-1"}
"""Settings used for a topic whose stored settings are malformed: defaults could delete compacted records."""


class TopicSettings:
    """Topic settings, read from the store and applied to logs. The metadata feed reports changes."""

    def __init__(
        self,
        store: MetadataStore,
        overrides: TopicOverrides,
        metadata: MetadataCache,
        replicas: ReplicaManager,
        malformed: MalformedNodes,
    ) -> None:
        self.overrides = overrides
        self._store = store
        self._metadata = metadata
        self._replicas = replicas
        self._malformed = malformed
        metadata.feed.subscribe(self._on_metadata)

    def _on_metadata(self, delta: MetadataDelta) -> None:
        created = {topic.name for topic in delta.created}
        for topic in delta.deleted:
            if topic.name not in created:
                self._forget(topic.name)
        for change in delta.config_changes:
            if change.topic is not None and change.settings is not None:
                self._know(change.topic, change.settings)
                self._configure(change.topic)
            elif change.is_of_broker:
                # The broker's defaults apply to all topics that do not override them.
                for name in list(self._metadata.topics):
                    self._configure(name)

    async def read_all(self) -> None:
        """Read the settings of all topics. Call this before any log is opened."""
        try:
            topics = await self._store.children(znodes.TOPICS)
        except NoNode:
            return
        for topic in topics:
            stored = await self._stored(topic)
            if stored is not None:
                self._know(topic, stored)

    def _forget(self, topic: str) -> None:
        self.overrides.forget(topic)
        self._replicas.quotas.configure_topic(topic, {})

    async def _stored(self, topic: str) -> dict[str, str] | None:
        """Read a topic's stored settings. Return None if there are none. If the node is malformed, return the
        previous settings or, if they are unknown, settings that delete nothing.
        """
        path = znodes.config_path("topics", topic)
        try:
            data, stat = await self._store.get(path)
        except NoNode:
            return None
        try:
            return znodes.decode_config(path, data)
        except MalformedNode as error:
            self._malformed.report(error, stat.version, MALFORMED_SETTINGS)
            return dict(self.overrides.of(topic) if topic in self.overrides else DELETES_NOTHING)

    def _know(self, topic: str, overrides: Mapping[str, str]) -> None:
        self.overrides.put(topic, overrides)
        self._replicas.quotas.configure_topic(topic, overrides)

    def _configure(self, topic: str) -> None:
        known = self._metadata.topics.get(topic)
        if known is None:
            return
        config = self.overrides.log_config(topic)
        for partition in known.partitions:
            held = self._replicas.get(topic, partition.partition)
            if held is not None:
                held.configure(config, self.overrides.min_isr(topic, partition))

    async def learn(self, topics: Iterable[str], turn: Turn | None = None) -> None:
        """Read the settings of topics that are new on this broker. Call this before their logs are created.

        As in Kafka, reads without a response are retried as long as this broker runs, because the controller
        sends its request only once. If `turn` is given, the call yields to the event loop between topics.
        """
        for topic in topics:
            if turn is not None:
                await turn.pause_if_due()
            if topic not in self.overrides:
                stored = await self._stored_at_last(topic)
                # Keep settings that another task has since read, because they are newer.
                if topic not in self.overrides:
                    self._know(topic, stored or {})

    async def _stored_at_last(self, topic: str) -> dict[str, str] | None:
        while True:
            try:
                return await self._stored(topic)
            except MetadataStoreError as error:
                log.info("Could not read the settings of topic %s: %r; retrying", topic, error)
                await asyncio.sleep(RETRY_S)

    async def reread(self, topic: str) -> None:
        """Read and publish the current settings of a topic."""
        stored = await self._stored(topic)
        if stored is not None:
            self._metadata.feed.publish_config(ConfigChange(f"topics/{topic}", settings=stored))
