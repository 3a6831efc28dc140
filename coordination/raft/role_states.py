"""What a node remembers in each role, other than the leader's (`leader_state`)."""

from dataclasses import dataclass, field

from kafka_compat.coordination.raft.values import NO_NODE, OffsetAndEpoch, Role, VoterSet
from kafka_compat.coordination.raft.voter_set import majority


@dataclass(slots=True)
class Unattached:
    """No leader is known. A voter becomes prospective at `election_deadline_ms`."""

    election_deadline_ms: int
    role = Role.UNATTACHED


@dataclass(slots=True)
class Follower:
    """Fetches from the leader. A voter becomes prospective at `fetch_deadline_ms`.

    `is_leader_gone` is true if the leader has resigned, or its process has gone: then pre-votes are granted.
    `is_leader_missed` is true if this node has sought another leader in vain, and not heard this one since.
    """

    leader_id: int
    fetch_deadline_ms: int
    has_fetched: bool = False
    is_leader_gone: bool = False
    is_leader_missed: bool = False
    snapshot: OffsetAndEpoch | None = None
    role = Role.FOLLOWER


@dataclass(slots=True)
class Nominee:
    """Asks for votes: pre-votes if it is prospective, votes of its epoch if it is a candidate.

    `failed` contains the voters that did not respond to the latest request. `is_backing_off` is true once a
    candidate cannot win, so that its deadline is earlier.
    """

    role: Role
    voters: VoterSet
    election_deadline_ms: int
    leader_id: int = NO_NODE
    granted: set[int] = field(default_factory=set)
    rejected: set[int] = field(default_factory=set)
    failed: set[int] = field(default_factory=set)
    is_backing_off: bool = False

    @property
    def has_won(self) -> bool:
        return len(self.granted & self.voters.keys()) >= majority(self.voters)

    @property
    def has_lost(self) -> bool:
        return len(self.voters) - len(self.rejected & self.voters.keys()) < majority(self.voters)

    @property
    def is_blocked(self) -> bool:
        """Whether it can win only with votes of voters that did not respond to the latest request."""
        missing = (self.rejected | self.failed) & self.voters.keys()
        return len(self.voters) - len(missing) < majority(self.voters)

    @property
    def unrecorded(self) -> list[int]:
        """The voters to be asked. Pre-votes are asked for again, because a rejection may be out of date."""
        recorded = self.granted if self.role is Role.PROSPECTIVE else self.granted | self.rejected
        return [node_id for node_id in self.voters if node_id not in recorded]


@dataclass(slots=True)
class Resigned:
    """Led this epoch, and tells the voters that it does not any more. Becomes unattached at the deadline."""

    election_deadline_ms: int
    unacknowledged: set[int]
    successors: tuple[int, ...]
    role = Role.RESIGNED
