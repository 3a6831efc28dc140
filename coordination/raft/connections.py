"""Requests to other nodes that are under way.

Rules:
- At most one request is under way to each node. The next one is sent when it is answered, has failed, or
  after the request timeout; after a failure, not before the retry backoff has passed.
- A change of the role forgets all requests: late answers are ignored.
"""

from typing import NamedTuple

from kafka_compat.coordination.raft.values import RaftSettings


class _Request(NamedTuple):
    correlation_id: int
    sent_ms: int


class Connections:
    """The state of the requests to all nodes. The node ID -1 stands for the bootstrap addresses."""

    def __init__(self, settings: RaftSettings) -> None:
        self._settings = settings
        self._last_id = 0
        self._under_way: dict[int, _Request] = {}
        self._backoff_ends_ms: dict[int, int] = {}

    def send(self, node_id: int, now_ms: int) -> int:
        """Record a request, and return its correlation ID."""
        self._last_id += 1
        self._under_way[node_id] = _Request(self._last_id, now_ms)
        return self._last_id

    def is_ready(self, node_id: int, now_ms: int) -> bool:
        """Return whether a request can be sent: none is pending, and no backoff after a failure."""
        self._expire(node_id, now_ms)
        return node_id not in self._under_way and now_ms >= self._backoff_ends_ms.get(node_id, now_ms)

    def is_failing(self, node_id: int, now_ms: int) -> bool:
        """Return whether the last request to the node failed, and the backoff has not passed."""
        self._expire(node_id, now_ms)
        return now_ms < self._backoff_ends_ms.get(node_id, now_ms)

    def ready_ms(self, node_id: int) -> int:
        """Return when the next request may be sent if the current one is not answered."""
        request = self._under_way.get(node_id)
        if request is not None:
            return request.sent_ms + self._settings.request_timeout_ms
        return self._backoff_ends_ms.get(node_id, 0)

    def any_under_way(self, now_ms: int) -> bool:
        for node_id in list(self._under_way):
            self._expire(node_id, now_ms)
        return bool(self._under_way)

    def answered(self, node_id: int, correlation_id: int) -> bool:
        """Record a response. Return False if it is late."""
        request = self._under_way.get(node_id)
        if request is None or request.correlation_id != correlation_id:
            return False
        del self._under_way[node_id]
        self._backoff_ends_ms.pop(node_id, None)
        return True

    def failed(self, node_id: int, correlation_id: int, now_ms: int) -> bool:
        """Record a failure. Return False if it is late."""
        if not self.answered(node_id, correlation_id):
            return False
        self.back_off(node_id, now_ms)
        return True

    def back_off(self, node_id: int, now_ms: int, pause_ms: int | None = None) -> None:
        """Send nothing to the node before `pause_ms` or, by default, the retry backoff has passed."""
        pause_ms = self._settings.retry_backoff_ms if pause_ms is None else pause_ms
        self._backoff_ends_ms[node_id] = now_ms + pause_ms

    def reset(self) -> None:
        """Forget all requests."""
        self._under_way.clear()
        self._backoff_ends_ms.clear()

    def _expire(self, node_id: int, now_ms: int) -> None:
        request = self._under_way.get(node_id)
        if request is not None and now_ms - request.sent_ms >= self._settings.request_timeout_ms:
            del self._under_way[node_id]
            self.back_off(node_id, now_ms)
