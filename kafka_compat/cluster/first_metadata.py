"""Receipt of the first cluster metadata, for which startup waits."""

import asyncio

FIRST_TOPICS_S = 2.0
"""Maximum time in seconds that startup waits for topics after it has received the brokers."""


class FirstMetadata:
    """Whether this broker has received metadata from a controller since startup."""

    def __init__(self) -> None:
        self.received = asyncio.Event()
        self.expects_topics = False
        """Whether to wait for topics. A controller sends the brokers before the topics, so clients that
        request metadata in between would see no topics.
        """

    def update(self, has_topics: bool) -> None:
        """Set `received`, but only after FIRST_TOPICS_S seconds if expected topics are missing."""
        if has_topics or not self.expects_topics:
            self.received.set()
        else:
            # Limit the wait: topics may never arrive, for example if all of them are malformed.
            asyncio.get_running_loop().call_later(FIRST_TOPICS_S, self.received.set)
