"""Counts of events in the groups of a broker, for its metrics."""

from dataclasses import dataclass


@dataclass(slots=True)
class GroupCounts:
    """Counts since the broker's startup, like the metrics of Kafka's group coordinator."""

    classic_rebalances: int = 0
    """Completed rebalances of classic groups."""
    consumer_rebalances: int = 0
    """Rebalances of consumer groups. As in Kafka, the departure of a member does not count."""
    share_rebalances: int = 0
    """Rebalances of share groups. As in Kafka, the departure of a member does not count."""
    offset_commits: int = 0
    """Committed offsets, each partition of a request counting as one."""
    offset_deletions: int = 0
    """Offsets deleted by OffsetDelete requests."""
    offset_expirations: int = 0
