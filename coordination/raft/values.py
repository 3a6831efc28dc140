"""Values of the Raft machine: nodes, positions in the log, voters and election states."""

from collections.abc import Mapping
from enum import Enum
from typing import NamedTuple
from uuid import UUID

NO_NODE = -1
"""The ID used for an unknown leader."""
UNKNOWN_DIRECTORY = UUID(int=0)
"""The directory ID of a node that did not send it, and of all voters named by controller.quorum.voters."""


class ReplicaKey(NamedTuple):
    """A node and its metadata directory. A voter whose disk was replaced has a new directory ID."""

    node_id: int
    directory_id: UUID = UNKNOWN_DIRECTORY


class OffsetAndEpoch(NamedTuple):
    """A position in the log, and the epoch of the last record before it. Also identifies a snapshot."""

    offset: int
    epoch: int


class Batch(NamedTuple):
    """The header of a batch of records. `voters` is set if it contains a set of voters (KIP-853)."""

    base_offset: int
    last_offset: int
    epoch: int
    voters: "VoterSet | None" = None


class Voter(NamedTuple):
    """A voter, and its addresses: `endpoints` maps the names of controller listeners to host and port."""

    key: ReplicaKey
    endpoints: Mapping[str, tuple[str, int]]


VoterSet = Mapping[int, Voter]
"""Maps the IDs of all voters to the voters."""


class ElectionState(NamedTuple):
    """What a node must not forget: its epoch, the leader of that epoch if it is known, and its vote."""

    epoch: int = 0
    leader_id: int = NO_NODE
    voted: ReplicaKey | None = None


class Role(Enum):
    """The role of a node in its epoch. Nodes that are no voters are Unattached or Followers."""

    UNATTACHED = "Unattached"
    FOLLOWER = "Follower"
    PROSPECTIVE = "Prospective"
    CANDIDATE = "Candidate"
    LEADER = "Leader"
    RESIGNED = "Resigned"


class RaftSettings(NamedTuple):
    """The settings controller.quorum.*, in milliseconds."""

    election_timeout_ms: int = 1000
    election_backoff_max_ms: int = 1000
    fetch_timeout_ms: int = 2000
    request_timeout_ms: int = 2000
    retry_backoff_ms: int = 20
    append_linger_ms: int = 25


class ReplicaDescription(NamedTuple):
    """What a leader knows of a replica. Times are -1 if unknown; offsets too.

    `last_caught_up_ms` is when the replica last had everything that the leader had at its previous fetch.
    """

    key: ReplicaKey
    log_end_offset: int
    last_fetch_ms: int
    last_caught_up_ms: int


class QuorumDescription(NamedTuple):
    """The quorum as its leader sees it (DescribeQuorum)."""

    leader_id: int
    epoch: int
    high_watermark: int
    voters: tuple[ReplicaDescription, ...]
    observers: tuple[ReplicaDescription, ...]
