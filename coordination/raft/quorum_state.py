"""The role of a node, and its transitions.

Rules:
- The epoch never falls. In an epoch, a node votes at most once, and knows at most one leader. Both are saved
  before any effect that depends on them.
- A transition forgets all requests that are under way. When a leadership ends, the waiting fetches are
  answered and the voter changes that wait are rejected.
- A node that is no voter is unattached or a follower; it may still vote, because its set of voters may be
  old.
- A leader that restarts is resigned: records of its epoch may have been lost, so it must not append more of
  them.
"""

import random
from collections.abc import Hashable

from kafka_compat.coordination.raft import effects
from kafka_compat.coordination.raft.connections import Connections
from kafka_compat.coordination.raft.effects import Effect
from kafka_compat.coordination.raft.events import FetchRequested, RaftError
from kafka_compat.coordination.raft.leader_state import LeaderState
from kafka_compat.coordination.raft.log_state import LogState
from kafka_compat.coordination.raft.role_states import Follower, Nominee, Resigned, Unattached
from kafka_compat.coordination.raft.values import (
    NO_NODE,
    Batch,
    ElectionState,
    OffsetAndEpoch,
    RaftSettings,
    ReplicaKey,
    Role,
    VoterSet,
)
from kafka_compat.coordination.raft.voter_set import is_in
from kafka_compat.coordination.raft.waiting_fetches import WaitingFetches

SUCCESSION_STEP_MS = 50
"""The delay between the voters that stand after they have lost their leader. In Kafka it is 0."""

RoleState = Unattached | Follower | Nominee | LeaderState | Resigned


