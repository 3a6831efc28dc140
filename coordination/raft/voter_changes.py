"""Changes of the set of voters (KIP-853), made by the leader.

Rules:
- A set of voters counts when it is appended, and differs from the one before it in one voter, so that
  majorities of both overlap.
- The next change may begin when the last one is committed, and a record of the leader's own epoch as well.
- A new voter must have caught up within the last hour. The last voter cannot be removed.
- A leader that removes itself does not count itself, and resigns when its removal is committed.
- The request is answered when the change is committed. If its time is up before, the change may still
  happen.
"""

from kafka_compat.coordination.raft import effects
from kafka_compat.coordination.raft.events import RaftError, VoterChange, VoterChangeRequested
from kafka_compat.coordination.raft.leader_state import LeaderState
from kafka_compat.coordination.raft.quorum_state import QuorumState
from kafka_compat.coordination.raft.values import Batch, Voter, VoterSet
from kafka_compat.coordination.raft.voter_set import voter_set


class VoterChanges:
    def __init__(self, quorum: QuorumState) -> None:
        self._quorum = quorum

    def requested(self, event: VoterChangeRequested) -> None:
        quorum, leader = self._quorum, self._quorum.state
        if not isinstance(leader, LeaderState):
            self._answer(event, RaftError.NOT_LEADER_OR_FOLLOWER, "This node is not the leader.")
            return
        if event.epoch >= 0 and event.epoch != quorum.epoch:
            is_old = event.epoch < quorum.epoch
            self._answer(
                event, RaftError.FENCED_LEADER_EPOCH if is_old else RaftError.UNKNOWN_LEADER_EPOCH, None
            )
            return
        if quorum.static_voters:
            self._answer(
                event,
                RaftError.UNSUPPORTED_VERSION,
                "The voters are set by controller.quorum.voters (kraft.version 0).",
            )
            return
        refusal = self._refusal(leader, event)
        if refusal is not None:
            self._answer(event, *refusal)
            return
        quorum.voter_change = (event.request_id, quorum.now_ms + event.timeout_ms)
        self._append(leader, _changed(quorum.voters, event))

    def _refusal(self, leader: LeaderState, event: VoterChangeRequested) -> tuple[RaftError, str] | None:
        quorum = self._quorum
        if leader.high_watermark < 0:
            return RaftError.REQUEST_TIMED_OUT, "The leader has not committed a record of its epoch yet."
        if quorum.voter_change is not None or quorum.log.voters_offset >= leader.high_watermark:
            return RaftError.REQUEST_TIMED_OUT, "Another change of the voters is not committed yet."
        known = quorum.voters.get(event.voter.node_id)
        if event.change is VoterChange.ADD:
            if known is not None:
                return RaftError.DUPLICATE_VOTER, f"Node {event.voter.node_id} is a voter already."
            if not leader.has_caught_up(event.voter, quorum.now_ms):
                return RaftError.REQUEST_TIMED_OUT, f"Node {event.voter.node_id} has not caught up."
        elif known is None or known.key != event.voter:
            return (
                RaftError.VOTER_NOT_FOUND,
                f"Node {event.voter.node_id} is no voter with this directory ID.",
            )
        elif event.change is VoterChange.REMOVE and len(quorum.voters) == 1:
            return RaftError.INVALID_REQUEST, "The last voter cannot be removed."
        return None

    def _append(self, leader: LeaderState, voters: VoterSet) -> None:
        """Append a set of voters. It takes effect at once, before it is committed."""
        quorum = self._quorum
        base = quorum.log.end_offset
        quorum.log.append(Batch(base, base, quorum.epoch, voters))
        quorum.effects.append(effects.AppendVoters(base, quorum.epoch, voters))
        leader.change_voters(voters)

    def begin_epoch(self) -> None:
        """Append the voters of the snapshot 0-0, which is never sent, once the first leader is elected."""
        quorum = self._quorum
        voters = quorum.log.voters
        if not quorum.is_leader or quorum.static_voters or not voters or quorum.log.voters_offset >= 0:
            return
        base = quorum.log.end_offset
        quorum.log.append(Batch(base, base + 1, quorum.epoch, voters))
        quorum.effects.append(effects.AppendVoters(base, quorum.epoch, voters, with_version=True))

    def committed(self, leader: LeaderState) -> None:
        """Answer the change if it is below the high watermark."""
        if self._quorum.log.voters_offset < leader.high_watermark:
            self._quorum.answer_voter_change(RaftError.NONE)

    def expire(self) -> None:
        change = self._quorum.voter_change
        if change is not None and self._quorum.now_ms >= change[1]:
            self._quorum.answer_voter_change(
                RaftError.REQUEST_TIMED_OUT, "The change is not committed yet, and may still be."
            )

    def is_removed(self, leader: LeaderState) -> bool:
        """Return whether this leader is no voter any more, and its removal is committed."""
        quorum = self._quorum
        return not quorum.is_voter and quorum.log.voters_offset < leader.high_watermark

    def _answer(self, event: VoterChangeRequested, error: RaftError, message: str | None) -> None:
        quorum = self._quorum
        quorum.effects.append(
            effects.AnswerVoterChange(event.request_id, error, quorum.epoch, quorum.leader_id, message)
        )


def _changed(voters: VoterSet, event: VoterChangeRequested) -> VoterSet:
    others = [voter for node_id, voter in voters.items() if node_id != event.voter.node_id]
    if event.change is VoterChange.REMOVE:
        return voter_set(others)
    return voter_set([*others, Voter(event.voter, dict(event.endpoints))])
