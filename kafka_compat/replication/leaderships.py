"""Notifications that this broker became or is no longer leader of a partition (see `metadata/feed.py`)."""

from collections.abc import Callable

LeaderListener = Callable[[str, int], None]


class Leaderships:
    """Listeners that are notified when this broker gains or loses leadership of a partition."""

    def __init__(self) -> None:
        self.on_leading: list[LeaderListener] = []
        """Functions that are called with topic and partition after this broker became leader."""
        self.on_stopping: list[LeaderListener] = []
        """Functions that are called before this broker loses leadership or stops serving its replica."""

    def leading(self, topic: str, partition: int) -> None:
        """Notify the listeners that this broker became leader of a partition."""
        for listener in self.on_leading:
            listener(topic, partition)

    def stopping(self, topic: str, partition: int) -> None:
        """Notify the listeners that this broker loses leadership or stops serving a replica."""
        for listener in self.on_stopping:
            listener(topic, partition)
