"""Elections: votes and pre-votes, asked for and granted, and the messages of leaders about their epochs.

Rules:
- A request with a higher epoch ends the role in the lower one, whoever sends it. Epochs have 31 bits: a
  request whose epoch is so high that the next ones would soon be exhausted is rejected. (Not so in Kafka.)
- A vote is granted once in an epoch, only while its leader is unknown, and only for a log that is at least
  as long as this one: the last epochs are compared first, then the ends.
- A pre-vote changes nothing (KIP-996). It is granted for such a log, except by leaders, and by followers
  that have fetched from a leader that is not known to be gone. A voter that does not know pre-votes makes
  the prospective node a candidate at once.
- A voter that has rejected a pre-vote is asked again after a short pause, until the election timeout: it may
  notice later than this node that the leader is gone. (Kafka's node waits for the timeout.)
- A candidate that cannot win, because it has split the vote with another one, waits for a random part of the
  election backoff, and then asks for pre-votes. (Kafka's candidate waits for its election timeout.) A
  prospective node that cannot win follows the leader that it knew, or is unattached.
- A node that its own log has removed from the voters may stand until it knows that its removal is committed,
  but does not count itself. Its log may be the only one that can win. (Not so in Kafka.)
- A resigning leader names its successors. The first becomes prospective at once, the next ones later, up to
  the election backoff. Followers that were told grant pre-votes, other than Kafka's, so that the pre-vote of
  the first one succeeds while the others wait.
"""

from kafka_compat.coordination.raft import effects, events
from kafka_compat.coordination.raft.events import RaftError
from kafka_compat.coordination.raft.quorum_state import SUCCESSION_STEP_MS, QuorumState
from kafka_compat.coordination.raft.role_states import Follower, Nominee, Resigned, Unattached
from kafka_compat.coordination.raft.values import NO_NODE, ReplicaKey, Role
from kafka_compat.coordination.raft.voter_set import is_same

_PLAUSIBLE_EPOCH_MAX = 2**30
"""The highest epoch that a request may have at any time. A quorum with an election per second needs 34 years
to reach it.
"""
_HIGHER_EPOCHS_MAX = 1000
"""How much higher than this node's epoch the epoch of a request may be above _PLAUSIBLE_EPOCH_MAX."""


