"""A quorum of Raft machines with a network, disks and a clock in memory. Everything follows from a seed."""

from __future__ import annotations

import heapq
import itertools
import random
from collections.abc import Callable, Iterable
from typing import NamedTuple
from uuid import UUID

from kafka_compat.coordination.raft import effects, events
from kafka_compat.coordination.raft.events import Event, RaftError
from kafka_compat.coordination.raft.machine import RaftMachine
from kafka_compat.coordination.raft.values import (
    Batch,
    OffsetAndEpoch,
    RaftSettings,
    ReplicaKey,
    Role,
    Voter,
    VoterSet,
)
from kafka_compat.coordination.raft.voter_set import voter_set
from tests.coordination.raft.raft_disk import Disk, SnapshotFile
from tests.coordination.raft.raft_invariants import Invariants

BATCHES_MAX = 4
"""The most batches in one answer to a fetch."""

RequestEffect = (
    effects.SendVote | effects.SendBeginQuorumEpoch | effects.SendEndQuorumEpoch | effects.SendFetch
)
AnswerEffect = effects.AnswerVote | effects.AnswerEpoch | effects.AnswerFetch | effects.AnswerSnapshot


class Faults:
    """The faults of the network and the disks. All are off until the fields are set."""

    loss = 0.0
    duplication = 0.0
    long_delay = 0.0
    slow_flush = 0.0


class _Call(NamedTuple):
    """A request that waits for its answer. `snapshot` is set if it asks for a snapshot."""

    origin: int
    incarnation: int
    request: RequestEffect | None
    target: int
    snapshot: OffsetAndEpoch | None


class Node:
    """A process: a machine that runs on a disk. `machine` is None while it is down."""

    def __init__(self, key: ReplicaKey, disk: Disk) -> None:
        self.key = key
        self.disk = disk
        self.machine: RaftMachine | None = None
        self.incarnation = 0
        self.applied = 0
        self.due_ms: int | None = None
        self.proposals: dict[object, tuple[str, ...]] = {}

    @property
    def running(self) -> RaftMachine:
        assert self.machine is not None
        return self.machine


