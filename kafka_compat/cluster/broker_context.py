"""Objects of a broker that its cluster membership uses."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import partial
from typing import TYPE_CHECKING

from kafka_compat.tasks import Tasks

if TYPE_CHECKING:
    from kafka_compat.config import BrokerConfig
    from kafka_compat.coordination.store.metadata_store import MetadataStore
    from kafka_compat.long_work import LongWork
    from kafka_compat.metadata.cache import MetadataCache
    from kafka_compat.metadata.dynamic_settings import DynamicSettings
    from kafka_compat.metadata.group_configs import GroupConfigManager
    from kafka_compat.metadata.topic_overrides import TopicOverrides
    from kafka_compat.replication.counts import Counts
    from kafka_compat.replication.flusher import Flusher
    from kafka_compat.replication.leaderships import Leaderships
    from kafka_compat.replication.waiters import CallSoon
    from kafka_compat.security.broker_security import BrokerSecurity
    from kafka_compat.storage.clock import Clock
    from kafka_compat.storage.directories.log_dirs import LogDirs


Listener = Callable[[str], Awaitable[None]]
"""A function that is called with the path of a changed entity under /config, such as `users/alice`."""


class EntityChanges:
    """Notifies the credential and quota caches when settings of users, clients or IP addresses change."""

    def __init__(self, tasks: Tasks) -> None:
        self._tasks = tasks
        self.listeners: list[Listener] = []

    async def tell(self, entity_path: str) -> None:
        """Notify all subscribers, and return when they have reloaded the entity's settings."""
        for listener in self.listeners:
            await listener(entity_path)

    def tell_soon(self, entity_path: str) -> None:
        """Notify all subscribers in a separate task. The task is restarted after errors."""
        if self.listeners and not self._tasks.closed:
            name = f"reading the new settings of {entity_path}"
            self._tasks.spawn(name, partial(self.tell, entity_path), restarts=True)


class BrokerContext:
    """Objects that are created at startup and never replaced."""

    def __init__(
        self,
        *,
        config: BrokerConfig,
        clock: Clock,
        store: MetadataStore,
        metadata: MetadataCache,
        log_dirs: LogDirs,
        flusher: Flusher,
        dynamic_settings: DynamicSettings,
        topic_overrides: TopicOverrides,
        group_configs: GroupConfigManager,
        leaderships: Leaderships,
        long_work: LongWork,
        call_soon: CallSoon,
        end_broker: Callable[[], None],
        entity_changes: EntityChanges,
        broker_security: Callable[[], BrokerSecurity],
        counts: Counts,
    ) -> None:
        self.config = config
        self.clock = clock
        self.store = store
        self.metadata = metadata
        self.log_dirs = log_dirs
        self.flusher = flusher
        self.dynamic_settings = dynamic_settings
        self.topic_overrides = topic_overrides
        self.group_configs = group_configs
        self.leaderships = leaderships
        self.long_work = long_work
        self.call_soon = call_soon
        """A function that calls its argument in the next iteration of the event loop."""
        self.end_broker = end_broker
        """A function that shuts down the broker because it cannot continue."""
        self.entity_changes = entity_changes
        self.broker_security = broker_security
        """A function that returns the security settings for inter-broker connections, or raises StartupError.
        """
        self.counts = counts


class StoreConnection:
    """An open metadata store, and the ID of its cluster."""

    def __init__(self, store: MetadataStore, cluster_id: str, may_lack_topics: bool) -> None:
        self.store = store
        self.cluster_id = cluster_id
        self.may_lack_topics = may_lack_topics
        """Whether the store is new or has lost its last changes, so that topics found on disk are adopted."""
