"""The topics' own settings, as a broker of a cluster comes to know them: topic by topic, as it is told to
hold their partitions, and again when somebody changed them.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable

from kafka_compat.coordination.store.metadata_store import MetadataStoreError
from kafka_compat.membership.topic_settings import TopicSettings
from kafka_compat.metadata.feed import ConfigChange

log = logging.getLogger(__name__)

RETRY_S = 0.1


class ClusterTopicSettings(TopicSettings):
    """See above."""

    async def learn(self, topics: Iterable[str]) -> None:
        """Read the settings of topics that this broker begins to hold, before their logs are made.

        What the store does not answer is asked again, as Kafka does, for as long as this broker runs: the
        controller does not tell twice what it was answered.
        """
        for topic in topics:
            if topic not in self.overrides:
                stored = await self._stored_at_last(topic)
                # Meanwhile a change may have been heard of, or another request have read them: that is newer.
                if topic not in self.overrides:
                    self._know(topic, stored or {})

    async def _stored_at_last(self, topic: str) -> dict[str, str] | None:
        while True:
            try:
                return await self._stored(topic)
            except MetadataStoreError as error:
                log.info("reading the settings of %s: %r", topic, error)
                await asyncio.sleep(RETRY_S)

    async def reread(self, topic: str) -> None:
        """Publish the settings of a topic as they are now."""
        stored = await self._stored(topic)
        if stored is not None:
            self._metadata.feed.publish_config(ConfigChange(f"topics/{topic}", settings=stored))
