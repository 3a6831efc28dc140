"""Inputs of the Raft machine. Requests of other nodes carry a `request_id`, which the answer repeats."""

from collections.abc import Hashable, Mapping
from enum import Enum
from typing import NamedTuple

from kafka_compat.coordination.raft.values import Batch, OffsetAndEpoch, ReplicaKey, VoterSet


class RaftError(Enum):
    """The errors of Raft's requests. The names are those of Kafka's error codes."""

    NONE = "NONE"
    FENCED_LEADER_EPOCH = "FENCED_LEADER_EPOCH"
    UNKNOWN_LEADER_EPOCH = "UNKNOWN_LEADER_EPOCH"
    NOT_LEADER_OR_FOLLOWER = "NOT_LEADER_OR_FOLLOWER"
    BROKER_NOT_AVAILABLE = "BROKER_NOT_AVAILABLE"
    INCONSISTENT_VOTER_SET = "INCONSISTENT_VOTER_SET"
    INVALID_REQUEST = "INVALID_REQUEST"
    INVALID_VOTER_KEY = "INVALID_VOTER_KEY"
    SNAPSHOT_NOT_FOUND = "SNAPSHOT_NOT_FOUND"
    POSITION_OUT_OF_RANGE = "POSITION_OUT_OF_RANGE"
    DUPLICATE_VOTER = "DUPLICATE_VOTER"
    VOTER_NOT_FOUND = "VOTER_NOT_FOUND"
    REQUEST_TIMED_OUT = "REQUEST_TIMED_OUT"
    UNSUPPORTED_VERSION = "UNSUPPORTED_VERSION"
    UNKNOWN_SERVER_ERROR = "UNKNOWN_SERVER_ERROR"


# --- requests of other nodes


class VoteRequested(NamedTuple):
    """A candidate (or, with `pre_vote`, a prospective candidate) asks for this node's vote.

    `last` is the end of its log and the epoch of its last record. `voter` is the node that it means to ask.
    """

    request_id: Hashable
    epoch: int
    candidate: ReplicaKey
    voter: ReplicaKey
    last: OffsetAndEpoch
    pre_vote: bool


class BeginQuorumEpochRequested(NamedTuple):
    """A leader tells a voter that it leads `epoch`."""

    request_id: Hashable
    epoch: int
    leader_id: int
    voter: ReplicaKey


class EndQuorumEpochRequested(NamedTuple):
    """A leader resigns. `successors` are the voters that it recommends, the best first."""

    request_id: Hashable
    epoch: int
    leader_id: int
    successors: tuple[ReplicaKey, ...]


class FetchRequested(NamedTuple):
    """A replica fetches from `offset`; `last_epoch` is the epoch of its last record, and `epoch` its epoch.

    `high_watermark` is the one that it knows (-1: none; 2**63 - 1 for versions of Fetch without it). The
    answer may wait up to `max_wait_ms` for records or a higher high watermark.
    """

    request_id: Hashable
    replica: ReplicaKey
    epoch: int
    offset: int
    last_epoch: int
    high_watermark: int
    max_wait_ms: int


class SnapshotRequested(NamedTuple):
    """A replica asks for a part of a snapshot. The machine checks only whether this node may answer.

    The driver checks whether the snapshot exists and the position is valid.
    """

    request_id: Hashable
    replica: ReplicaKey
    epoch: int
    snapshot: OffsetAndEpoch


Requested = (
    VoteRequested | BeginQuorumEpochRequested | EndQuorumEpochRequested | FetchRequested | SnapshotRequested
)


# --- answers of other nodes. `epoch` and `leader_id` are those that the answering node knows.
# `correlation_id` is that of the effect that sent the request: late answers are ignored.


class VoteAnswered(NamedTuple):
    correlation_id: int
    node_id: int
    error: RaftError
    epoch: int
    leader_id: int
    granted: bool
    pre_vote: bool


class EpochAnswered(NamedTuple):
    """The answer to BeginQuorumEpoch or EndQuorumEpoch."""

    correlation_id: int
    node_id: int
    error: RaftError
    epoch: int
    leader_id: int


class FetchAnswered(NamedTuple):
    """The answer to a fetch. `data` are the bytes of `batches`, which the machine does not read.

    At most one of `diverging` (the end of the last epoch that both logs may share), `snapshot` (the snapshot
    that must be fetched) and `batches` is set. `node_id` is -1 for an address of
    controller.quorum.bootstrap.servers.
    """

    correlation_id: int
    node_id: int
    error: RaftError
    epoch: int
    leader_id: int
    high_watermark: int
    log_start_offset: int
    diverging: OffsetAndEpoch | None
    snapshot: OffsetAndEpoch | None
    batches: tuple[Batch, ...]
    data: bytes


class RequestFailed(NamedTuple):
    """A request got no answer. `is_refused`: nothing listens at the node's address: its process is gone."""

    correlation_id: int
    node_id: int
    is_refused: bool


class SnapshotProgressed(NamedTuple):
    """A part of the snapshot of an effect FetchSnapshot has come, so the leader's process is alive."""

    snapshot: OffsetAndEpoch


class SnapshotFetched(NamedTuple):
    """The snapshot of an effect FetchSnapshot is complete and durable, but the log is as it was.

    The machine installs it with the effect InstallSnapshot, or ignores it: this node may have changed its
    role since. `voters` is the set of voters in it, if it has one (KIP-853).
    """

    snapshot: OffsetAndEpoch
    voters: VoterSet | None


class SnapshotNotFetched(NamedTuple):
    """A snapshot could not be fetched: fetch again, perhaps from another leader."""

    snapshot: OffsetAndEpoch


# --- of this node


class Started(NamedTuple):
    """The first event."""


class TimePassed(NamedTuple):
    """The machine's `deadline_ms` has come."""


class Proposed(NamedTuple):
    """Append one batch of `record_count` records. Rejected unless this node leads `epoch` (-1: any epoch)."""

    proposal_id: Hashable
    record_count: int
    epoch: int = -1


class Flushed(NamedTuple):
    """The flush of the effect Flush has ended: all records below its `end_offset` are on disk."""

    end_offset: int


class SnapshotTaken(NamedTuple):
    """A snapshot of this node is on disk. The log may begin there."""

    snapshot: OffsetAndEpoch


class LogStartMoved(NamedTuple):
    """The log begins at a later offset, because a snapshot replaces its beginning."""

    start_offset: int


class Resigning(NamedTuple):
    """This node stops: a leader tells the voters, and does not lead again."""


class VoterChange(Enum):
    """The requests AddRaftVoter, RemoveRaftVoter and UpdateRaftVoter (KIP-853)."""

    ADD = "ADD"
    REMOVE = "REMOVE"
    UPDATE = "UPDATE"


class VoterChangeRequested(NamedTuple):
    """Add a voter, remove it, or change its endpoints (KIP-853), on behalf of a request.

    `endpoints` are ignored when a voter is removed. The answer is sent when the change is committed, or
    after `timeout_ms`. `epoch` is that of an UpdateRaftVoter (-1: not compared).
    """

    request_id: Hashable
    change: VoterChange
    voter: ReplicaKey
    endpoints: Mapping[str, tuple[str, int]]
    timeout_ms: int
    epoch: int = -1


Event = (
    Requested
    | VoteAnswered
    | EpochAnswered
    | FetchAnswered
    | RequestFailed
    | SnapshotProgressed
    | SnapshotFetched
    | SnapshotNotFetched
    | Started
    | TimePassed
    | Proposed
    | Flushed
    | SnapshotTaken
    | LogStartMoved
    | Resigning
    | VoterChangeRequested
)
