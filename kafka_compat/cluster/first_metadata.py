"""Receipt of the first metadata after startup: a flag that startup waits for."""

from __future__ import annotations

import asyncio

FIRST_TOPICS_S = 2.0
"""How long a broker that starts waits for topics after it has received the brokers."""


class FirstMetadata:
    """Whether a controller has sent metadata to this broker since it started."""

    def __init__(self) -> None:
        self.received = asyncio.Event()
        self.expects_topics = False
        """Whether there are topics. A controller first reports the brokers, and the topics after that:
        clients that asked in between would learn of no topics.
        """

    def update(self, has_topics: bool) -> None:
        """Record the receipt of metadata."""
        if has_topics or not self.expects_topics:
            self.received.set()
        else:
            # All topics may be about to be deleted, or their nodes malformed.
            asyncio.get_running_loop().call_later(FIRST_TOPICS_S, self.received.set)
