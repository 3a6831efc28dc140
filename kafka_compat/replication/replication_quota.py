"""Replication throttling (KIP-73): the throttled replicas and their current byte rate. No I/O.

Rules
1. The topic settings leader.replication.throttled.replicas and follower.replication.throttled.replicas list
   throttled replicas as `partition:broker,…`, or `*` for all. A broker applies the entries with its own ID.
2. All bytes of throttled replicas count toward the rate. In-sync replicas are not throttled, because forcing
   replicas out of the ISR would be worse than the traffic.
3. The rate is measured over the last replication.quota.window.num windows. Throttled replicas wait until the
   rate falls below the limit, so that even a batch larger than the limit is replicated eventually.
"""

from collections import deque
from collections.abc import Mapping
from typing import Final

UNLIMITED: Final = 2**63 - 1
LEADER_REPLICAS: Final = "leader.replication.throttled.replicas"
LEADER_RATE: Final = "leader.replication.throttled.rate"
FOLLOWER_REPLICAS: Final = "follower.replication.throttled.replicas"
FOLLOWER_RATE: Final = "follower.replication.throttled.rate"
ALL: Final = "*"


class ReplicationQuota:
    """The quota for one direction of replication traffic: sent as a leader, or fetched as a follower."""

    def __init__(self, windows: int = 11, window_ms: int = 1000) -> None:
        self.bytes_per_s = UNLIMITED
        self._windows = windows
        self._window_ms = window_ms
        self._throttled: dict[str, frozenset[int] | None] = {}
        self._samples: deque[list[int]] = deque()
        """The start in ms and the size in bytes of each window, with the newest window last."""

    def throttle(self, topic: str, replicas: str, broker_id: int) -> None:
        """Apply a topic's list of throttled replicas, which is empty if no replica is throttled."""
        entries = [item.strip() for item in replicas.split(",") if item.strip()]
        if not entries:
            self._throttled.pop(topic, None)
        elif entries == [ALL]:
            self._throttled[topic] = None
        else:
            pairs = [item.partition(":") for item in entries]
            self._throttled[topic] = frozenset(
                int(partition) for partition, _, broker in pairs if broker == str(broker_id)
            )

    @property
    def has_replicas(self) -> bool:
        """Whether replicas of any topic are throttled."""
        return bool(self._throttled)

    def is_throttled(self, topic: str, partition: int) -> bool:
        if topic not in self._throttled:
            return False
        partitions = self._throttled[topic]
        return partitions is None or partition in partitions

    def record(self, size_bytes: int, now_ms: int) -> None:
        """Record bytes sent or fetched for throttled replicas."""
        if not self._samples or now_ms - self._samples[-1][0] >= self._window_ms:
            self._samples.append([now_ms, 0])
        self._samples[-1][1] += size_bytes
        self._forget_old(now_ms)

    def is_exceeded(self, now_ms: int) -> bool:
        return self.bytes_per_s != UNLIMITED and self.rate(now_ms) > self.bytes_per_s

    def rate(self, now_ms: int) -> float:
        """Return the traffic of throttled replicas in bytes per second, even if there is no limit."""
        self._forget_old(now_ms)
        if not self._samples:
            return 0.0
        elapsed_ms = max(now_ms - self._samples[0][0], self._window_ms)
        return 1000 * sum(size for _, size in self._samples) / elapsed_ms

    def _forget_old(self, now_ms: int) -> None:
        while self._samples and now_ms - self._samples[0][0] >= self._windows * self._window_ms:
            self._samples.popleft()


class ReplicationQuotas:
    """The replication quotas of one broker, for both directions."""

    def __init__(self, broker_id: int, windows: int = 11, window_ms: int = 1000) -> None:
        self.leader = ReplicationQuota(windows, window_ms)
        self.follower = ReplicationQuota(windows, window_ms)
        self._broker_id = broker_id

    def set_rates(self, leader_bytes_per_s: int, follower_bytes_per_s: int) -> None:
        """Apply leader.replication.throttled.rate and follower.replication.throttled.rate."""
        self.leader.bytes_per_s = leader_bytes_per_s
        self.follower.bytes_per_s = follower_bytes_per_s

    def configure_topic(self, topic: str, overrides: Mapping[str, str]) -> None:
        """Apply the throttled replicas in a topic's settings."""
        self.leader.throttle(topic, overrides.get(LEADER_REPLICAS, ""), self._broker_id)
        self.follower.throttle(topic, overrides.get(FOLLOWER_REPLICAS, ""), self._broker_id)
