"""A fetcher that counts what it asks and gets."""

from __future__ import annotations

from collections import deque
from typing import Any, Final

from kafka_compat.replication.follower_requests import SentFetch
from kafka_compat.replication.replica_fetcher import Client, ReplicaFetcher

_WINDOW_S: Final = 60


class CountedFetcher(ReplicaFetcher):
    """See the module; it does what a ReplicaFetcher does."""

    requests = 0
    """Fetches that were sent."""
    fetched_bytes = 0
    """Of records in their answers."""
    _seconds: deque[tuple[float, int]] | None = None

    def pace(self, now_s: float) -> None:
        """About a second has passed; by a clock that never jumps."""
        if self._seconds is None:
            self._seconds = deque(maxlen=_WINDOW_S + 1)
        self._seconds.append((now_s, self.requests))

    def rate(self, now_s: float) -> float:
        """Fetches a second, over the last minute; 0 before `pace` was told of a second."""
        if not self._seconds:
            return 0.0
        since_s, before = self._seconds[0]
        return (self.requests - before) / (now_s - since_s) if now_s > since_s else 0.0

    def _fetch(self, client: Client, fetch: SentFetch) -> None:
        self.requests += 1
        super()._fetch(client, fetch)

    def _fetched(self, client: Client, fetch: SentFetch, response: Any) -> None:
        if not isinstance(response, Exception):
            for topic in response.responses:
                for data in topic.partitions:
                    if data.records is not None:
                        self.fetched_bytes += len(data.records)
        super()._fetched(client, fetch, response)
