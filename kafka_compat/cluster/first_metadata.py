"""Receipt of the first cluster metadata, for which startup waits."""

import asyncio
from typing import Final

FIRST_TOPICS_S: Final = 2.0
"""Maximum time in seconds that startup waits for topics after it has received the brokers."""
MORE_TOPICS_S: Final = 0.5
"""Maximum time in seconds between two requests with topics."""
ALL_TOPICS_S: Final = 5.0
"""Maximum time in seconds between the first and the last request with topics."""


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
        self._latest_s: float | None = None
        """Time of the loop at which the wait for more topics ends."""

    def update(self, topics: int) -> None:
        """Set `received` as soon as all expected topics have arrived. Otherwise, set it after a limited time,
        because some topics may never arrive, for example malformed ones.
        """
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if topics >= self.expected_topics:
            self.received.set()
        if self.received.is_set():
            return
        loop = asyncio.get_running_loop()
        now_s = loop.time()
        until_s = now_s + FIRST_TOPICS_S
        if topics:
            self._latest_s = self._latest_s or now_s + ALL_TOPICS_S
            until_s = min(now_s + MORE_TOPICS_S, self._latest_s)
        self._timer = loop.call_at(until_s, self.received.set)
