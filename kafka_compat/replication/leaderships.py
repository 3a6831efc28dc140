"""Listeners for partitions that this broker starts or stops leading. See also `metadata/feed.py`."""

from __future__ import annotations

from collections.abc import Callable

LeaderListener = Callable[[str, int], None]


class Leaderships:
    """Notifies coordinators and others of the partitions that this broker starts or stops leading."""

    def __init__(self) -> None:
        self.on_leading: list[LeaderListener] = []
        """Called with topic and partition when this broker has become leader."""
        self.on_stopping: list[LeaderListener] = []
        """Called before this broker stops leading a partition, or loses its replica."""

    def leading(self, topic: str, partition: int) -> None:
        """Report that this broker became leader of a partition."""
        for listener in self.on_leading:
            listener(topic, partition)

    def stopping(self, topic: str, partition: int) -> None:
        """Report that this broker is no longer leader of a partition, or no longer has a replica of it."""
        for listener in self.on_stopping:
            listener(topic, partition)
