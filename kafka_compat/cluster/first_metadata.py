"""Event for the receipt of the first metadata, for which startup waits."""

from __future__ import annotations

import asyncio

FIRST_TOPICS_S = 2.0
"""Maximum time in seconds that startup waits for topics after it has received the brokers."""


class FirstMetadata:
    """State of the first metadata that a controller sends to this broker after startup."""

    def __init__(self) -> None:
        self.received = asyncio.Event()
        self.expects_topics = False
        """Whether to wait for topics. A controller first sends the brokers and then the topics, so clients
        that request metadata in between would see no topics.
        """

    def update(self, has_topics: bool) -> None:
        """Record that metadata was received."""
        if has_topics or not self.expects_topics:
            self.received.set()
        else:
            # Topics may never arrive, if all topics are being deleted or have malformed nodes.
            asyncio.get_running_loop().call_later(FIRST_TOPICS_S, self.received.set)
