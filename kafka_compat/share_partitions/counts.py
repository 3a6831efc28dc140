"""What a broker counts of its share groups, for metrics (KIP-932, KIP-1103, KIP-1191)."""

from __future__ import annotations

from collections import Counter
from typing import Final

from kafka_compat.share_coordinator.samples import Samples

GROUPS_MAX: Final = 1_000
"""Number of groups that are counted separately. The counts of the group used longest ago are dropped."""


class GroupCounts:
    """The counts of one share group."""

    __slots__ = (
        "acquire_ms",
        "dead_letter_requests",
        "dead_letters",
        "failed_dead_letter_requests",
        "fetch_ratio",
    )

    def __init__(self) -> None:
        self.fetch_ratio = Samples()
        """For each fetch, the percentage of its share-partitions from which records could be acquired."""
        self.acquire_ms = Samples()
        """Times in ms from the arrival of a fetch to the acquisition of records."""
        self.dead_letters = 0
        """Number of records that were written to the dead letter queue."""
        self.dead_letter_requests = 0
        """Number of batches that were produced to the dead letter queue."""
        self.failed_dead_letter_requests = 0


class ShareCounts:
    """The counts of a broker."""

    def __init__(self) -> None:
        self.acknowledged: Counter[int] = Counter()
        """Number of acknowledged records, by acknowledgement type."""
        self.load_ms = Samples()
        """Times in ms from the first fetch from a share-partition until its state had been read."""
        self.groups: dict[str, GroupCounts] = {}

    def group(self, group_id: str) -> GroupCounts:
        """Return the counts of a group, which are created on first use."""
        found = self.groups.pop(group_id, None) or GroupCounts()
        self.groups[group_id] = found
        if len(self.groups) > GROUPS_MAX:
            del self.groups[next(iter(self.groups))]
        return found
