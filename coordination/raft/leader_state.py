"""What a leader knows of its replicas, and what follows from it.

Rules:
- The high watermark is the highest offset that a majority of the voters has flushed. It is known once it is
  above the first record of the leader's epoch, and never falls. A leader that is no voter does not count.
- A leader that no majority has fetched from for 1.5 fetch timeouts must resign: it may be cut off.
- Voters that have not fetched for half a fetch timeout are told about the leader.
- Successors of a resigning leader are ranked by the ends of their logs.
- Observers are forgotten if they have not fetched for 5 minutes.
"""

from dataclasses import dataclass

from kafka_compat.coordination.raft.values import (
    QuorumDescription,
    RaftSettings,
    ReplicaDescription,
    ReplicaKey,
    Role,
    VoterSet,
)
from kafka_compat.coordination.raft.voter_set import highest_of_majority, is_same, majority

OBSERVER_SESSION_TIMEOUT_MS = 300_000
CAUGHT_UP_WITHIN_MS = 3_600_000


@dataclass(slots=True)
class Replica:
    """The progress of a replica. Offsets and times are -1 until it has fetched."""

    key: ReplicaKey
    end_offset: int = -1
    last_fetch_ms: int = -1
    last_fetch_leader_end: int = -1
    last_caught_up_ms: int = -1

    def fetched(self, offset: int, leader_end: int, now_ms: int) -> None:
        """Record a fetch. The replica has caught up if it has all that the leader has, or had at the
        replica's last fetch.
        """
        if offset >= leader_end:
            self.last_caught_up_ms = max(self.last_caught_up_ms, now_ms)
        elif self.last_fetch_leader_end >= 0 and offset >= self.last_fetch_leader_end:
            self.last_caught_up_ms = max(self.last_caught_up_ms, self.last_fetch_ms)
        self.last_fetch_ms = max(self.last_fetch_ms, now_ms)
        self.last_fetch_leader_end = leader_end
        self.end_offset = offset

    def describe(self) -> ReplicaDescription:
        return ReplicaDescription(self.key, self.end_offset, self.last_fetch_ms, self.last_caught_up_ms)


