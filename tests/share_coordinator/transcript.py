"""Plays transcripts of one share-partition at the share coordinator: the input is operations, and the output
is their results and the records of `__share_group_state`, as readable text.

A transcript consists of blocks separated by empty lines. Each block contains commands, `----`, and their
outcome. `#` starts a comment.

    partition updates=3
    init epoch=1 start=0          read leader=2         summary        delete        cold ms=1000
    write epoch=1 leader=2 start=5 count=3 0-4=acknowledged:1 5-9=available:2
    topic exists=no               topic exists=yes
    advance ms=3000   hold   release [error=ERROR]   refuse error=ERROR   restart   describe

`updates` is the number of updates after which a write stores a snapshot. `cold` writes a snapshot if the last
one is at least this old, in ms. Batches consist of their first and last offset, the delivery state and the
delivery count. `hold` delays the commit of records until `release`, and `refuse` lets the next append fail.
`restart` loads the log into a new machine.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Sequence

from kafka_compat.coordinator_runtime.coordinator_log import ReplayedBatch
from kafka_compat.coordinator_runtime.machine import Now, Output, ResponseWhenCommitted
from kafka_compat.coordinator_runtime.timeline import SnapshotRegistry
from kafka_compat.errors import ErrorCode
from kafka_compat.share_coordinator.log_loader import ShareStateLoader
from kafka_compat.share_coordinator.operations import (
    Delete,
    Initialize,
    Operation,
    Read,
    ReadSummary,
    Result,
    Write,
)
from kafka_compat.share_coordinator.persister import StateBatch, StateSummary, StoredState
from kafka_compat.share_coordinator.records import ShareRecord, Snapshot, decode_record, encode_record
from kafka_compat.share_coordinator.share_partition_state import SharePartitionState
from tests.groups.memory import WALL_MS
from tests.share_coordinator.memory import KEY

STATES = {"available": 0, "acknowledged": 2, "archiving": 3, "archived": 4}
NAMES = {number: name for name, number in STATES.items()}


class Player:
    """The state machine of a share-partition, and its log."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.now_ms = 0
        self.log: list[ReplayedBatch] = []
        self.exists = True
        self.updates_per_snapshot = 3
        self.holding = False
        self.held: list[tuple[int, list[ResponseWhenCommitted]]] = []
        """The end offset and the responses of each batch that is not committed."""
        self.refusal = ErrorCode.NONE
        self._begin()

    def _begin(self) -> None:
        self.snapshots = SnapshotRegistry()
        self.machine = SharePartitionState(self.snapshots, self.updates_per_snapshot)

    def play(self, block: str) -> str:
        """Run a block of commands, and return its outcome."""
        self.lines = []
        for line in block.splitlines():
            words = shlex.split(line, comments=True)
            if words:
                options = dict(
                    word.split("=", 1) for word in words[1:] if word.split("=")[0].isalpha() and "=" in word
                )
                positional = [word for word in words[1:] if word.partition("=")[0] not in options]
                command: Callable[..., None] = getattr(self, "_" + words[0])
                command(*positional, **options)
        return "\n".join(self.lines) or "ok"

    # Commands

    def _partition(self, updates: str) -> None:
        self.updates_per_snapshot = int(updates)
        self._begin()

    def _init(self, epoch: str, start: str) -> None:
        self._process(Initialize(int(epoch), int(start)))

    def _read(self, leader: str) -> None:
        self._process(Read(int(leader)))

    def _summary(self) -> None:
        self._process(ReadSummary(0))

    def _delete(self) -> None:
        self._process(Delete())

    def _write(self, *batches: str, epoch: str, leader: str, start: str = "-1", count: str = "-1") -> None:
        parsed = tuple(map(_batch, batches))
        self._process(Write(int(epoch), int(leader), int(start), int(count), parsed))

    def _topic(self, exists: str) -> None:
        self.exists = exists == "yes"
        if not self.exists:
            self._run(self.machine.delete())

    def _cold(self, ms: str) -> None:
        self._run(self.machine.snapshot_if_cold(int(ms), self._now()))

    def _advance(self, ms: str) -> None:
        self.now_ms += int(ms)

    def _hold(self) -> None:
        self.holding = True

    def _release(self, error: str = "NONE") -> None:
        self.holding = False
        held, self.held = self.held, []
        for end_offset, responses in held:
            self._committed(end_offset, responses, ErrorCode[error])

    def _refuse(self, error: str) -> None:
        self.refusal = ErrorCode[error]

    def _restart(self) -> None:
        loader = ShareStateLoader()
        for batch in self.log:
            loader.feed(batch)
        self._begin()
        for key, value, offset, producer_id in loader.records():
            record = decode_record(key, value)
            assert record is not None
            self.machine.replay(record, offset, producer_id)
        self._run(self.machine.loaded(self._now()))

    def _describe(self) -> None:
        state = self.machine.state.current
        if state is None:
            self.lines.append("no state")
            return
        whole = state.whole
        self.lines.append(
            f"state epoch {whole.state_epoch}, leader epoch {state.leader_epoch} "
            f"(stored {whole.leader_epoch}), start {whole.start_offset}, "
            f"complete {whole.delivery_complete_count}, needs the log from {state.snapshot_offset}"
        )
        self.lines.append(f"  {_told(whole.batches)}")

    # Output of the machine

    def _now(self) -> Now:
        return Now(self.now_ms, WALL_MS + self.now_ms)

    def _process(self, operation: Operation) -> None:
        name = type(operation).__name__.lower().replace("readsummary", "summary")
        out = self.machine.process(
            KEY,
            operation,
            lambda result: self.lines.append(f"{name} <- {_told_result(result)}"),
            self._now(),
            exists=self.exists,
        )
        self._run(out)

    def _run(self, out: Output) -> None:
        write, responses = out.write, out.responses_when_committed
        if write is None:
            if self.held:
                self.held[-1][1].extend(responses)
            else:
                for response in responses:
                    response.send()
        elif self.refusal:
            refusal, self.refusal = self.refusal, ErrorCode.NONE
            self._committed(0, responses, refusal)
        else:
            base_offset = len(self.log)
            end_offset = base_offset + 1
            encoded = [encode_record(record) for record in write.records]
            self.log.append(ReplayedBatch(end_offset, -1, None, encoded, base_offset))
            self.snapshots.begin(end_offset)
            for record in write.records:
                self.lines.append(f"+ {_told_record(record)}")
                self.machine.replay(record, end_offset, -1)
            self.snapshots.end()
            if self.holding:
                self.held.append((end_offset, list(responses)))
            else:
                self._committed(end_offset, responses, ErrorCode.NONE)

    def _committed(
        self, end_offset: int, responses: Sequence[ResponseWhenCommitted], error: ErrorCode
    ) -> None:
        if not error:
            self.snapshots.commit(end_offset)
        for response in responses:
            if error:
                response.fail(error)
            else:
                response.send()
        self._run(self.machine.written(None, error, self._now()))