class QuorumState:
    """What all parts of the machine share: the role, the log, the time, and the effects of this event."""

    def __init__(
        self,
        local: ReplicaKey,
        static_voters: VoterSet,
        settings: RaftSettings,
        election: ElectionState,
        log: LogState,
        random: random.Random,
    ) -> None:
        self.local = local
        self.static_voters = static_voters
        self.settings = settings
        self.election = election
        self.log = log
        self.random = random
        self.now_ms = 0
        self.effects: list[Effect] = []
        self.connections = Connections(settings)
        self.waiting = WaitingFetches()
        self.voter_change: tuple[Hashable, int] | None = None
        self.high_watermark = -1 if log.snapshot is None else log.snapshot.offset
        self.is_stopping = False
        self.state: RoleState = Unattached(0)
        self._told: tuple[Role, int, int] | None = None

    # --- questions

    @property
    def epoch(self) -> int:
        return self.election.epoch

    @property
    def leader_id(self) -> int:
        state = self.state
        if isinstance(state, LeaderState):
            return self.local.node_id
        return state.leader_id if isinstance(state, Follower | Nominee) else NO_NODE

    @property
    def voters(self) -> VoterSet:
        return self.static_voters or self.log.voters or {}

    @property
    def is_voter(self) -> bool:
        return is_in(self.local, self.voters, ignore_directory=bool(self.static_voters))

    @property
    def may_stand(self) -> bool:
        """Whether this node is a voter, or was one before a change that may not be committed."""
        if self.is_voter:
            return True
        log = self.log
        return (
            len(log.voter_sets) > 1
            and log.voters_offset >= self.high_watermark
            and is_in(self.local, log.voter_sets[-2][1], ignore_directory=False)
        )

    @property
    def is_leader(self) -> bool:
        return isinstance(self.state, LeaderState)

    @property
    def other_voters(self) -> list[int]:
        return [node_id for node_id in self.voters if node_id != self.local.node_id]

    def is_up_to_date(self, last: OffsetAndEpoch) -> bool:
        """Return whether a candidate's log has at least everything that may be committed in this one."""
        return (last.epoch, last.offset) >= (self.log.last_epoch, self.log.end_offset)

    def random_election_timeout_ms(self) -> int:
        timeout = self.settings.election_timeout_ms
        return timeout + self.random.randrange(timeout + 1)

    def succession_delay_ms(self, leader_id: int) -> int:
        """Return a delay that differs between the voters that may succeed a leader."""
        others = sorted(node_id for node_id in self.voters if node_id != leader_id)
        rank = others.index(self.local.node_id) if self.local.node_id in others else 0
        return min(rank, 10) * min(SUCCESSION_STEP_MS, self.settings.election_timeout_ms // 2)

    def fetch_deadline_ms(self, leader_id: int) -> int:
        """Return when a follower must have fetched again."""
        return self.now_ms + self.settings.fetch_timeout_ms + self.succession_delay_ms(leader_id)

    # --- transitions

    def start(self) -> None:
        """Take the role that follows from what was on disk."""
        election = self.election
        if election.leader_id == self.local.node_id:
            self._become(
                Resigned(self.now_ms + self.random_election_timeout_ms(), set(self.other_voters), ())
            )
        elif election.leader_id != NO_NODE:
            self._become(self._follower(election.leader_id))
        else:
            self._become(Unattached(self.now_ms + self.random_election_timeout_ms()))

    def become_unattached(self, epoch: int) -> None:
        """Enter an epoch whose leader is unknown, or stop asking for votes in this one."""
        state = self.state
        keeps_deadline = isinstance(state, Unattached | Resigned) or (
            isinstance(state, Nominee) and not (state.role is Role.PROSPECTIVE and state.has_lost)
        )
        if isinstance(state, Unattached | Resigned | Nominee) and keeps_deadline:
            deadline = state.election_deadline_ms
        else:
            deadline = self.now_ms + self.random_election_timeout_ms()
        if epoch > self.epoch:
            self._save(ElectionState(epoch))
        self._become(Unattached(max(deadline, self.now_ms + 1)))

    def vote(self, candidate: ReplicaKey) -> None:
        """Vote for a candidate in this epoch."""
        self._save(self.election._replace(voted=candidate))

    def become_follower(self, epoch: int, leader_id: int, *, is_missed: bool = False) -> None:
        """Follow the leader of this epoch or of a later one. `is_missed`: this node does not hear it."""
        if epoch < self.epoch or leader_id == self.local.node_id:
            raise ValueError(f"node {leader_id} cannot lead epoch {epoch} for node {self.local.node_id}")
        voted = self.election.voted if epoch == self.epoch else None
        self._save(ElectionState(epoch, leader_id, voted))
        follower = self._follower(leader_id)
        follower.is_leader_missed = is_missed
        self._become(follower)

    def become_prospective(self) -> None:
        """Ask for pre-votes, in the same epoch."""
        leader_id = self.leader_id
        deadline = self.now_ms + self.random_election_timeout_ms()
        nominee = Nominee(Role.PROSPECTIVE, self.voters, deadline, leader_id, self._own_vote())
        self.connections.reset()
        self._become(nominee)

    def become_candidate(self) -> None:
        """Vote for this node in a new epoch, and ask the others."""
        self._save(ElectionState(self.epoch + 1, NO_NODE, self.local))
        deadline = self.now_ms + self.random_election_timeout_ms()
        self.connections.reset()
        self._become(Nominee(Role.CANDIDATE, self.voters, deadline, NO_NODE, self._own_vote()))

    def _own_vote(self) -> set[int]:
        return {self.local.node_id} if self.is_voter else set()

    def become_leader(self, granted: set[int]) -> None:
        """Lead this epoch, which begins with a LeaderChange record."""
        self._save(ElectionState(self.epoch, self.local.node_id, self.election.voted))
        start = self.log.end_offset
        leader = LeaderState(self.local, self.epoch, start, self.voters, self.settings, self.now_ms)
        leader.flushed(self.log.flushed_end)
        self.connections.reset()
        self._become(leader)
        keys = tuple(voter.key for voter in self.voters.values())
        granting = tuple(key for key in keys if key.node_id in granted)
        self.effects.append(effects.AppendLeaderChange(start, self.epoch, self.local.node_id, keys, granting))
        self.log.append(Batch(start, start, self.epoch))

    def become_resigned(self) -> None:
        """Stop leading, and tell the voters who should follow."""
        assert isinstance(self.state, LeaderState)
        successors = self.state.successors()
        deadline = self.now_ms + self.random_election_timeout_ms()
        self.connections.reset()
        self._become(Resigned(deadline, set(self.other_voters), successors))

    def _follower(self, leader_id: int) -> Follower:
        self.connections.reset()
        return Follower(leader_id, self.fetch_deadline_ms(leader_id))

    def _become(self, state: RoleState) -> None:
        was_leader = self.is_leader
        self.state = state
        told = (state.role, self.epoch, self.leader_id)
        if told != self._told:
            self._told = told
            self.effects.append(effects.RoleChanged(*told))
        if was_leader:
            for request in self.waiting.take_all():
                self.answer_fetch(request, RaftError.NOT_LEADER_OR_FOLLOWER)
            self.answer_voter_change(RaftError.NOT_LEADER_OR_FOLLOWER, "This node is no longer the leader.")

    def _save(self, election: ElectionState) -> None:
        if election != self.election:
            self.election = election
            self.effects.append(effects.SaveElection(election))

    # --- effects

    def advance_high_watermark(self, offset: int) -> None:
        """Advance the high watermark to an offset. A lower offset has no effect."""
        offset = min(offset, self.log.end_offset)
        if offset > self.high_watermark:
            self.high_watermark = offset
            self.effects.append(effects.Committed(offset))

    def answer_fetch(
        self,
        request: FetchRequested,
        error: RaftError = RaftError.NONE,
        diverging: OffsetAndEpoch | None = None,
        snapshot: OffsetAndEpoch | None = None,
    ) -> None:
        state = self.state
        high_watermark = state.high_watermark if isinstance(state, LeaderState) else -1
        has_records = error is RaftError.NONE and diverging is None and snapshot is None
        end = max(self.log.end_offset, request.offset) if has_records else request.offset
        self.effects.append(
            effects.AnswerFetch(
                request.request_id,
                error,
                self.epoch,
                self.leader_id,
                high_watermark,
                diverging,
                snapshot,
                request.offset,
                end,
            )
        )

    def answer_voter_change(self, error: RaftError, message: str | None = None) -> None:
        """Answer the voter change that waits, if there is one."""
        if self.voter_change is not None:
            request_id, _ = self.voter_change
            self.voter_change = None
            self.effects.append(
                effects.AnswerVoterChange(request_id, error, self.epoch, self.leader_id, message)
            )