class Elections:
    def __init__(self, quorum: QuorumState) -> None:
        self._quorum = quorum

    # --- requests of other nodes

    def vote_requested(self, event: events.VoteRequested) -> None:
        quorum = self._quorum
        if event.epoch < 0 or event.last.epoch < 0 or event.last.offset < 0 or event.candidate.node_id < 0:
            self._answer_vote(event, RaftError.INVALID_REQUEST, granted=False)
            return
        # A candidate's epoch is above that of its last record; a prospective node has not entered one yet.
        if event.last.epoch > event.epoch or (event.last.epoch == event.epoch and not event.pre_vote):
            self._answer_vote(event, RaftError.INVALID_REQUEST, granted=False)
            return
        if not self._is_plausible(event.epoch):
            self._answer_vote(event, RaftError.INVALID_REQUEST, granted=False)
            return
        if event.epoch < quorum.epoch:
            self._answer_vote(event, RaftError.FENCED_LEADER_EPOCH, granted=False)
            return
        if event.epoch > quorum.epoch:
            quorum.become_unattached(event.epoch)
        if not is_same(event.voter, quorum.local):
            self._answer_vote(event, RaftError.INVALID_VOTER_KEY, granted=False)
            return
        granted = self._grants(event)
        if granted and not event.pre_vote:
            quorum.vote(event.candidate)
        self._answer_vote(event, RaftError.NONE, granted=granted)

    def _grants(self, event: events.VoteRequested) -> bool:
        quorum, state = self._quorum, self._quorum.state
        up_to_date = quorum.is_up_to_date(event.last)
        if event.pre_vote:
            if isinstance(state, Follower):
                return up_to_date and (not state.has_fetched or state.is_leader_gone)
            return up_to_date and not quorum.is_leader
        if quorum.election.voted is not None:
            return is_same(quorum.election.voted, event.candidate)
        if quorum.election.leader_id != NO_NODE:
            return False
        return up_to_date and isinstance(state, Unattached | Nominee)

    def begin_requested(self, event: events.BeginQuorumEpochRequested) -> None:
        quorum = self._quorum
        error = self._check_leader(event.epoch, event.leader_id)
        if error is RaftError.NONE and not is_same(event.voter, quorum.local):
            error = RaftError.INVALID_VOTER_KEY
        if error is RaftError.NONE:
            self.learn(event.epoch, event.leader_id)
            if isinstance(quorum.state, Nominee) and quorum.state.leader_id == event.leader_id:
                # The missed leader reaches this node again. (Kafka's node goes on with its election.)
                quorum.become_follower(event.epoch, event.leader_id, is_missed=True)
            if isinstance(quorum.state, Follower):
                quorum.state.fetch_deadline_ms = quorum.fetch_deadline_ms(event.leader_id)
        self._answer_epoch(event, error)

    def end_requested(self, event: events.EndQuorumEpochRequested) -> None:
        quorum = self._quorum
        error = self._check_leader(event.epoch, event.leader_id)
        if error is RaftError.NONE:
            self.learn(event.epoch, event.leader_id)
            state = quorum.state
            if isinstance(state, Follower) and state.leader_id == event.leader_id:
                state.fetch_deadline_ms = quorum.now_ms + self._succession_delay_ms(event.successors)
                state.is_leader_gone = True
        self._answer_epoch(event, error)

    def _check_leader(self, epoch: int, leader_id: int) -> RaftError:
        quorum = self._quorum
        if epoch < quorum.epoch:
            return RaftError.FENCED_LEADER_EPOCH
        if leader_id < 0 or not self._is_plausible(epoch):
            return RaftError.INVALID_REQUEST
        known = quorum.election.leader_id
        if epoch == quorum.epoch and (
            known not in (NO_NODE, leader_id) or (leader_id == quorum.local.node_id and known == NO_NODE)
        ):
            return RaftError.INVALID_REQUEST
        return RaftError.NONE

    def _is_plausible(self, epoch: int) -> bool:
        return epoch <= max(_PLAUSIBLE_EPOCH_MAX, self._quorum.epoch + _HIGHER_EPOCHS_MAX)

    def _succession_delay_ms(self, successors: tuple[ReplicaKey, ...]) -> int:
        """Return 0 for the first successor, and an exponentially growing delay for the others."""
        position, local = len(successors), self._quorum.local
        for index, key in enumerate(successors):
            if is_same(key, local):
                position = index
                break
        limit = self._quorum.settings.election_backoff_max_ms
        if position == len(successors):
            return limit
        return 0 if position == 0 else min(limit, (limit >> (len(successors) - 1)) << (position - 1))

    def learn(self, epoch: int, leader_id: int) -> None:
        """Take over the epoch and leader that another node knows, if they are newer."""
        quorum = self._quorum
        is_local = leader_id == quorum.local.node_id
        if epoch > quorum.epoch:
            if leader_id == NO_NODE or is_local:
                quorum.become_unattached(epoch)
            else:
                quorum.become_follower(epoch, leader_id)
        elif (
            epoch == quorum.epoch
            and quorum.election.leader_id == NO_NODE
            and leader_id != NO_NODE
            and not is_local
        ):
            quorum.become_follower(epoch, leader_id)

    # --- answers of other nodes

    def vote_answered(self, event: events.VoteAnswered) -> None:
        quorum, state = self._quorum, self._quorum.state
        if not quorum.connections.answered(event.node_id, event.correlation_id):
            return
        if not isinstance(state, Nominee) or (state.role is Role.PROSPECTIVE) != event.pre_vote:
            return
        if event.error is RaftError.UNSUPPORTED_VERSION and event.pre_vote:
            quorum.become_candidate()
            return
        if event.epoch > quorum.epoch or event.leader_id != NO_NODE:
            self.learn(event.epoch, event.leader_id)
            if quorum.state is not state:
                return
        state.failed.discard(event.node_id)
        if event.error is not RaftError.NONE:
            quorum.connections.back_off(event.node_id, quorum.now_ms)
        elif event.granted:
            state.granted.add(event.node_id)
            state.rejected.discard(event.node_id)
        else:
            state.rejected.add(event.node_id)
            quorum.connections.back_off(event.node_id, quorum.now_ms, SUCCESSION_STEP_MS)
        self._decide(state)

    def vote_failed(self, state: Nominee, node_id: int) -> None:
        """Record that a voter did not respond."""
        state.failed.add(node_id)
        self._decide(state)

    def epoch_answered(self, event: events.EpochAnswered) -> None:
        quorum = self._quorum
        if not quorum.connections.answered(event.node_id, event.correlation_id):
            return
        if event.epoch > quorum.epoch:
            self.learn(event.epoch, event.leader_id)
        elif isinstance(quorum.state, Resigned):
            quorum.state.unacknowledged.discard(event.node_id)

    def _decide(self, state: Nominee) -> None:
        quorum = self._quorum
        if state.has_won:
            if state.role is Role.PROSPECTIVE:
                quorum.become_candidate()
            else:
                quorum.become_leader(state.granted)
        elif state.role is Role.PROSPECTIVE:
            if state.has_lost:
                self._lose(state)
        elif state.is_blocked and state.rejected and not state.is_backing_off:
            state.is_backing_off = True
            backoff_ms = quorum.random.randrange(quorum.settings.election_backoff_max_ms + 1)
            state.election_deadline_ms = min(state.election_deadline_ms, quorum.now_ms + backoff_ms)

    def _lose(self, state: Nominee) -> None:
        if state.leader_id != NO_NODE:
            self._quorum.become_follower(self._quorum.epoch, state.leader_id, is_missed=True)
        else:
            self._quorum.become_unattached(self._quorum.epoch)

    # --- time

    def poll(self) -> None:
        """Make the transitions that are due, and send the requests that may be sent."""
        quorum, state = self._quorum, self._quorum.state
        if isinstance(state, Unattached):
            if self._may_stand() and quorum.now_ms >= state.election_deadline_ms:
                quorum.become_prospective()
        elif isinstance(state, Resigned):
            self._poll_resigned(state)
        elif isinstance(state, Follower):
            if self._may_stand() and quorum.now_ms >= state.fetch_deadline_ms:
                quorum.become_prospective()
        elif isinstance(state, Nominee):
            self._poll_nominee(state)

    def deadline_ms(self) -> int | None:
        quorum, state = self._quorum, self._quorum.state
        if isinstance(state, Unattached):
            return state.election_deadline_ms if self._may_stand() else None
        if isinstance(state, Follower):
            return state.fetch_deadline_ms if self._may_stand() else None
        if isinstance(state, Resigned):
            ready = [quorum.connections.ready_ms(node_id) for node_id in state.unacknowledged]
            return min([*ready, *([] if quorum.is_stopping else [state.election_deadline_ms])], default=None)
        if isinstance(state, Nominee):
            if state.has_lost:
                return state.election_deadline_ms
            ready = [quorum.connections.ready_ms(node_id) for node_id in state.unrecorded]
            return min([*ready, state.election_deadline_ms])
        return None

    def stand_alone(self) -> None:
        """Lead at once if this node is the only voter."""
        quorum = self._quorum
        if quorum.is_voter and len(quorum.voters) == 1 and not quorum.is_stopping and not quorum.is_leader:
            quorum.become_candidate()
            quorum.become_leader({quorum.local.node_id})

    def _may_stand(self) -> bool:
        return self._quorum.may_stand and not self._quorum.is_stopping

    def _poll_resigned(self, state: Resigned) -> None:
        quorum = self._quorum
        if quorum.now_ms >= state.election_deadline_ms and not quorum.is_stopping:
            # The epoch has no leader any more, and this node must not vote in it for another one.
            quorum.become_unattached(quorum.epoch + 1)
            return
        keys = tuple(quorum.voters[node_id].key for node_id in state.successors if node_id in quorum.voters)
        for node_id in sorted(state.unacknowledged):
            if quorum.connections.is_ready(node_id, quorum.now_ms):
                correlation_id = quorum.connections.send(node_id, quorum.now_ms)
                quorum.effects.append(effects.SendEndQuorumEpoch(correlation_id, node_id, quorum.epoch, keys))

    def _poll_nominee(self, state: Nominee) -> None:
        quorum = self._quorum
        if state.has_won:
            self._decide(state)
        elif not self._may_stand():
            self._lose(state)
        elif quorum.now_ms >= state.election_deadline_ms:
            if state.role is Role.CANDIDATE:
                quorum.become_prospective()
            else:
                self._lose(state)
        elif not state.has_lost:
            self._send_votes(state)

    def _send_votes(self, state: Nominee) -> None:
        quorum = self._quorum
        for node_id in state.unrecorded:
            if quorum.connections.is_ready(node_id, quorum.now_ms):
                correlation_id = quorum.connections.send(node_id, quorum.now_ms)
                key = state.voters[node_id].key
                pre_vote = state.role is Role.PROSPECTIVE
                quorum.effects.append(
                    effects.SendVote(correlation_id, node_id, quorum.epoch, key, quorum.log.end, pre_vote)
                )

    # --- answers

    def _answer_vote(self, event: events.VoteRequested, error: RaftError, *, granted: bool) -> None:
        quorum = self._quorum
        quorum.effects.append(
            effects.AnswerVote(event.request_id, error, quorum.epoch, quorum.leader_id, granted)
        )

    def _answer_epoch(
        self, event: events.BeginQuorumEpochRequested | events.EndQuorumEpochRequested, error: RaftError
    ) -> None:
        quorum = self._quorum
        quorum.effects.append(effects.AnswerEpoch(event.request_id, error, quorum.epoch, quorum.leader_id))
