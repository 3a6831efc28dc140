"""A node of the metadata quorum: performs the effects of its Raft machine in order, and keeps its time.

Rules
1. Events are handled one at a time. An event that arises while effects are performed is handled after them.
2. Elections are saved before the next effect. The log is flushed in a worker thread.
3. An effect that cannot be performed is fatal: the node stops, and another node becomes leader.
4. The store learns of committed records after the effects that acknowledge them to other nodes.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Hashable, Sequence
from itertools import count
from typing import TYPE_CHECKING, Any, Final

from kafka_compat.coordination.raft import effects, events
from kafka_compat.coordination.raft.values import NO_NODE, OffsetAndEpoch, Role
from kafka_compat.deferred import Deferred
from kafka_compat.protocol.api_keys import ApiKey
from kafka_compat.protocol.codec import MalformedRequest
from kafka_compat.quorum import requests
from kafka_compat.quorum.appends import ANY_EPOCH, Appends
from kafka_compat.quorum.committed_records import CommittedRecords
from kafka_compat.quorum.peer_connections import NotSupported
from kafka_compat.quorum.probes import Probes
from kafka_compat.quorum.snapshot_transfer import fetch_snapshot
from kafka_compat.quorum.snapshots import Snapshots, SnapshotSettings
from kafka_compat.quorum.statistics import QuorumStatistics
from kafka_compat.quorum.status import NodeState, state_of
from kafka_compat.storage.directories.disk import FULL
from kafka_compat.storage.errors import DiskFull, StorageError

if TYPE_CHECKING:
    from uuid import UUID

    from kafka_compat.coordination.raft.machine import RaftMachine
    from kafka_compat.coordination.raft.values import QuorumDescription, VoterSet
    from kafka_compat.coordination.replicated_store.metadata_log import LogApplication, Reach
    from kafka_compat.quorum.checkpoints import Checkpoints
    from kafka_compat.quorum.election_file import ElectionFile
    from kafka_compat.quorum.metadata_log import MetadataLog
    from kafka_compat.quorum.peers import Peers
    from kafka_compat.quorum.requests import Local
    from kafka_compat.storage.directories.directory_worker import Worker

log = logging.getLogger(__name__)

_UPDATE_VOTER_S: Final = 2.0
_RESIGN_S: Final = 0.5
"""Time in seconds that a stopping leader waits until another node leads."""

Answer = (
    effects.AnswerVote
    | effects.AnswerEpoch
    | effects.AnswerFetch
    | effects.AnswerSnapshot
    | effects.AnswerVoterChange
)
_ANSWERS: Final = (
    effects.AnswerVote,
    effects.AnswerEpoch,
    effects.AnswerFetch,
    effects.AnswerSnapshot,
    effects.AnswerVoterChange,
)
_SENT: Final = (
    effects.SendVote,
    effects.SendBeginQuorumEpoch,
    effects.SendEndQuorumEpoch,
    effects.SendFetch,
)


class QuorumNode:
    """A voter or an observer. Implements LogNode for the store of this process, and QuorumStatus."""

    def __init__(
        self,
        local: Local,
        machine: RaftMachine,
        metadata_log: MetadataLog,
        elections: ElectionFile,
        checkpoints: Checkpoints,
        worker: Worker,
        snapshot_settings: SnapshotSettings,
        *,
        joins_voters: bool = False,
    ) -> None:
        """With `joins_voters`, the node asks the leader to become a voter."""
        self.local = local
        self.node_id = local.key.node_id
        self.directory_id: UUID = local.key.directory_id
        self.machine = machine
        self.log = metadata_log
        self.checkpoints = checkpoints
        self.statistics = QuorumStatistics()
        self.on_fatal: Callable[[], None] = lambda: None
        """Function that is called after a fatal error. It must stop the process."""
        self.peers: Peers
        self.records: CommittedRecords
        self.snapshots: Snapshots
        self._elections = elections
        self._worker = worker
        self._snapshot_settings = snapshot_settings
        self._joins_voters = joins_voters
        self._joining: asyncio.Task[None] | None = None
        self._application: LogApplication
        self._loop = asyncio.get_running_loop()
        self._events: deque[events.Event] = deque()
        self._handling = False
        self._timer: asyncio.Handle | None = None
        self._timer_at_ms = 0
        self._ids = count(1)
        self._asked: dict[Hashable, tuple[Deferred, Callable[[Any], Any]]] = {}
        self._transfer: asyncio.Task[None] | None = None
        self._updating: asyncio.Task[None] | None = None
        self._role_changed = asyncio.Event()
        self._known_leader = (NO_NODE, 0)
        self._appends: Appends
        self._probes: Probes
        self._is_started = False
        self._stopped = False

    def start(self, peers: Peers, application: LogApplication) -> None:
        """Start the machine. The latest snapshot on disk is restored first."""
        self.peers = peers
        self._application = application
        records = self.records = CommittedRecords(
            self.log, self.checkpoints, application, self._applied, self._fail
        )
        self.snapshots = Snapshots(
            self.log,
            self.checkpoints,
            application,
            records,
            self._worker,
            self.handle,
            self._fail,
            self._voters_before,
            self._snapshot_settings,
        )
        self._probes = Probes(peers.address_of)
        self._appends = Appends(self.node_id, self.local.cluster_id, self.machine, peers, self.handle)
        peers.set_voters(self.machine.voters)
        latest = self.checkpoints.latest
        if latest is not None and latest.offset > 0:
            self.records.restore(latest)
        self._is_started = True
        self.handle(events.Started())
        self.snapshots.start()
        if self._joins_voters:
            from kafka_compat.quorum.joining import VoterJoining

            joining = VoterJoining(self.local, self.machine, peers, self.machine.settings.fetch_timeout_ms)
            self._joining = self._loop.create_task(joining.run())

    # --- events

    def handle(self, event: events.Event) -> None:
        """Handle an event, now or after the one that is being handled."""
        if self._stopped:
            return
        self._events.append(event)
        if self._handling:
            return
        self._handling = True
        try:
            while self._events:
                event = self._events.popleft()
                for effect in self.machine.handle(event, self.now_ms()):
                    self._perform(effect)
                self._report_leader()
        except Exception as error:
            self._fail(error)
            return
        finally:
            self._handling = False
        self._set_timer()

    def now_ms(self) -> int:
        """Return the time of the machine, in milliseconds."""
        return int(self._loop.time() * 1000)

    def _set_timer(self) -> None:
        deadline_ms = self.machine.deadline_ms
        if deadline_ms is None or self._stopped:
            return
        if self._timer is not None:
            if self._timer_at_ms <= deadline_ms:
                return  # The timer fires first, and is set again then.
            self._timer.cancel()
        # uvloop's handle of a time that has passed does not know the time.
        self._timer_at_ms = deadline_ms
        self._timer = self._loop.call_at(deadline_ms / 1000, self._time_passed)

    def _time_passed(self) -> None:
        self._timer = None
        deadline_ms = self.machine.deadline_ms
        if deadline_ms is None:
            return
        # The loop's clock may be a fraction of a millisecond before the deadline.
        if self.now_ms() + 1 >= deadline_ms:
            if self.now_ms() < deadline_ms:
                self._timer_at_ms = deadline_ms
                self._timer = self._loop.call_later(0.001, self._time_passed)
                return
            self.handle(events.TimePassed())
        else:
            self._set_timer()

    def _fail(self, error: Exception) -> None:
        if not self._stopped:
            self._stopped = True
            is_full = isinstance(error, DiskFull) or (isinstance(error, OSError) and error.errno in FULL)
            log.critical(
                "Stopping node %d of the metadata quorum, because its log or its state in %s cannot be used: "
                "%s. %s",
                self.node_id,
                self.log.directory,
                error,
                "Free disk space, and start the node again" if is_full else "Check the disk",
                exc_info=None if isinstance(error, (OSError, StorageError)) else error,
            )
            self._loop.call_soon(self.on_fatal)

    # --- effects

    def _perform(self, effect: effects.Effect) -> None:
        if isinstance(effect, _ANSWERS):
            self._answer(effect)
        elif isinstance(effect, _SENT):
            self.peers.perform(effect)
        elif isinstance(effect, effects.AppendFetched):
            self.log.append_fetched(effect.data)
            fetched = sum(batch.last_offset - batch.base_offset + 1 for batch in effect.batches)
            self.statistics.fetched_records.record(fetched, self.now_ms())
            self._voters_changed_by(effect.batches)
        elif isinstance(effect, effects.AppendProposal):
            records = self._appends.records_of(effect.proposal_id)
            self.log.append_records(effect.base_offset, effect.epoch, records)
            self.statistics.appended(len(records), effect.base_offset + len(records), self.now_ms())
            self._appends.ended(effect.proposal_id, True)
        elif isinstance(effect, effects.RejectProposal):
            self._appends.ended(effect.proposal_id, False)
        elif isinstance(effect, effects.Flush):
            self._flush(effect)
        elif isinstance(effect, effects.Committed):
            self.records.committed(effect.high_watermark)
            self.statistics.committed(effect.high_watermark, self.now_ms())
        elif isinstance(effect, effects.FetchedFrom):
            self._application.replica_fetched(effect.node_id)
        elif isinstance(effect, effects.RoleChanged):
            self._changed_role(effect)
        elif isinstance(effect, effects.SaveElection):
            self._elections.save(effect.state)
        elif isinstance(effect, effects.AppendLeaderChange):
            self.log.append_leader_change(effect)
        elif isinstance(effect, effects.AppendVoters):
            self.log.append_voters(effect)
            self.peers.set_voters(self.machine.voters)
        elif isinstance(effect, effects.Truncate):
            self.log.truncate(effect.offset)
            self._worker.submit(self.log.delete_files)
            self.peers.set_voters(self.machine.voters)
        elif isinstance(effect, effects.FetchSnapshot):
            self._fetch_snapshot(effect)
        else:
            self.log.install(effect.snapshot)
            self._worker.submit(self.log.delete_files)
            self.peers.set_voters(self.machine.voters)
            self.records.restore(effect.snapshot)

    def _voters_changed_by(self, batches: Sequence[Any]) -> None:
        if any(batch.voters is not None for batch in batches):
            self.peers.set_voters(self.machine.voters)

    def _voters_before(self, offset: int) -> VoterSet | None:
        sets = [voters for position, voters in self.machine.log.voter_sets if position < offset]
        return sets[-1] if sets else None

    def _flush(self, effect: effects.Flush) -> None:
        def done(error: Exception | None) -> None:
            if error is not None:
                self._fail(error)
            else:
                self.handle(events.Flushed(effect.end_offset))

        self._worker.submit(self.log.flush, done, urgent=True)

    def _changed_role(self, effect: effects.RoleChanged) -> None:
        # A node that finds no majority changes its role several times per second.
        is_searching = effect.leader_id == NO_NODE and effect.role in (Role.UNATTACHED, Role.PROSPECTIVE)
        log.log(
            logging.DEBUG if is_searching else logging.INFO,
            "Node %d is %s in epoch %d of the metadata quorum (leader: %s)",
            self.node_id,
            effect.role.value,
            effect.epoch,
            "unknown" if effect.leader_id == NO_NODE else effect.leader_id,
        )
        self.statistics.role_changed(
            is_leader=effect.role is Role.LEADER,
            knows_leader=effect.leader_id != NO_NODE,
            now_ms=self.now_ms(),
        )
        # The store must not handle records of a new leader before it knows this leader.
        self._report_leader()
        self._role_changed.set()
        if self._updating is not None:
            self._updating.cancel()
            self._updating = None
        if effect.role is Role.FOLLOWER and self.machine.is_voter and effect.leader_id != NO_NODE:
            self._updating = self._loop.create_task(self._update_voter(effect.leader_id, effect.epoch))

    def _report_leader(self) -> None:
        known = (self.machine.expected_leader_id, self.machine.epoch)
        if known != self._known_leader:
            self._known_leader = known
            self._application.leader_changed(*known)

    async def _update_voter(self, leader_id: int, epoch: int) -> None:
        """Report this voter's addresses to the leader until it responds. Kafka's leaders expect this."""
        request = requests.update_request(self.local, epoch)
        while not self._stopped:
            try:
                response = await self.peers.ask(leader_id, ApiKey.UPDATE_RAFT_VOTER, request)
                if response.current_leader.leader_id >= 0:
                    return
            except (ConnectionError, MalformedRequest):
                pass
            except NotSupported:
                return
            await asyncio.sleep(_UPDATE_VOTER_S)

    def _fetch_snapshot(self, effect: effects.FetchSnapshot) -> None:
        if self._transfer is not None:
            self._transfer.cancel()
        log.info("Fetching snapshot %d-%d from node %d", *effect.snapshot, effect.leader_id)
        fetching = fetch_snapshot(
            effect, self.local, self.peers, self.checkpoints, self._worker, self.handle, self._fail
        )
        self._transfer = self._loop.create_task(fetching)

    # --- requests of other nodes

    def ask(self, make: Callable[[int], events.Event], respond: Callable[[Any], Any]) -> Deferred:
        """Pass a request to the machine. `make` returns its event for a request ID, and `respond` the
        response for the machine's answer.
        """
        request_id = next(self._ids)
        deferred = Deferred()
        if self._stopped:
            deferred.hang_up()
            return deferred
        self._asked[request_id] = (deferred, respond)
        self.handle(make(request_id))
        return deferred

    def _answer(self, effect: Answer) -> None:
        deferred, respond = self._asked.pop(effect.request_id)
        if not deferred.is_canceled:
            deferred.complete(respond(effect))

    def replica_left(self, node_id: int) -> None:
        """Record that another node has closed the connection on which it fetched."""
        if not self._stopped:
            self._application.replica_left(node_id)

    # --- the store's records

    def append(self, records: Sequence[bytes], failed: Callable[[], None], epoch: int = ANY_EPOCH) -> None:
        """Append the store's records (see LogNode)."""
        self._appends.append(records, failed, epoch)

    def append_for(self, records: Sequence[bytes], epoch: int, done: Callable[[bool], None]) -> None:
        """Append another node's records if this node leads `epoch`. `done` is called with the result."""
        self._appends.propose(records, epoch, done)

    def probe(self, node_id: int, done: Callable[[Reach], None]) -> None:
        """Try to connect to another node (see LogNode)."""
        self._probes.probe(node_id, done)

    def _applied(self) -> None:
        self.snapshots.applied()

    @property
    def applied(self) -> OffsetAndEpoch:
        """The end of the records that the store has applied."""
        return self.records.applied

    # --- status

    def state(self) -> NodeState:
        """Return the current state, for metrics and status."""
        return state_of(self.machine, self.node_id, self.records.applied.offset)

    def describe(self) -> QuorumDescription | None:
        """Return all replicas as this leader sees them, or None if this node is not the leader."""
        return self.machine.describe(self.now_ms())

    # --- shutdown

    async def stop(self) -> None:
        """Stop the node. A leader first waits, for a limited time, until another voter takes over."""
        if self._is_started and not self._stopped:
            was_leader = self.machine.role is Role.LEADER
            self.handle(events.Resigning())
            if was_leader and len(self.machine.voters) > 1:
                await self._await_successor()
        self._stopped = True
        if self._timer is not None:
            self._timer.cancel()
        for task in (self._transfer, self._updating, self._joining):
            if task is not None:
                task.cancel()
                await asyncio.wait([task])
        if self._is_started:
            await self.snapshots.close()
            self.records.close()
            self._appends.close()
            await self._probes.close()
            await self.peers.close()
        asked, self._asked = self._asked, {}
        for deferred, _ in asked.values():
            deferred.hang_up()
        self._worker.close()
        try:
            self.log.close()
        except (StorageError, OSError) as error:
            # The log is recovered at the next startup.
            log.error("Could not close the metadata log of node %d: %s", self.node_id, error)

    async def _await_successor(self) -> None:
        try:
            async with asyncio.timeout(_RESIGN_S):
                while self.machine.leader_id in (NO_NODE, self.node_id):
                    self._role_changed.clear()
                    await self._role_changed.wait()
        except TimeoutError:
            return
