"""The topics' own settings, from the store into effect on the logs."""

from __future__ import annotations

from collections.abc import Mapping

from kafka_compat.coordination.nodes import znodes
from kafka_compat.coordination.nodes.malformed_nodes import MALFORMED_SETTINGS, MalformedNode, MalformedNodes
from kafka_compat.coordination.store.metadata_store import MetadataStore, NoNode
from kafka_compat.metadata.cache import MetadataCache
from kafka_compat.metadata.topic_overrides import TopicOverrides
from kafka_compat.replication.replica_manager import ReplicaManager

DELETES_NOTHING = {"cleanup.policy": "delete", "retention.ms": "-1", "retention.bytes": "-1"}
"""For a topic whose settings nobody can read: by the broker's defaults a compacted one would lose records."""


class TopicSettings:
    """Reads the settings of topics and lets their partitions obey them."""

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

    async def read_all(self) -> None:
        """Learn the topics' own settings, before any log is opened."""
        try:
            topics = await self._store.children(znodes.TOPICS)
        except NoNode:
            return
        for topic in topics:
            stored = await self._stored(topic)
            if stored is not None:
                self._know(topic, stored)

    def apply(self, topic: str, overrides: Mapping[str, str]) -> None:
        """Let changed settings take effect on the topic's logs."""
        self._know(topic, overrides)
        self._configure(topic)

    def apply_broker_defaults(self) -> None:
        """Let changed broker settings take effect on every log that does not override them."""
        for topic in list(self._metadata.topics):
            self._configure(topic)

    def forget(self, topic: str) -> None:
        """A topic is gone."""
        self.overrides.forget(topic)
        self._replicas.quotas.configure_topic(topic, {})

    async def _stored(self, topic: str) -> dict[str, str] | None:
        """What the store has; None where it has nothing of the topic. Of a malformed node, what it said
        before, or else settings with which nothing is deleted."""
        path = znodes.config_path("topics", topic)
        try:
            data, stat = await self._store.get(path)
        except NoNode:
            return None
        try:
            return znodes.decode_config(path, data)
        except MalformedNode as error:
            self._malformed.tell(error, stat.version, MALFORMED_SETTINGS)
            known = topic in self.overrides
            return dict(self.overrides.of(topic) if known else DELETES_NOTHING)

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
