"""Notifications that this broker became or is no longer leader of a partition (see `metadata/feed.py`)."""

from __future__ import annotations

from collections.abc import Callable

LeaderListener = Callable[[str, int], None]


class Leaderships:
    """Listeners that are notified when this broker becomes leader of a partition or stops being leader."""

    def __init__(self) -> None:
        self.on_leading: list[LeaderListener] = []
        """Functions that are called with topic and partition after this broker became leader."""
        self.on_stopping: list[LeaderListener] = []
        """Functions that are called before this broker stops being leader or drops its replica."""

    def leading(self, topic: str, partition: int) -> None:
        """Notify the listeners that this broker became leader of a partition."""
        for listener in self.on_leading:
            listener(topic, partition)

    def stopping(self, topic: str, partition: int) -> None:
        """Notify the listeners that this broker stops being leader of a partition or drops its replica."""
        for listener in self.on_stopping:
            listener(topic, partition)
