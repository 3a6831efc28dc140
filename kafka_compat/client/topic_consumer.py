"""A consumer of all partitions of topics, in no group; of one thread."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from kafka_compat.client.cluster import Cluster
    from kafka_compat.client.fetcher import Fetcher

_ABSENT_S: Final = 0.1


class TopicConsumer:
    """`topics()` are asked for anew from time to time, so that new partitions and topics are seen."""

    def __init__(
        self,
        cluster: Cluster,
        fetcher: Fetcher,
        topics: Callable[[], Iterable[str]],
        metadata_max_age_s: float,
    ) -> None:
        self._cluster = cluster
        self._fetcher = fetcher
        self._topics = topics
        self._max_age_s = metadata_max_age_s
        self._looked_s = float("-inf")

    def poll(self, wait_s: float) -> None:
        """Ask for records. Raises as `Fetcher.poll`."""
        max_age_s = self._max_age_s if self._fetcher.assigned else _ABSENT_S
        if time.monotonic() - self._looked_s >= max_age_s:
            self._look()
        self._fetcher.poll(wait_s)

    def _look(self) -> None:
        names = list(self._topics())
        answer = self._cluster.metadata(names, "metadata") if names else None
        found = {
            (topic.name, one.partition_index)
            for topic in (answer.topics if answer else ())
            for one in topic.partitions
        }
        if found - self._fetcher.assigned:
            known = self._fetcher.consumed_to()
            self._fetcher.assign({place: known.get(place) for place in found})
        self._looked_s = time.monotonic()

    def close(self) -> None:
        """Nothing is left behind."""
