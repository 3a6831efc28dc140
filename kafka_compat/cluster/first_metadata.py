"""Receipt of the first cluster metadata, for which startup waits."""

import asyncio
from typing import Final

FIRST_TOPICS_S: Final = 2.0
"""Maximum time in seconds that startup waits for topics after it has received the brokers."""
MORE_TOPICS_S: Final = 0.3
"""Maximum time in seconds that startup waits for more topics after it has received some."""


class FirstMetadata:
    """Whether this broker has received metadata from a controller since startup.

    A controller sends the brokers before the topics, and many topics in several requests. Clients that
    request metadata in between would miss topics.
    """

    def __init__(self) -> None:
        self.received = asyncio.Event()
        self.expected_topics = 0
        """Number of topics to wait for."""
        self._timer: asyncio.TimerHandle | None = None

    def update(self, topics: int) -> None:
        """Set `received` if there are as many topics as expected, and otherwise after a time without an
        update: some may never arrive, for example if they are malformed.
        """
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if topics >= self.expected_topics:
            self.received.set()
        elif not self.received.is_set():
            wait_s = MORE_TOPICS_S if topics else FIRST_TOPICS_S
            self._timer = asyncio.get_running_loop().call_later(wait_s, self.received.set)
