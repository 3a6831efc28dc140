"""The work of a leader: records appended, fetches answered, voters told about it.

Rules:
- A proposal is appended at once as one batch. Batches that are appended during a flush share the next flush.
- Fetches are answered with records before they are flushed: only the high watermark says what is committed.
- Errors of a fetch, in Kafka's order: values that cannot be (INVALID_REQUEST), an older epoch
  (FENCED_LEADER_EPOCH), a newer one (UNKNOWN_LEADER_EPOCH), not the leader (NOT_LEADER_OR_FOLLOWER),
  stopping (BROKER_NOT_AVAILABLE). Only the first valid offset counts as progress of the replica.
- A leader resigns when no majority fetches from it, when it stops, and when it is no voter any more.
"""

from kafka_compat.coordination.raft import effects, events
from kafka_compat.coordination.raft.events import RaftError
from kafka_compat.coordination.raft.leader_state import LeaderState
from kafka_compat.coordination.raft.quorum_state import QuorumState
from kafka_compat.coordination.raft.values import Batch
from kafka_compat.coordination.raft.voter_changes import VoterChanges


class Leading:
    def __init__(self, quorum: QuorumState, changes: VoterChanges) -> None:
        self._quorum = quorum
        self._changes = changes

    # --- records

    def proposed(self, event: events.Proposed) -> None:
        quorum = self._quorum
        if not quorum.is_leader or event.epoch not in (-1, quorum.epoch) or event.record_count < 1:
            quorum.effects.append(effects.RejectProposal(event.proposal_id))
            return
        base = quorum.log.end_offset
        quorum.log.append(Batch(base, base + event.record_count - 1, quorum.epoch))
        quorum.effects.append(effects.AppendProposal(event.proposal_id, base, quorum.epoch))

    def flushed(self) -> None:
        quorum = self._quorum
        quorum.log.end_flush()
        if isinstance(quorum.state, LeaderState):
            quorum.state.flushed(quorum.log.flushed_end)
            self._advance(quorum.state)

    def _advance(self, leader: LeaderState) -> None:
        if leader.advance():
            self._quorum.advance_high_watermark(leader.high_watermark)
            self._changes.committed(leader)

    # --- requests of replicas

    def _check(self, epoch: int) -> RaftError:
        quorum = self._quorum
        if epoch < quorum.epoch:
            return RaftError.FENCED_LEADER_EPOCH
        if epoch > quorum.epoch:
            return RaftError.UNKNOWN_LEADER_EPOCH
        if not quorum.is_leader:
            return RaftError.BROKER_NOT_AVAILABLE if quorum.is_stopping else RaftError.NOT_LEADER_OR_FOLLOWER
        return RaftError.NONE

    def fetch_requested(self, event: events.FetchRequested) -> None:
        quorum = self._quorum
        if min(event.epoch, event.offset, event.last_epoch, event.max_wait_ms) < 0:
            quorum.answer_fetch(event, RaftError.INVALID_REQUEST)
            return
        if event.last_epoch > event.epoch:
            quorum.answer_fetch(event, RaftError.INVALID_REQUEST)
            return
        error = self._check(event.epoch)
        leader = quorum.state
        if error is not RaftError.NONE or not isinstance(leader, LeaderState):
            quorum.answer_fetch(event, error)
            return
        earlier = quorum.waiting.take(event.replica)
        if earlier is not None:
            quorum.answer_fetch(earlier)
        self._fetch(leader, event)

    def _fetch(self, leader: LeaderState, event: events.FetchRequested) -> None:
        quorum = self._quorum
        replica = event.replica
        is_tracked = replica.node_id not in (-1, quorum.local.node_id)
        if is_tracked:
            leader.is_alive(replica, quorum.now_ms)
            quorum.effects.append(effects.FetchedFrom(replica.node_id))
        diverging, snapshot = quorum.log.check_fetch(event.offset, event.last_epoch)
        if diverging is not None or snapshot is not None:
            quorum.answer_fetch(event, RaftError.NONE, diverging, snapshot)
            return
        quorum.waiting.add(event, quorum.now_ms + event.max_wait_ms)
        if is_tracked:
            leader.fetched(replica, event.offset, quorum.log.end_offset, quorum.now_ms)
            self._advance(leader)

    def snapshot_requested(self, event: events.SnapshotRequested) -> None:
        quorum = self._quorum
        error = self._check(event.epoch)
        if isinstance(quorum.state, LeaderState) and error is RaftError.NONE:
            quorum.state.is_alive(event.replica, quorum.now_ms)
            if event.replica.node_id not in (-1, quorum.local.node_id):
                quorum.effects.append(effects.FetchedFrom(event.replica.node_id))
        quorum.effects.append(effects.AnswerSnapshot(event.request_id, error, quorum.epoch, quorum.leader_id))

    # --- time

    def poll(self) -> None:
        """Answer the fetches that need not wait any more, and make what is due."""
        quorum, leader = self._quorum, self._quorum.state
        if not isinstance(leader, LeaderState):
            return
        check_ms = leader.check_quorum_deadline_ms
        is_removed = self._changes.is_removed(leader)
        if quorum.is_stopping or is_removed or (check_ms is not None and quorum.now_ms >= check_ms):
            quorum.become_resigned()
            return
        for request in quorum.waiting.take_ready(quorum.log.end_offset, leader.high_watermark):
            quorum.answer_fetch(request)
        for request in quorum.waiting.take_expired(quorum.now_ms):
            quorum.answer_fetch(request)
        self._changes.expire()
        if quorum.now_ms >= leader.begin_deadline_ms:
            leader.begin_deadline_ms = quorum.now_ms + leader.begin_interval_ms
            leader.forget_observers(quorum.now_ms)
            self._send_begin(leader)

    def _send_begin(self, leader: LeaderState) -> None:
        quorum = self._quorum
        for node_id in leader.silent_voters(quorum.now_ms):
            if quorum.connections.is_ready(node_id, quorum.now_ms):
                correlation_id = quorum.connections.send(node_id, quorum.now_ms)
                key = quorum.voters[node_id].key
                quorum.effects.append(
                    effects.SendBeginQuorumEpoch(correlation_id, node_id, quorum.epoch, key)
                )

    def deadline_ms(self) -> int | None:
        quorum, leader = self._quorum, self._quorum.state
        if not isinstance(leader, LeaderState):
            return None
        times = [
            leader.begin_deadline_ms,
            leader.check_quorum_deadline_ms,
            quorum.waiting.deadline_ms,
            None if quorum.voter_change is None else quorum.voter_change[1],
        ]
        return min(time_ms for time_ms in times if time_ms is not None)
