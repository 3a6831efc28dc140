"""Replication to this node: it finds the leader, and fetches records and snapshots from it.

Rules:
- One fetch is under way at a time, and the next one is sent when everything that was appended is flushed: it
  acknowledges all records before its offset.
- A node without a leader fetches from voters and bootstrap addresses in turn: their answers name the leader.
  So does a follower while its leader does not answer.
- A successful fetch from the leader delays the election by a fetch timeout, and so does a part of a
  snapshot.
- If nothing listens at the leader's address any more, its process is gone. The follower then grants
  pre-votes, and becomes prospective after a short delay (not so in Kafka, whose followers wait for the fetch
  timeout). This is safe, because a pre-vote needs a majority and changes nothing: the other voters still
  fetch from a leader that is alive, and refuse it. The delays of the voters and their fetch timeouts differ,
  so that they do not split the vote.
- A log is never truncated below the high watermark: the node must stop instead.
"""

from kafka_compat.coordination.raft import effects, events
from kafka_compat.coordination.raft.elections import Elections
from kafka_compat.coordination.raft.events import RaftError
from kafka_compat.coordination.raft.quorum_state import SUCCESSION_STEP_MS, QuorumState
from kafka_compat.coordination.raft.role_states import Follower, Nominee, Unattached
from kafka_compat.coordination.raft.values import NO_NODE, OffsetAndEpoch

FETCH_MAX_WAIT_MS = 500
_BOOTSTRAP = -1


class InconsistentLog(Exception):
    """This node and its leader have committed different records: the node must stop. Should be impossible."""


