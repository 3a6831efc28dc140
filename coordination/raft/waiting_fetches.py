"""Fetches that wait at the leader.

Rules:
- A fetch waits until the log grows beyond its offset, the high watermark passes the one that it names, its
  time is up, or the leadership ends.
- At most one fetch of each replica waits. A newer one ends the older.
"""

from kafka_compat.coordination.raft.events import FetchRequested
from kafka_compat.coordination.raft.values import ReplicaKey


class WaitingFetches:
    def __init__(self) -> None:
        self._waiting: dict[ReplicaKey, tuple[FetchRequested, int]] = {}

    def add(self, request: FetchRequested, deadline_ms: int) -> None:
        self._waiting[request.replica] = (request, deadline_ms)

    def take(self, replica: ReplicaKey) -> FetchRequested | None:
        """Remove and return the fetch of this replica."""
        found = self._waiting.pop(replica, None)
        return None if found is None else found[0]

    def take_ready(self, end_offset: int, high_watermark: int) -> list[FetchRequested]:
        """Remove and return the fetches that have something to send: records, or a high watermark."""
        return self._take(
            [
                replica
                for replica, (request, _) in self._waiting.items()
                if request.offset < end_offset or request.high_watermark < high_watermark
            ]
        )

    def take_expired(self, now_ms: int) -> list[FetchRequested]:
        return self._take([replica for replica, (_, due_ms) in self._waiting.items() if due_ms <= now_ms])

    def take_all(self) -> list[FetchRequested]:
        return self._take(list(self._waiting))

    @property
    def deadline_ms(self) -> int | None:
        return min((due_ms for _, due_ms in self._waiting.values()), default=None)

    def _take(self, replicas: list[ReplicaKey]) -> list[FetchRequested]:
        return [self._waiting.pop(replica)[0] for replica in replicas]