def _batch(text: str) -> StateBatch:
    offsets, _, state = text.partition("=")
    first, _, last = offsets.partition("-")
    name, _, count = state.partition(":")
    return StateBatch(int(first), int(last), STATES[name], int(count))


def _told(batches: Sequence[StateBatch]) -> str:
    told = [
        f"{batch.first_offset}-{batch.last_offset}={NAMES[batch.delivery_state]}:{batch.delivery_count}"
        for batch in batches
    ]
    return " ".join(told) or "no batches"


def _told_result(result: Result) -> str:
    if result.error:
        return f"{result.error.name}: {result.message}"
    value = result.value
    if isinstance(value, StoredState):
        return f"state epoch {value.state_epoch}, start {value.start_offset}, {_told(value.batches)}"
    if isinstance(value, StateSummary):
        return (
            f"state epoch {value.state_epoch}, leader epoch {value.leader_epoch}, "
            f"start {value.start_offset}, complete {value.delivery_complete_count}"
        )
    return "done"


def _told_record(record: ShareRecord) -> str:
    value = record.value
    if value is None:
        return "deleted"
    state_epoch = f"state epoch {value.state_epoch}, " if isinstance(value, Snapshot) else ""
    kind = "snapshot" if isinstance(value, Snapshot) else "update"
    return (
        f"{kind} {value.snapshot_epoch}: {state_epoch}leader epoch {value.leader_epoch}, "
        f"start {value.start_offset}, complete {value.delivery_complete_count}, {_told(value.batches)}"
    )
