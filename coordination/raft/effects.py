"""Outputs of the Raft machine. They must be performed in order.

An effect that cannot be performed (a full or failed disk) is fatal for the node: it must stop.
"""

from collections.abc import Hashable
from typing import NamedTuple

from kafka_compat.coordination.raft.events import RaftError
from kafka_compat.coordination.raft.values import (
    Batch,
    ElectionState,
    OffsetAndEpoch,
    ReplicaKey,
    Role,
    VoterSet,
)

# --- on this node's disk


class SaveElection(NamedTuple):
    """Write the state to quorum-state durably, before the next effect."""

    state: ElectionState


class AppendLeaderChange(NamedTuple):
    """Append the first batch of an epoch: a LeaderChange record. Not flushed."""

    base_offset: int
    epoch: int
    leader_id: int
    voters: tuple[ReplicaKey, ...]
    granting: tuple[ReplicaKey, ...]


class AppendVoters(NamedTuple):
    """Append a batch with a set of voters (KIP-853). Not flushed.

    The batch has one record, or two if `with_version`: a KRaftVersion record comes first.
    """

    base_offset: int
    epoch: int
    voters: VoterSet
    with_version: bool = False


class AppendProposal(NamedTuple):
    """Append the records of a proposal as one batch at `base_offset`. Not flushed."""

    proposal_id: Hashable
    base_offset: int
    epoch: int


class RejectProposal(NamedTuple):
    """A proposal is not appended, because this node does not lead (or no longer the epoch asked for)."""

    proposal_id: Hashable


class AppendFetched(NamedTuple):
    """Append fetched batches as they came. Not flushed."""

    batches: tuple[Batch, ...]
    data: bytes


class Truncate(NamedTuple):
    """Remove all records from this offset on, durably before any later append is flushed."""

    offset: int


class Flush(NamedTuple):
    """Flush the log in the background, then send the event Flushed. At most one is under way."""

    end_offset: int


class FetchSnapshot(NamedTuple):
    """Fetch a snapshot from the leader, then send SnapshotFetched or SnapshotNotFetched.

    Send SnapshotProgressed for each part. A later FetchSnapshot replaces one that has not ended.
    """

    leader_id: int
    epoch: int
    snapshot: OffsetAndEpoch


class InstallSnapshot(NamedTuple):
    """Begin the log at the end of this fetched snapshot, without records, durably before the next effect."""

    snapshot: OffsetAndEpoch


# --- requests to other nodes. The driver reports each response, or RequestFailed, as an event with the same
# `correlation_id`, exactly once. A request must not wait for the response to an earlier one, which may be
# delayed by the other node or never arrive. The driver knows the addresses of `RaftMachine.voters`, and of
# leaders that requests and responses have named. If an address is unknown, it reports RequestFailed (not
# refused).


class SendVote(NamedTuple):
    correlation_id: int
    node_id: int
    epoch: int
    voter: ReplicaKey
    last: OffsetAndEpoch
    pre_vote: bool


class SendBeginQuorumEpoch(NamedTuple):
    correlation_id: int
    node_id: int
    epoch: int
    voter: ReplicaKey


class SendEndQuorumEpoch(NamedTuple):
    correlation_id: int
    node_id: int
    epoch: int
    successors: tuple[ReplicaKey, ...]


class SendFetch(NamedTuple):
    """Fetch from a node, or (`node_id` -1) from the next address of controller.quorum.bootstrap.servers.

    The other node may wait up to `max_wait_ms` before it answers.
    """

    correlation_id: int
    node_id: int
    epoch: int
    offset: int
    last_epoch: int
    high_watermark: int
    max_wait_ms: int


# --- answers to requests of other nodes. All of them carry the epoch and leader that this node knows.


class AnswerVote(NamedTuple):
    request_id: Hashable
    error: RaftError
    epoch: int
    leader_id: int
    granted: bool


class AnswerEpoch(NamedTuple):
    """The answer to BeginQuorumEpoch or EndQuorumEpoch."""

    request_id: Hashable
    error: RaftError
    epoch: int
    leader_id: int


class AnswerFetch(NamedTuple):
    """The answer to a fetch: send the records from `offset` (up to `end_offset`) if neither `diverging` nor
    `snapshot` is set and `error` is NONE.
    """

    request_id: Hashable
    error: RaftError
    epoch: int
    leader_id: int
    high_watermark: int
    diverging: OffsetAndEpoch | None
    snapshot: OffsetAndEpoch | None
    offset: int
    end_offset: int


class AnswerSnapshot(NamedTuple):
    """Whether this node may send a part of the snapshot (`error` is NONE)."""

    request_id: Hashable
    error: RaftError
    epoch: int
    leader_id: int


class AnswerVoterChange(NamedTuple):
    request_id: Hashable
    error: RaftError
    epoch: int
    leader_id: int
    message: str | None


# --- to the state machine on top


class Committed(NamedTuple):
    """The high watermark has advanced: the records below it are committed."""

    high_watermark: int


class RoleChanged(NamedTuple):
    """The role, the epoch or the known leader has changed."""

    role: Role
    epoch: int
    leader_id: int


class FetchedFrom(NamedTuple):
    """A replica (voter or observer) has fetched from this leader, so its process is alive."""

    node_id: int


Effect = (
    SaveElection
    | AppendLeaderChange
    | AppendVoters
    | AppendProposal
    | RejectProposal
    | AppendFetched
    | Truncate
    | Flush
    | FetchSnapshot
    | InstallSnapshot
    | SendVote
    | SendBeginQuorumEpoch
    | SendEndQuorumEpoch
    | SendFetch
    | AnswerVote
    | AnswerEpoch
    | AnswerFetch
    | AnswerSnapshot
    | AnswerVoterChange
    | Committed
    | RoleChanged
    | FetchedFrom
)
