"""State of a quorum as one of its nodes sees it, for metrics, health checks, the page and DescribeQuorum."""

from collections.abc import Mapping
from typing import NamedTuple, Protocol

from kafka_compat.coordination.raft.values import NO_NODE, QuorumDescription
from kafka_compat.quorum.statistics import QuorumStatistics


class QuorumState(NamedTuple):
    """A node's state at one time. Unknown IDs and offsets are -1."""

    node_id: int
    roles: tuple[str, ...]
    """The node's process.roles: "broker", "controller" or both."""
    state: str
    """The Raft state, as in Kafka's raft-metrics: leader, candidate, prospective, prospective-voted,
    follower, unattached, unattached-voted, resigned, or observer for a node that is not a voter."""
    leader_id: int = NO_NODE
    epoch: int = 0
    voted_id: int = NO_NODE
    high_watermark: int = -1
    log_end_offset: int = 0
    log_end_epoch: int = 0
    applied_offset: int = 0
    """The offset up to which the node has applied the log to its metadata."""
    voters: Mapping[int, tuple[str, int] | None] = {}
    """Maps the IDs of all voters to their addresses, or None if an address is unknown."""
    uncommitted_voter_change: bool = False
    """Whether a change of the voters (KIP-853) is not committed yet. Only the leader knows."""

    @property
    def is_leader(self) -> bool:
        return self.state == "leader"


class QuorumStatus(Protocol):
    """Interface of a quorum node to everything that shows its state."""

    @property
    def statistics(self) -> QuorumStatistics:
        """The node's counters and latencies, which the node records."""

    def state(self) -> QuorumState:
        """Return the current state."""

    def describe(self) -> QuorumDescription | None:
        """Return all replicas as the leader sees them, or None if this node is not the leader."""