class World:
    def __init__(
        self,
        seed: int,
        voters: int,
        observers: int = 0,
        *,
        dynamic: bool = False,
        settings: RaftSettings | None = None,
    ) -> None:
        self.random = random.Random(seed)
        self.settings = settings or RaftSettings()
        self.now_ms = 0
        self.faults = Faults()
        self.blocked: set[tuple[int, int]] = set()
        self.invariants = Invariants(self)
        self.answers: list[effects.AnswerVoterChange] = []
        self._queue: list[tuple[int, int, Callable[[], None]]] = []
        self._order = itertools.count()
        self._ids = itertools.count(1)
        self._calls: dict[int, _Call] = {}
        keys = [ReplicaKey(node, UUID(int=node)) for node in range(1, voters + observers + 1)]
        chosen = voter_set(Voter(key, {"C": ("h", key.node_id)}) for key in keys[:voters])
        self.static: VoterSet = {} if dynamic else chosen
        self.nodes = {key.node_id: Node(key, Disk(chosen if dynamic else None)) for key in keys}
        for key in keys[voters:]:
            self.nodes[key.node_id].disk = Disk()

    # --- processes

    def start(self, *node_ids: int) -> None:
        for node_id in node_ids or tuple(self.nodes):
            node = self.nodes[node_id]
            if node.machine is not None:
                continue
            node.incarnation += 1
            node.applied = node.disk.start.offset
            node.proposals.clear()
            node.due_ms = None
            chance = random.Random(self.random.randrange(2**32))
            node.machine = RaftMachine(
                node.key, self.static, self.settings, node.disk.election, node.disk.log_state(), chance
            )
            self.invariants.started(node)
            self.send(node_id, events.Started())

    def kill(self, *node_ids: int) -> None:
        for node_id in node_ids:
            node = self.nodes[node_id]
            if node.machine is not None:
                node.machine = None
                node.disk.crash(self.random)

    def alive(self) -> list[int]:
        return [node_id for node_id, node in self.nodes.items() if node.machine is not None]

    # --- the network

    def partition(self, *groups: Iterable[int]) -> None:
        """Let only nodes of the same group reach one another."""
        of = {node_id: index for index, group in enumerate(groups) for node_id in group}
        self.blocked = {
            (one, other) for one in self.nodes for other in self.nodes if of.get(one) != of.get(other)
        }

    def heal(self) -> None:
        self.blocked = set()
        self.faults = Faults()

    # --- time

    def at(self, delay_ms: int, action: Callable[[], None]) -> None:
        heapq.heappush(self._queue, (self.now_ms + delay_ms, next(self._order), action))

    def run(self, duration_ms: int, until: Callable[[], bool] | None = None) -> bool:
        """Let time pass. Returns whether `until` became true."""
        end = self.now_ms + duration_ms
        while self._queue and self._queue[0][0] <= end:
            self.now_ms, _, action = heapq.heappop(self._queue)
            action()
            if until is not None and until():
                return True
        self.now_ms = end
        return until is not None and until()

    # --- questions

    def leader(self) -> Node | None:
        """The leader of the highest epoch that has one."""
        leaders = [
            node
            for node in self.nodes.values()
            if node.machine is not None and node.machine.role is Role.LEADER
        ]
        return max(leaders, key=lambda node: node.running.epoch, default=None)

    def propose(self, node: Node | None = None, count: int = 1) -> None:
        node = node or self.leader()
        if node is not None:
            proposal = next(self._ids)
            node.proposals[proposal] = tuple(f"v{proposal}.{index}" for index in range(count))
            self.send(node.key.node_id, events.Proposed(proposal, count))

    def take_snapshot(self, node: Node, *, move_start: bool) -> None:
        """Take a snapshot of the committed records of a node, up to the end of a batch."""
        machine, disk = node.running, node.disk
        ends = [
            item.header
            for item in disk.batches
            if item.header.last_offset < min(node.applied, disk.flushed_end)
        ]
        if not ends:
            return
        header = self.random.choice(ends)
        snapshot = OffsetAndEpoch(header.last_offset + 1, header.epoch)
        if disk.latest is not None and snapshot <= disk.latest:
            return
        committed = self.invariants.committed
        voters = [
            item.voters
            for item in (stored.header for stored in disk.batches)
            if item.voters is not None and item.base_offset < snapshot.offset
        ]
        earlier = disk.snapshots.get(disk.start)
        known = voters[-1] if voters else (earlier.voters if earlier else None)
        records = tuple(committed[offset] for offset in range(snapshot.offset))
        disk.snapshots[snapshot] = SnapshotFile(records, known)
        self.send(node.key.node_id, events.SnapshotTaken(snapshot))
        if move_start:
            disk.move_start(snapshot)
            self.send(node.key.node_id, events.LogStartMoved(snapshot.offset))
        assert machine.log.start == disk.start

    # --- events and effects

    def send(self, node_id: int, event: Event) -> None:
        """Hand an event to a node that is up, and perform the effects."""
        node = self.nodes[node_id]
        if node.machine is None:
            return
        incarnation = node.incarnation
        for effect in node.machine.handle(event, self.now_ms):
            self.invariants.effect(node, effect)
            self._perform(node, effect)
        self.invariants.after(node)
        deadline = node.machine.deadline_ms
        if deadline is not None and deadline != node.due_ms:
            node.due_ms = deadline
            delay = max(deadline - self.now_ms, 1)
            self.at(delay, lambda: self._wake(node, incarnation, deadline))

    def _wake(self, node: Node, incarnation: int, deadline: int) -> None:
        if node.incarnation == incarnation and node.due_ms == deadline:
            node.due_ms = None
            self.send(node.key.node_id, events.TimePassed())

    def _perform(self, node: Node, effect: effects.Effect) -> None:
        disk = node.disk
        match effect:
            case effects.SaveElection():
                disk.election = effect.state
            case effects.AppendLeaderChange():
                header = Batch(effect.base_offset, effect.base_offset, effect.epoch)
                disk.append(header, (f"leader {effect.leader_id}",))
            case effects.AppendVoters():
                count = 2 if effect.with_version else 1
                header = Batch(
                    effect.base_offset, effect.base_offset + count - 1, effect.epoch, effect.voters
                )
                disk.append(header, (f"voters {sorted(effect.voters)}",) * count)
            case effects.AppendProposal():
                values = node.proposals.pop(effect.proposal_id)
                last = effect.base_offset + len(values) - 1
                disk.append(Batch(effect.base_offset, last, effect.epoch), values)
            case effects.RejectProposal():
                node.proposals.pop(effect.proposal_id)
            case effects.AppendFetched():
                values_of = iter(effect.data.decode().split("\n"))
                for header in effect.batches:
                    disk.append(header, tuple(next(values_of).split("\t")))
            case effects.Truncate():
                self.invariants.truncated(disk.truncate(effect.offset))
            case effects.Flush():
                assert disk.flush_target is None
                assert effect.end_offset == disk.end_offset
                disk.flush_target = effect.end_offset
                slow = self.random.random() < self.faults.slow_flush
                delay = self.random.randrange(100, 1500) if slow else self.random.randrange(1, 4)
                incarnation = node.incarnation
                self.at(delay, lambda: self._flushed(node, incarnation, effect.end_offset))
            case effects.FetchSnapshot():
                self._call(node, None, effect.leader_id, effect.snapshot)
            case effects.InstallSnapshot():
                disk.install(effect.snapshot)
                self.invariants.installed(node, effect.snapshot)
                node.applied = effect.snapshot.offset
            case (
                effects.SendVote()
                | effects.SendBeginQuorumEpoch()
                | effects.SendEndQuorumEpoch()
                | effects.SendFetch()
            ):
                target = effect.node_id
                if target == -1:
                    target = self.random.choice([other for other in self.nodes if other != node.key.node_id])
                self._call(node, effect, target, None)
            case (
                effects.AnswerVote()
                | effects.AnswerEpoch()
                | effects.AnswerFetch()
                | effects.AnswerSnapshot()
            ):
                self._answer(node, effect)
            case effects.AnswerVoterChange():
                self.answers.append(effect)
            case effects.Committed():
                self.invariants.apply(node, effect.high_watermark)
            case effects.RoleChanged() | effects.FetchedFrom():
                pass

    def _flushed(self, node: Node, incarnation: int, end_offset: int) -> None:
        if node.incarnation == incarnation and node.machine is not None:
            node.disk.end_flush()
            self.send(node.key.node_id, events.Flushed(end_offset))

    # --- messages

    def _delay_ms(self) -> int:
        if self.random.random() < self.faults.long_delay:
            return self.random.randrange(10, 3000)
        return self.random.randrange(1, 4)

    def _is_lost(self, origin: int, target: int) -> bool:
        return (origin, target) in self.blocked or self.random.random() < self.faults.loss

    def _call(
        self, node: Node, request: RequestEffect | None, target: int, snapshot: OffsetAndEpoch | None
    ) -> None:
        token = next(self._ids)
        origin = node.key.node_id
        self._calls[token] = _Call(origin, node.incarnation, request, target, snapshot)
        if snapshot is not None:
            self.at(500, lambda: self._give_up(token))
        if self._is_lost(origin, target):
            return
        copies = 1 + (self.random.random() < self.faults.duplication)
        event = self._request_event(node, token, request, target, snapshot)
        for _ in range(copies):
            self.at(self._delay_ms(), lambda: self._deliver(token, target, event))

    def _request_event(
        self,
        node: Node,
        token: int,
        request: RequestEffect | None,
        target: int,
        snapshot: OffsetAndEpoch | None,
    ) -> Event:
        match request:
            case effects.SendVote():
                return events.VoteRequested(
                    token, request.epoch, node.key, request.voter, request.last, request.pre_vote
                )
            case effects.SendBeginQuorumEpoch():
                return events.BeginQuorumEpochRequested(token, request.epoch, node.key.node_id, request.voter)
            case effects.SendEndQuorumEpoch():
                return events.EndQuorumEpochRequested(
                    token, request.epoch, node.key.node_id, request.successors
                )
            case effects.SendFetch():
                return events.FetchRequested(
                    token,
                    node.key,
                    request.epoch,
                    request.offset,
                    request.last_epoch,
                    request.high_watermark,
                    request.max_wait_ms,
                )
        assert snapshot is not None
        return events.SnapshotRequested(token, node.key, node.running.epoch, snapshot)

    def _deliver(self, token: int, target: int, event: Event) -> None:
        call = self._calls.get(token)
        if self.nodes[target].machine is not None:
            self.send(target, event)
        elif call is not None and call.request is not None and not self._is_lost(target, call.origin):
            failed = events.RequestFailed(call.request.correlation_id, call.request.node_id, is_refused=True)
            self._respond(token, failed)

    def _give_up(self, token: int) -> None:
        call = self._calls.get(token)
        if call is not None and call.snapshot is not None:
            self._respond(token, events.SnapshotNotFetched(call.snapshot))

    def _respond(self, token: int, event: Event) -> None:
        call = self._calls.pop(token, None)
        if call is not None and self.nodes[call.origin].incarnation == call.incarnation:
            self.send(call.origin, event)

    def _answer(self, node: Node, answer: AnswerEffect) -> None:
        token = answer.request_id
        assert isinstance(token, int)
        call = self._calls.get(token)
        if call is None or self._is_lost(node.key.node_id, call.origin):
            return
        if call.snapshot is not None:
            assert isinstance(answer, effects.AnswerSnapshot)
            file = node.disk.snapshots.get(call.snapshot) if answer.error is RaftError.NONE else None
            snapshot = call.snapshot
            self.at(self._delay_ms(), lambda: self._snapshot_came(token, snapshot, file))
            return
        event = self._answer_event(node, call, answer)
        self.at(self._delay_ms(), lambda: self._respond(token, event))

    def _snapshot_came(self, token: int, snapshot: OffsetAndEpoch, file: SnapshotFile | None) -> None:
        call = self._calls.get(token)
        if call is None:
            return
        if file is None:
            self._respond(token, events.SnapshotNotFetched(snapshot))
            return
        origin = self.nodes[call.origin]
        if origin.incarnation == call.incarnation and origin.machine is not None:
            self.send(call.origin, events.SnapshotProgressed(snapshot))
            origin.disk.snapshots[snapshot] = file
        self._respond(token, events.SnapshotFetched(snapshot, file.voters))

    def _answer_event(self, node: Node, call: _Call, answer: AnswerEffect) -> Event:
        request = call.request
        assert request is not None
        match answer:
            case effects.AnswerVote():
                assert isinstance(request, effects.SendVote)
                return events.VoteAnswered(
                    request.correlation_id,
                    request.node_id,
                    answer.error,
                    answer.epoch,
                    answer.leader_id,
                    answer.granted,
                    request.pre_vote,
                )
            case effects.AnswerFetch():
                has_records = answer.offset < answer.end_offset
                stored = node.disk.batches_from(answer.offset)[:BATCHES_MAX] if has_records else []
                return events.FetchAnswered(
                    request.correlation_id,
                    request.node_id,
                    answer.error,
                    answer.epoch,
                    answer.leader_id,
                    answer.high_watermark,
                    node.disk.start.offset,
                    answer.diverging,
                    answer.snapshot,
                    tuple(item.header for item in stored),
                    "\n".join("\t".join(item.values) for item in stored).encode(),
                )
            case _:
                return events.EpochAnswered(
                    request.correlation_id, request.node_id, answer.error, answer.epoch, answer.leader_id
                )
