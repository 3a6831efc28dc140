"""Feed of metadata changes: each change to a `MetadataCache` is published once, as a numbered delta.

The cache is the snapshot: it already includes every published delta. Subscribers are called on the event loop
in the order of subscription, and must return quickly. If a subscriber changes the metadata, the other
subscribers receive its delta after the current one.
"""

import logging
from collections import deque
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, TypeAlias
from urllib.parse import unquote

if TYPE_CHECKING:
    from kafka_compat.metadata.described import PartitionMetadata, TopicMetadata

log = logging.getLogger(__name__)


class ConfigChange:
    """New settings of one entity."""

    __slots__ = ("entity", "is_local", "names", "settings")

    def __init__(
        self,
        entity: str,
        *,
        settings: Mapping[str, str] | None = None,
        names: frozenset[str] = frozenset(),
        is_local: bool = False,
    ) -> None:
        self.entity = entity
        """Path of the entity under /config, such as `topics/orders`, `brokers/1` or `brokers/<default>`."""
        self.settings = settings
        """All settings of a topic or group, or None for a broker."""
        self.names = names
        """The names of a broker's changed settings. Empty if they are unknown."""
        self.is_local = is_local
        """Whether this broker stored the settings, so that it must notify the other brokers."""

    @property
    def topic(self) -> str | None:
        """The topic, or None for a broker's settings."""
        kind, _, name = self.entity.partition("/")
        return name if kind == "topics" else None

    @property
    def group(self) -> str | None:
        """The group ID, or None for settings of a topic or broker."""
        kind, _, node = self.entity.partition("/")
        return unquote(node) if kind == "groups" else None

    @property
    def is_of_broker(self) -> bool:
        return self.entity.startswith("brokers/")


class MetadataDelta:
    """The changes from the previous metadata version to `version`."""

    __slots__ = (
        "broker_ids",
        "config_changes",
        "controller_changed",
        "created",
        "deleted",
        "features_changed",
        "grown",
        "partitions",
        "removed_broker_ids",
        "version",
    )

    def __init__(self) -> None:
        self.version = 0
        self.created: list[TopicMetadata] = []
        self.grown: list[TopicMetadata] = []
        """Topics with added partitions, in their new state."""
        self.deleted: list[TopicMetadata] = []
        """Deleted topics, in their last state. If a topic was replaced by a new one with the same name,
        `created` contains the new topic.
        """
        self.partitions: list[tuple[str, PartitionMetadata]] = []
        """Existing partitions with a new leader, ISR, epoch or set of replicas."""
        self.broker_ids: set[int] = set()
        """IDs of brokers that are new, or whose endpoints or rack changed."""
        self.removed_broker_ids: set[int] = set()
        self.controller_changed = False
        self.config_changes: list[ConfigChange] = []
        self.features_changed = False

    @property
    def is_empty(self) -> bool:
        return not (
            self.created
            or self.grown
            or self.deleted
            or self.partitions
            or self.broker_ids
            or self.removed_broker_ids
            or self.controller_changed
            or self.config_changes
            or self.features_changed
        )


Subscriber: TypeAlias = Callable[[MetadataDelta], None]


class MetadataFeed:
    """One broker's feed of metadata changes."""

    def __init__(self) -> None:
        self.version = 0
        """The version of the metadata, which is the version of the last delta."""
        self._subscribers: list[Subscriber] = []
        self._unpublished: deque[MetadataDelta] = deque()
        self._is_publishing = False

    def subscribe(self, subscriber: Subscriber) -> None:
        """Register a function to be called with each later delta."""
        self._subscribers.append(subscriber)

    def publish(self, delta: MetadataDelta) -> None:
        """Assign a version to a delta, and pass it to the subscribers."""
        self.version += 1
        delta.version = self.version
        self._unpublished.append(delta)
        if self._is_publishing:
            return
        self._is_publishing = True
        while self._unpublished:
            published = self._unpublished.popleft()
            for subscriber in list(self._subscribers):
                try:
                    subscriber(published)
                except Exception:
                    # Continue, because the other subscribers must still be notified.
                    log.exception("A subscriber to the metadata feed failed at version %d", published.version)
        self._is_publishing = False

    def publish_config(self, change: ConfigChange) -> None:
        """Publish an entity's new settings."""
        delta = MetadataDelta()
        delta.config_changes.append(change)
        self.publish(delta)
