"""What must hold after every event of a simulated quorum.

The first seven are the invariants of Kafka's RaftEventSimulationTest; the others are ours.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kafka_compat.coordination.raft import effects
from kafka_compat.coordination.raft.values import OffsetAndEpoch, ReplicaKey, Role
from kafka_compat.coordination.raft.voter_set import majority

if TYPE_CHECKING:
    from tests.coordination.raft.raft_disk import Stored
    from tests.coordination.raft.raft_world import Node, World


class Violation(AssertionError):
    """An invariant does not hold."""


class Invariants:
    def __init__(self, world: World) -> None:
        self._world = world
        self.committed: list[tuple[int, str]] = []
        """The epoch and value of each committed record, by offset."""
        self.records: dict[tuple[int, int], str] = {}
        """The value of each record that was ever appended, by offset and epoch."""
        self.leaders: dict[int, int] = {}
        self._votes: dict[tuple[int, int], ReplicaKey] = {}
        self._epochs: dict[int, int] = {}
        self._high_watermarks: dict[int, int] = {}
        self._highest = 0

    # --- hooks of the world

    def started(self, node: Node) -> None:
        self._high_watermarks[node.key.node_id] = -1

    def effect(self, node: Node, effect: effects.Effect) -> None:
        """Check an effect before it is performed."""
        name, disk = node.key.node_id, node.disk
        match effect:
            case effects.SaveElection():
                state = effect.state
                _check(state.epoch >= disk.election.epoch, f"MonotonicEpoch: {name} saves {state}")
                if state.voted is not None:
                    voted = self._votes.setdefault((name, state.epoch), state.voted)
                    _check(voted == state.voted, f"OneVote: {name} votes again: {state}, {voted}")
                elif state.epoch == disk.election.epoch:
                    _check(disk.election.voted is None, f"OneVote: {name} forgets its vote")
            case effects.AnswerVote() if effect.granted:
                _check(disk.election.epoch == effect.epoch, f"SavedFirst: {name} answers {effect}")
            case effects.AppendLeaderChange():
                epoch = effect.epoch
                _check(
                    disk.election.leader_id == name and disk.election.epoch == epoch,
                    f"SavedFirst: {name} leads {epoch}",
                )
                other = self.leaders.setdefault(epoch, name)
                _check(other == name, f"SingleLeader: {other} and {name} in {epoch}")
                self._check_complete(node, epoch)
            case effects.SendFetch():
                _check(effect.offset <= disk.flushed_end, f"FlushedFirst: {name} fetches {effect}")
            case effects.InstallSnapshot():
                _check(node.running.role is not Role.LEADER, f"LeaderNeverLoadSnapshot: {name}")

    def after(self, node: Node) -> None:
        """Check the node after all effects of an event."""
        machine, disk, name = node.running, node.disk, node.key.node_id
        if machine.epoch < self._epochs.get(name, 0):
            raise Violation(f"MonotonicEpoch: {name}")
        self._epochs[name] = machine.epoch
        high, known = machine.high_watermark, self._high_watermarks[name]
        if high < known:
            raise Violation(f"MonotonicHighWatermark: {name}")
        if high > known:
            if machine.role is Role.LEADER:
                self._check_high_watermark(node, high)
            self._high_watermarks[name] = high
        if machine.log.flushed_end != disk.flushed_end or machine.log.end_offset != disk.end_offset:
            raise Violation(f"SamePicture: {name}: {machine.log.end}")
        if disk.is_changed:
            disk.is_changed = False
            self._check_log(node)

    def _check_log(self, node: Node) -> None:
        disk, log, name = node.disk, node.running.log, node.key.node_id
        if log.start != disk.start or log.epochs != disk.log_state().epochs:
            raise Violation(f"SamePicture: {name}: {log.start}, {log.epochs}")
        if disk.start.offset > max(node.applied, 0) or (
            disk.start.offset and disk.start not in disk.snapshots
        ):
            raise Violation(f"SnapshotAtLogStart: {name}")
        for header, values in disk.batches[-5:]:
            for index, value in enumerate(values):
                found = self.records.setdefault((header.base_offset + index, header.epoch), value)
                if found != value:
                    raise Violation(f"LogMatching: {name} at {header}")

    def apply(self, node: Node, high_watermark: int) -> None:
        """A node applies what is committed: the same records everywhere."""
        records = node.disk.records(node.applied, high_watermark)
        _check(
            len(records) == high_watermark - max(node.applied, node.disk.start.offset),
            f"ConsistentCommittedData: {node.key.node_id} misses records",
        )
        for offset, epoch, value in records:
            if offset == len(self.committed):
                self.committed.append((epoch, value))
            if self.committed[offset] != (epoch, value):
                raise Violation(
                    f"ConsistentCommittedData: {node.key.node_id} at {offset}: {(epoch, value)}, "
                    f"{self.committed[offset]}"
                )
        node.applied = max(node.applied, high_watermark)

    def installed(self, node: Node, snapshot: OffsetAndEpoch) -> None:
        records = node.disk.snapshots[snapshot].records
        _check(list(records) == self.committed[: snapshot.offset], "ConsistentCommittedData: snapshot")
        _check(snapshot.offset >= node.applied, "ConsistentCommittedData: a snapshot goes back")

    def truncated(self, removed: list[Stored]) -> None:
        for header, values in removed:
            for index, value in enumerate(values):
                offset = header.base_offset + index
                if offset < len(self.committed):
                    kept = self.committed[offset] != (header.epoch, value)
                    _check(kept, f"CommittedNeverTruncated: {offset}")

    # --- checks

    def _check_high_watermark(self, node: Node, high: int) -> None:
        """The leader of the highest epoch never goes back, and a majority has the records on disk."""
        machine = node.running
        description = machine.describe(0)
        assert description is not None
        if description.high_watermark < 0:
            return
        if machine.epoch == max(self.leaders):
            _check(high >= self._highest, f"MonotonicHighWatermark: {high} after {self._highest}")
            self._highest = high
        voters = machine.voters
        wanted = node.disk.records(high - 1, high)
        have = 0
        for node_id in voters:
            disk = self._world.nodes[node_id].disk
            if disk.flushed_end >= high and (
                disk.start.offset >= high or disk.records(high - 1, high) == wanted
            ):
                have += 1
        _check(have >= majority(voters), f"MajorityReachedHighWatermark: {high} on {have} of {len(voters)}")

    def _check_complete(self, node: Node, epoch: int) -> None:
        """Everything that was committed before is in the log of a new leader."""
        disk = node.disk
        log = dict(((offset, (own, value)) for offset, own, value in disk.records(0, len(self.committed))))
        for offset in range(disk.start.offset, len(self.committed)):
            if self.committed[offset][0] < epoch:
                _check(
                    log.get(offset) == self.committed[offset],
                    f"LeaderCompleteness: {node.key.node_id} in {epoch} lacks {offset}",
                )


def _check(holds: bool, text: str) -> None:
    if not holds:
        raise Violation(text)
