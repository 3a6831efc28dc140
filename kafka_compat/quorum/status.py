"""State of a quorum as one of its nodes sees it, for metrics, health checks, the page and DescribeQuorum."""

from collections.abc import Mapping
from typing import Final, NamedTuple, Protocol

from kafka_compat.coordination.raft.machine import RaftMachine
from kafka_compat.coordination.raft.values import NO_NODE, QuorumDescription, Role
from kafka_compat.quorum.statistics import QuorumStatistics


class NodeState(NamedTuple):
    """A node's state at one time. Unknown IDs and offsets are -1."""

    node_id: int
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

    @property
    def is_leader(self) -> bool:
        return self.state == "leader"


class QuorumStatus(Protocol):
    """Interface of a quorum node to everything that shows its state."""

    @property
    def statistics(self) -> QuorumStatistics:
        """The node's counters and latencies, which the node records."""

    def state(self) -> NodeState:
        """Return the current state."""

    def describe(self) -> QuorumDescription | None:
        """Return all replicas as the leader sees them, or None if this node is not the leader. Their times
        are those of `now_ms`.
        """

    def now_ms(self) -> int:
        """Return the time of the node's monotonic clock, in milliseconds."""


_STATES: Final = {
    Role.LEADER: "leader",
    Role.CANDIDATE: "candidate",
    Role.PROSPECTIVE: "prospective",
    Role.FOLLOWER: "follower",
    Role.UNATTACHED: "unattached",
    Role.RESIGNED: "resigned",
}
_WITH_VOTE: Final = (Role.PROSPECTIVE, Role.UNATTACHED)


def state_of(machine: RaftMachine, node_id: int, applied_offset: int) -> NodeState:
    """Return the state of a node with this Raft machine."""
    state = _STATES[machine.role]
    voted = machine.voted
    if not machine.is_voter and machine.role in (Role.FOLLOWER, Role.UNATTACHED):
        state = "observer"
    elif machine.role in _WITH_VOTE and voted is not None:
        state += "-voted"
    return NodeState(
        node_id,
        state,
        machine.leader_id,
        machine.epoch,
        NO_NODE if voted is None else voted.node_id,
        machine.high_watermark,
        machine.log.end_offset,
        machine.log.last_epoch,
        applied_offset,
        {
            voter_id: next(iter(voter.endpoints.values()), None)
            for voter_id, voter in sorted(machine.voters.items())
        },
    )