class Following:
    def __init__(self, quorum: QuorumState, elections: Elections) -> None:
        self._quorum = quorum
        self._elections = elections
        self._turn = 0

    # --- answers

    def fetch_answered(self, event: events.FetchAnswered) -> None:
        quorum = self._quorum
        if not quorum.connections.answered(event.node_id, event.correlation_id):
            return
        if event.epoch < quorum.epoch or event.error is RaftError.UNKNOWN_LEADER_EPOCH:
            quorum.connections.back_off(event.node_id, quorum.now_ms)
            return
        if event.epoch > quorum.epoch or event.error is not RaftError.NONE:
            self._elections.learn(event.epoch, event.leader_id)
            quorum.connections.back_off(event.node_id, quorum.now_ms)
            return
        self._elections.learn(event.epoch, event.leader_id)
        state = quorum.state
        if isinstance(state, Follower) and state.leader_id == event.leader_id and state.snapshot is None:
            self._fetched(state, event)

    def _fetched(self, state: Follower, event: events.FetchAnswered) -> None:
        quorum = self._quorum
        self._leader_is_alive(state)
        state.has_fetched = True
        if event.diverging is not None:
            self._truncate(event.diverging)
        elif event.snapshot is not None:
            if event.snapshot.offset < quorum.high_watermark:
                raise InconsistentLog(
                    f"the leader's snapshot {event.snapshot} ends below the high watermark "
                    f"{quorum.high_watermark}"
                )
            state.snapshot = event.snapshot
            quorum.effects.append(effects.FetchSnapshot(state.leader_id, quorum.epoch, event.snapshot))
        else:
            if event.batches and event.batches[0].base_offset == quorum.log.end_offset:
                for batch in event.batches:
                    quorum.log.append(batch)
                quorum.effects.append(effects.AppendFetched(event.batches, event.data))
            quorum.advance_high_watermark(event.high_watermark)

    def _truncate(self, diverging: OffsetAndEpoch) -> None:
        quorum = self._quorum
        offset = quorum.log.truncation_for(diverging)
        if offset < max(quorum.high_watermark, quorum.log.start.offset):
            raise InconsistentLog(
                f"the log diverges from the leader's at {offset}, below the high watermark "
                f"{quorum.high_watermark}"
            )
        quorum.log.truncate(offset)
        quorum.effects.append(effects.Truncate(offset))

    def request_failed(self, event: events.RequestFailed) -> None:
        quorum, state = self._quorum, self._quorum.state
        if not quorum.connections.failed(event.node_id, event.correlation_id, quorum.now_ms):
            return
        if isinstance(state, Nominee):
            self._elections.vote_failed(state, event.node_id)
        elif event.is_refused and isinstance(state, Follower) and state.leader_id == event.node_id:
            self._leader_is_gone(state)

    def _leader_is_gone(self, state: Follower) -> None:
        quorum = self._quorum
        if state.is_leader_gone:
            return
        state.is_leader_gone = True
        delay = quorum.succession_delay_ms(state.leader_id) + quorum.random.randrange(SUCCESSION_STEP_MS // 2)
        state.fetch_deadline_ms = min(state.fetch_deadline_ms, quorum.now_ms + delay)

    def _leader_is_alive(self, state: Follower) -> None:
        state.fetch_deadline_ms = self._quorum.fetch_deadline_ms(state.leader_id)
        state.is_leader_gone = state.is_leader_missed = False

    # --- snapshots

    def snapshot_progressed(self, event: events.SnapshotProgressed) -> None:
        state = self._quorum.state
        if isinstance(state, Follower) and state.snapshot == event.snapshot:
            self._leader_is_alive(state)

    def snapshot_fetched(self, event: events.SnapshotFetched) -> None:
        quorum, state = self._quorum, self._quorum.state
        if not isinstance(state, Follower) or state.snapshot != event.snapshot:
            return
        state.snapshot = None
        self._leader_is_alive(state)
        quorum.log.install(event.snapshot, event.voters)
        quorum.effects.append(effects.InstallSnapshot(event.snapshot))
        quorum.advance_high_watermark(event.snapshot.offset)

    def snapshot_not_fetched(self, event: events.SnapshotNotFetched) -> None:
        quorum, state = self._quorum, self._quorum.state
        if isinstance(state, Follower) and state.snapshot == event.snapshot:
            state.snapshot = None
            quorum.connections.back_off(state.leader_id, quorum.now_ms)

    # --- time

    def poll(self) -> None:
        """Send a fetch if one may be sent."""
        quorum, state = self._quorum, self._quorum.state
        if isinstance(state, Follower):
            if state.snapshot is None and self._is_flushed():
                self._fetch_from_best(state)
        elif (
            isinstance(state, Unattached)
            and self._is_flushed()
            and not quorum.connections.any_under_way(quorum.now_ms)
        ):
            self._fetch_from_any(NO_NODE)

    def deadline_ms(self) -> int | None:
        """Return when `poll` may have something to send, if nothing else happens before."""
        quorum, state = self._quorum, self._quorum.state
        if not isinstance(state, Follower | Unattached) or not self._is_flushed():
            return None
        if isinstance(state, Follower) and state.snapshot is not None:
            return None
        leader_id = quorum.leader_id
        nodes = [*self._others(leader_id), *([] if leader_id == NO_NODE else [leader_id])]
        ready = [quorum.connections.ready_ms(node_id) for node_id in nodes]
        if quorum.connections.any_under_way(quorum.now_ms):
            ready = [time_ms for time_ms in ready if time_ms > quorum.now_ms]
        return min(ready, default=None)

    def _is_flushed(self) -> bool:
        return self._quorum.log.flushed_end == self._quorum.log.end_offset

    def _fetch_from_best(self, state: Follower) -> None:
        quorum = self._quorum
        if quorum.connections.any_under_way(quorum.now_ms):
            return
        if quorum.connections.is_failing(state.leader_id, quorum.now_ms):
            self._fetch_from_any(state.leader_id)
        elif quorum.connections.is_ready(state.leader_id, quorum.now_ms):
            self._fetch(state.leader_id)

    def _fetch_from_any(self, leader_id: int) -> None:
        quorum = self._quorum
        others = self._others(leader_id)
        for _ in others:
            self._turn += 1
            node_id = others[self._turn % len(others)]
            if quorum.connections.is_ready(node_id, quorum.now_ms):
                self._fetch(node_id)
                return

    def _others(self, leader_id: int) -> list[int]:
        others = [node_id for node_id in self._quorum.other_voters if node_id != leader_id]
        return others if self._quorum.static_voters else [_BOOTSTRAP, *others]

    def _fetch(self, node_id: int) -> None:
        quorum = self._quorum
        end = quorum.log.end
        quorum.effects.append(
            effects.SendFetch(
                quorum.connections.send(node_id, quorum.now_ms),
                node_id,
                quorum.epoch,
                end.offset,
                end.epoch,
                quorum.high_watermark,
                FETCH_MAX_WAIT_MS,
            )
        )
