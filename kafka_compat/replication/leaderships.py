"""Listeners to which partitions this broker leads. For the cluster's metadata see `metadata/feed.py`."""

from __future__ import annotations

from collections.abc import Callable

LeaderListener = Callable[[str, int], None]


class Leaderships:
    """Passes the news of whoever makes this broker lead and stop on to coordinators and others."""

    def __init__(self) -> None:
        self.on_leading: list[LeaderListener] = []
        """Called with topic and partition when this broker has begun to lead it."""
        self.on_stopping: list[LeaderListener] = []
        """Called before this broker stops leading a partition, or stops holding it."""

    def leading(self, topic: str, partition: int) -> None:
        """This broker has begun to lead a partition."""
        for listener in self.on_leading:
            listener(topic, partition)

    def stopping(self, topic: str, partition: int) -> None:
        """It leads, or holds, a partition no more."""
        for listener in self.on_stopping:
            listener(topic, partition)
