"""One shard of a coordinator: a partition of its internal topic, with its machines and pending appends."""

from collections import deque
from enum import Enum
from typing import Any, Generic, TypeVar

from kafka_compat.coordinator_runtime.machine import Machine, ResponseWhenCommitted, Write
from kafka_compat.coordinator_runtime.timeline import SnapshotRegistry
from kafka_compat.coordinator_runtime.timers import Deadline

M = TypeVar("M", bound=Machine[Any])


class ShardState(Enum):
    """State of a shard. LOADING changes to ACTIVE. An unreadable or unloaded shard is FAILED."""

    LOADING = "loading"
    ACTIVE = "active"
    FAILED = "failed"


class RunningMachine(Generic[M]):
    """An active machine and its next deadline."""

    __slots__ = ("alarm", "key", "last_append", "machine", "shard")

    def __init__(self, key: str, machine: M, shard: "Shard[M]") -> None:
        self.key = key
        self.machine = machine
        self.shard = shard
        self.alarm: Deadline | None = None
        self.last_append: Append[M] | None = None
        """The last batch, or None if it is committed or has failed."""


class Append(Generic[M]):
    """An uncommitted batch in the log. `end_offset` is the offset after the batch. The machine's `written` is
    called exactly once for the batch. `running` and `write` are None for a transaction marker.
    """

    __slots__ = ("deadline_ms", "end_offset", "is_reported", "responses", "running", "shard", "write")

    def __init__(
        self,
        shard: "Shard[M]",
        running: RunningMachine[M] | None,
        write: Write | None,
        responses: list[ResponseWhenCommitted],
        end_offset: int,
    ) -> None:
        self.shard = shard
        self.running = running
        self.write = write
        self.responses = responses
        """Responses that wait for this batch."""
        self.end_offset = end_offset
        self.deadline_ms = 0
        self.is_reported = False


class Shard(Generic[M]):
    """A shard and its state. `leader_epoch` is the epoch in which this broker leads the partition. `appends`
    are in log order.
    """

    def __init__(self, index: int, leader_epoch: int) -> None:
        self.index = index
        self.leader_epoch = leader_epoch
        self.state = ShardState.LOADING
        self.is_replayed = False
        """Whether the log has been replayed. Machines are then activated while the shard is still LOADING."""
        self.machines: dict[str, RunningMachine[M]] = {}
        self.appends: deque[Append[M]] = deque()
        self.appends_alarm: Deadline | None = None
        self.snapshots = SnapshotRegistry()
        self._in_transaction: dict[int, set[str]] = {}
        self._ended: list[tuple[int, bool]] = []

    def add(self, key: str, machine: M) -> RunningMachine[M]:
        running = self.machines[key] = RunningMachine(key, machine, self)
        return running

    def note_transaction(self, running: RunningMachine[M], producer_id: int) -> None:
        """Record that the machine takes part in a producer's transaction and must be notified of its end."""
        self._in_transaction.setdefault(producer_id, set()).add(running.key)

    def replay_end_marker(self, producer_id: int, committed: bool) -> None:
        """Apply the marker of a transaction. While the log is being read, the marker is queued."""
        if not self.is_replayed:
            self._ended.append((producer_id, committed))
            return
        for key in self._in_transaction.pop(producer_id, ()):
            running = self.machines.get(key)
            if running is not None:
                running.machine.replay_end_marker(producer_id, committed)

    def finish_replay(self) -> None:
        """Apply the queued markers after the whole log has been replayed."""
        self.is_replayed = True
        ended, self._ended = self._ended, []
        for producer_id, committed in ended:
            self.replay_end_marker(producer_id, committed)
