"""The Raft machine of one node: it takes events and the time, and returns effects.

Rules:
- Effects must be performed in order, and those of one event before the next event is handled. Only Flush,
  FetchSnapshot and the requests to other nodes end later, with an event.
- After each event, the machine does everything that is due, until nothing changes any more: timeouts,
  requests, answers to fetches that waited, a flush. `deadline_ms` is the next time at which something is
  due.

The imported modules document the rules of elections, followers, leaders, the log and the voters.
"""

import random
from collections.abc import Callable
from typing import Any

from kafka_compat.coordination.raft import events
from kafka_compat.coordination.raft.effects import Effect, Flush
from kafka_compat.coordination.raft.elections import Elections
from kafka_compat.coordination.raft.events import Event
from kafka_compat.coordination.raft.following import Following
from kafka_compat.coordination.raft.leader_state import LeaderState
from kafka_compat.coordination.raft.leading import Leading
from kafka_compat.coordination.raft.log_state import LogState
from kafka_compat.coordination.raft.quorum_state import QuorumState
from kafka_compat.coordination.raft.role_states import Follower, Nominee
from kafka_compat.coordination.raft.values import (
    NO_NODE,
    ElectionState,
    QuorumDescription,
    RaftSettings,
    ReplicaKey,
    Role,
    VoterSet,
)
from kafka_compat.coordination.raft.voter_changes import VoterChanges


class RaftMachine:
    """The Raft machine of one node.

    `voters` are the static voters (kraft.version 0; directory IDs are ignored), or empty: then the voters are
    those in the log and its snapshot (KIP-853). `election` and `log` come from disk; the machine owns `log`,
    and changes it as its effects change the log. Times are in milliseconds of a clock that never goes back.
    """

    def __init__(
        self,
        local: ReplicaKey,
        voters: VoterSet,
        settings: RaftSettings,
        election: ElectionState,
        log: LogState,
        random: random.Random,
    ) -> None:
        if log.last_epoch > election.epoch:
            election = ElectionState(log.last_epoch)
        self._quorum = QuorumState(local, voters, settings, election, log, random)
        self._elections = Elections(self._quorum)
        self._following = Following(self._quorum, self._elections)
        self._changes = VoterChanges(self._quorum)
        self._leading = Leading(self._quorum, self._changes)
        self._handlers: dict[type[Event], Callable[[Any], None]] = {
            events.VoteRequested: self._elections.vote_requested,
            events.BeginQuorumEpochRequested: self._elections.begin_requested,
            events.EndQuorumEpochRequested: self._elections.end_requested,
            events.FetchRequested: self._leading.fetch_requested,
            events.SnapshotRequested: self._leading.snapshot_requested,
            events.VoteAnswered: self._elections.vote_answered,
            events.EpochAnswered: self._elections.epoch_answered,
            events.FetchAnswered: self._following.fetch_answered,
            events.RequestFailed: self._following.request_failed,
            events.SnapshotProgressed: self._following.snapshot_progressed,
            events.SnapshotFetched: self._following.snapshot_fetched,
            events.SnapshotNotFetched: self._following.snapshot_not_fetched,
            events.Started: self._started,
            events.TimePassed: _nothing,
            events.Proposed: self._leading.proposed,
            events.Flushed: self._flushed,
            events.SnapshotTaken: self._snapshot_taken,
            events.LogStartMoved: self._log_start_moved,
            events.Resigning: self._resigning,
            events.VoterChangeRequested: self._changes.requested,
        }

    def handle(self, event: Event, now_ms: int) -> list[Effect]:
        """Handle an event, and return the effects in order. The first event must be Started."""
        quorum = self._quorum
        quorum.now_ms = max(quorum.now_ms, now_ms)
        handler = self._handlers[type(event)]
        handler(event)
        self._poll()
        due, quorum.effects = quorum.effects, []
        return due

    def _poll(self) -> None:
        quorum = self._quorum
        while True:
            state = quorum.state
            self._changes.begin_epoch()
            self._elections.poll()
            self._leading.poll()
            self._following.poll()
            if quorum.state is state:
                break
        end_offset = quorum.log.begin_flush()
        if end_offset is not None:
            quorum.effects.append(Flush(end_offset))

    # --- events of this node

    def _started(self, event: events.Started) -> None:
        self._quorum.start()
        self._elections.stand_alone()

    def _flushed(self, event: events.Flushed) -> None:
        self._leading.flushed()

    def _snapshot_taken(self, event: events.SnapshotTaken) -> None:
        log = self._quorum.log
        if log.snapshot is None or event.snapshot.offset > log.snapshot.offset:
            log.snapshot = event.snapshot

    def _log_start_moved(self, event: events.LogStartMoved) -> None:
        self._quorum.log.move_start(event.start_offset)

    def _resigning(self, event: events.Resigning) -> None:
        self._quorum.is_stopping = True

    # --- questions

    @property
    def deadline_ms(self) -> int | None:
        """The time at which TimePassed must be sent, unless another event changes it."""
        times = (self._elections.deadline_ms(), self._following.deadline_ms(), self._leading.deadline_ms())
        return min((time_ms for time_ms in times if time_ms is not None), default=None)

    @property
    def settings(self) -> RaftSettings:
        return self._quorum.settings

    @property
    def role(self) -> Role:
        return self._quorum.state.role

    @property
    def epoch(self) -> int:
        return self._quorum.epoch

    @property
    def leader_id(self) -> int:
        """The ID of the known leader; -1 if it is unknown."""
        return self._quorum.leader_id

    @property
    def hears_leader(self) -> bool:
        """Whether this node leads, or its leader answered the last fetch. A node that has lost its leader may
        go on naming it, until there is another one.
        """
        state = self._quorum.state
        if isinstance(state, Follower):
            return state.has_fetched and not state.is_leader_gone
        return self._quorum.is_leader

    @property
    def expected_leader_id(self) -> int:
        """The ID of the leader to which records may be sent: the known leader, unless this node seeks another
        one, or has sought one in vain and not heard the known one since; -1 if there is none.
        """
        state = self._quorum.state
        is_missed = isinstance(state, Nominee) or (isinstance(state, Follower) and state.is_leader_missed)
        return NO_NODE if is_missed else self._quorum.leader_id

    @property
    def voted(self) -> ReplicaKey | None:
        """The candidate for which this node voted in its epoch."""
        return self._quorum.election.voted

    @property
    def high_watermark(self) -> int:
        """The offset below which records are known to be committed; -1 if unknown."""
        return self._quorum.high_watermark

    @property
    def voters(self) -> VoterSet:
        """The voters that count now: the static ones, or the last ones in the log, committed or not."""
        return self._quorum.voters

    @property
    def is_voter(self) -> bool:
        return self._quorum.is_voter

    @property
    def log(self) -> LogState:
        """The picture of the log. Only the machine may change it."""
        return self._quorum.log

    def describe(self, now_ms: int) -> QuorumDescription | None:
        """Describe the quorum for DescribeQuorum; None unless this node leads.

        Times of replicas are in the same clock as `now_ms`.
        """
        state = self._quorum.state
        if not isinstance(state, LeaderState):
            return None
        return state.describe(self._quorum.log.end_offset, now_ms)


def _nothing(event: events.TimePassed) -> None:
    """Everything that is due is done after each event."""
