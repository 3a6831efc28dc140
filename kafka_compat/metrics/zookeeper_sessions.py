"""Changes of the ZooKeeper sessions, counted since the broker serves HTTP.

A session that has expired is followed by another one, of which is heard by looking: each second.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from kafka_compat.coordination.store.metadata_store import SessionState
from kafka_compat.metrics.cluster_view import zookeeper_of

if TYPE_CHECKING:
    from kafka_compat.broker import Broker
    from kafka_compat.coordination.zookeeper_store.zookeeper import ZooKeeperMetadataStore

_NAMES = {
    SessionState.CONNECTED: "SyncConnects",
    SessionState.SUSPENDED: "Disconnects",
    SessionState.EXPIRED: "Expires",
}
_NEVER = ("AuthFailures", "ReadOnlyConnects")
"""A broker whose login is refused does not start, and none asks for a server that may only be read."""


class ZooKeeperSessions:
    """By Kafka's names, of the brokers of this process."""

    def __init__(self, brokers: Sequence[Broker]) -> None:
        """Brokers that have started."""
        self.counts = dict.fromkeys((*_NAMES.values(), *_NEVER), 0)
        self.requests = 0
        """Of sessions that are over."""
        self._brokers = brokers
        self._heard: dict[int, ZooKeeperMetadataStore] = {}
        """The session of each broker, by its id."""
        self.look()

    @property
    def are_any(self) -> bool:
        return bool(self._heard)

    def look(self) -> None:
        """Hear of sessions that are new."""
        for broker in self._brokers:
            session = zookeeper_of(broker.services) if broker.is_running else None
            before = self._heard.get(broker.broker_id)
            if session is None or session is before:
                continue
            if before is not None:
                self.requests += before.requests
            self._heard[broker.broker_id] = session
            self.counts["SyncConnects"] += 1
            session.on_state(self._changed)

    def _changed(self, state: SessionState) -> None:
        name = _NAMES.get(state)
        if name is not None:
            self.counts[name] += 1
