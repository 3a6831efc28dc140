"""What the share groups of a broker have in common: the topics, the settings and the stored states."""

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple, Protocol

if TYPE_CHECKING:
    from uuid import UUID

    from kafka_compat.config.group import ShareGroupConfig, ShareGroupLimits
    from kafka_compat.groups.consumer.groups_of_broker import Topics
    from kafka_compat.share_coordinator.persister import Persister


class PartitionCounts(Protocol):
    def __call__(self, names: "Sequence[str]") -> "Mapping[UUID, int]":
        """Return the number of partitions of each existing topic, in the order of `names`."""


class ShareGroups(NamedTuple):
    """What the share groups of a broker have in common."""

    topics: "Topics"
    partition_counts: PartitionCounts
    settings: "Callable[[str], ShareGroupConfig]"
    """A function that returns the current settings of a group."""
    limits: "Callable[[], ShareGroupLimits]"
    """A function that returns the broker's current settings for all groups."""
    persister: "Callable[[], Persister]"
    """A function that returns the persister."""