class LeaderState:
    """The leader's role in one epoch. `start_offset` is the offset of its LeaderChange record."""

    role = Role.LEADER

    def __init__(
        self,
        local: ReplicaKey,
        epoch: int,
        start_offset: int,
        voters: VoterSet,
        settings: RaftSettings,
        now_ms: int,
    ) -> None:
        self.epoch = epoch
        self.start_offset = start_offset
        self.high_watermark = -1
        self.begin_deadline_ms = now_ms
        self._local = local
        self._settings = settings
        self._voters: dict[int, Replica] = {}
        self._observers: dict[ReplicaKey, Replica] = {}
        self._flushed_end = 0
        self._fetched: set[int] = set()
        self._check_deadline_ms = now_ms + self.check_quorum_timeout_ms
        self._voter_set: VoterSet = {}
        self.change_voters(voters)

    @property
    def check_quorum_timeout_ms(self) -> int:
        return self._settings.fetch_timeout_ms * 3 // 2

    @property
    def _is_voter(self) -> bool:
        voter = self._voter_set.get(self._local.node_id)
        return voter is not None and is_same(voter.key, self._local)

    @property
    def begin_interval_ms(self) -> int:
        return self._settings.fetch_timeout_ms // 2

    @property
    def check_quorum_deadline_ms(self) -> int | None:
        """The time at which the leader must resign. None if no other voter is needed for a majority."""
        needs_others = majority(self._voter_set) > self._is_voter
        return self._check_deadline_ms if needs_others else None

    def change_voters(self, voters: VoterSet) -> None:
        """Count other voters. The progress of replicas is kept: voters become observers, and vice versa."""
        known = {**{item.key: item for item in self._voters.values()}, **self._observers}
        by_id = {key.node_id: item for key, item in self._observers.items()}
        by_id.update(self._voters)
        self._voter_set = voters
        self._voters = {}
        for node_id, voter in voters.items():
            replica = known.get(voter.key) or by_id.get(node_id)
            if replica is None or not is_same(replica.key, voter.key):
                replica = Replica(voter.key)
            self._voters[node_id] = replica
        taken = {id(item) for item in self._voters.values()}
        self._observers = {
            key: item for key, item in known.items() if id(item) not in taken and key != self._local
        }
        self._fetched &= self._voters.keys()

    # --- progress

    def fetched(self, key: ReplicaKey, offset: int, leader_end: int, now_ms: int) -> None:
        """Record a valid fetch of another replica."""
        replica = self._voter(key)
        if replica is None:
            replica = self._observers.setdefault(key, Replica(key))
        replica.key = key
        replica.fetched(offset, leader_end, now_ms)

    def is_alive(self, key: ReplicaKey, now_ms: int) -> None:
        """Record that a replica sent a fetch, valid or not."""
        if self._voter(key) is None:
            return
        self._fetched.add(key.node_id)
        if len(self._fetched) + self._is_voter >= majority(self._voter_set):
            self._fetched.clear()
            self._check_deadline_ms = now_ms + self.check_quorum_timeout_ms

    def flushed(self, end_offset: int) -> None:
        """Record that the leader's own records below the offset are on disk."""
        self._flushed_end = end_offset

    def advance(self) -> bool:
        """Compute the high watermark. Returns whether it has advanced."""
        ends = {node_id: item.end_offset for node_id, item in self._voters.items()}
        if self._is_voter:
            ends[self._local.node_id] = self._flushed_end
        reached = highest_of_majority(ends, self._voter_set)
        if reached <= self.start_offset or reached <= self.high_watermark:
            return False
        self.high_watermark = reached
        return True

    # --- questions

    def silent_voters(self, now_ms: int) -> list[int]:
        """Return the voters that have not fetched lately, which are told about the leader."""
        since = now_ms - self.begin_interval_ms
        return [
            node_id
            for node_id, item in self._voters.items()
            if node_id != self._local.node_id and (item.last_fetch_ms < 0 or item.last_fetch_ms <= since)
        ]

    def successors(self) -> tuple[int, ...]:
        """Return the other voters, the longest log first."""
        others = [item for node_id, item in self._voters.items() if node_id != self._local.node_id]
        ranked = sorted(others, key=lambda item: (-item.end_offset, item.key.node_id))
        return tuple(item.key.node_id for item in ranked)

    def has_caught_up(self, key: ReplicaKey, now_ms: int) -> bool:
        """Return whether a replica that is no voter may become one."""
        replica = self._observers.get(key)
        return (
            replica is not None
            and replica.last_caught_up_ms >= 0
            and replica.last_fetch_ms > now_ms - CAUGHT_UP_WITHIN_MS
        )

    def forget_observers(self, now_ms: int) -> None:
        for key, item in list(self._observers.items()):
            if now_ms - item.last_fetch_ms >= OBSERVER_SESSION_TIMEOUT_MS:
                del self._observers[key]

    def describe(self, log_end: int, now_ms: int) -> QuorumDescription:
        own = ReplicaDescription(self._local, log_end, now_ms, now_ms)
        voters = [
            own if node_id == self._local.node_id and self._is_voter else item.describe()
            for node_id, item in self._voters.items()
        ]
        observers = [item.describe() for item in self._observers.values()]
        if not self._is_voter:
            observers.append(own)
        return QuorumDescription(
            self._local.node_id, self.epoch, self.high_watermark, tuple(voters), tuple(observers)
        )

    def _voter(self, key: ReplicaKey) -> Replica | None:
        replica = self._voters.get(key.node_id)
        if replica is None or key.node_id == self._local.node_id:
            return None
        return replica if is_same(key, self._voter_set[key.node_id].key) else None
