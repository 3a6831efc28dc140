"""Receipt of the first metadata after startup: a flag that startup waits for."""

from __future__ import annotations

import asyncio

FIRST_TOPICS_S = 2.0
"""Maximum time that startup waits for topics after it has received the brokers."""


class FirstMetadata:
    """Whether a controller has sent metadata to this broker since it started."""

    def __init__(self) -> None:
        self.received = asyncio.Event()
        self.expects_topics = False
        """Whether topics were received. A controller first reports the brokers, then the topics: clients that
        request metadata in between would see no topics.
        """

    def update(self, has_topics: bool) -> None:
        """Record the receipt of metadata."""
        if has_topics or not self.expects_topics:
            self.received.set()
        else:
            # There may be no topics to wait for: all may be in deletion, or their nodes malformed.
            asyncio.get_running_loop().call_later(FIRST_TOPICS_S, self.received.set)
