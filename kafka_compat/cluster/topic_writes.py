"""Order of a broker's writes of topics to the store.

Writes of different topics run at the same time, so that they share the store's transactions and syncs. Writes
of topics with the same name, or with names that collide (see `topic_names.collision_key`), run one after the
other. `alone` waits until no topic is being written, and delays other writes.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from kafka_compat.metadata.topic_names import collision_key


class TopicWrites:
    def __init__(self) -> None:
        self._under_way: set[str] = set()
        """The collision keys of the topics that are being written."""
        self._is_alone = False
        self._ended = asyncio.Event()
        """Replaced by a new event whenever a write has ended."""

    @asynccontextmanager
    async def of(self, topic: str) -> AsyncIterator[None]:
        """Write a topic in this context."""
        key = collision_key(topic)
        while self._is_alone or key in self._under_way:
            await self._ended.wait()
        self._under_way.add(key)
        try:
            yield
        finally:
            self._under_way.discard(key)
            self._end()

    @asynccontextmanager
    async def alone(self) -> AsyncIterator[None]:
        """Prevent all other writes in this context. Writes that have begun end before it is entered."""
        while self._is_alone:
            await self._ended.wait()
        self._is_alone = True
        try:
            while self._under_way:
                await self._ended.wait()
            yield
        finally:
            self._is_alone = False
            self._end()

    def _end(self) -> None:
        ended, self._ended = self._ended, asyncio.Event()
        ended.set()
