"""What the players of transcripts share: a group whose clock moves only with `advance`, and its log."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

from kafka_compat.coordinator_runtime.coordinator_log import ReplayedBatch
from kafka_compat.coordinator_runtime.loader import Loader
from kafka_compat.coordinator_runtime.machine import Now, Output
from kafka_compat.coordinator_runtime.timeline import SnapshotRegistry
from kafka_compat.errors import ErrorCode
from kafka_compat.groups.group import Group
from kafka_compat.groups.records import decode_record

START_MS = 1_000_000


class GroupPlayer(ABC):
    """A group, its clock and its log. Commands are methods whose names start with an underscore."""

    group: Group
    snapshots: SnapshotRegistry

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.now_ms = START_MS
        self.log: list[ReplayedBatch] = []
        self.holding = False
        self.held: list[tuple[Any, ...]] = []
        """The arguments of `_written` for each delayed commit, without the error code."""
        self.refusal = ErrorCode.NONE

    @abstractmethod
    def _begin(self) -> None:
        """Create a new group and its snapshots."""

    @abstractmethod
    def _run(self, out: Output) -> None:
        """Carry out what the machine wants, and write it down."""

    @abstractmethod
    def _written(self, *arguments: Any) -> None:
        """Report the outcome of a write."""

    def _now(self) -> Now:
        return Now(self.now_ms - START_MS, self.now_ms)

    def _say(self, text: str) -> None:
        self.lines.append(text)

    def _advance(self, duration_ms: str) -> None:
        self._fire_timers(int(duration_ms), shows_time=True)

    def _fire_timers(self, duration_ms: int, *, shows_time: bool) -> None:
        end_ms = self.now_ms + duration_ms
        while True:
            wake_at_ms = self.group.wake_at_ms
            if wake_at_ms is None or START_MS + wake_at_ms > end_ms:
                break
            self.now_ms = max(self.now_ms, START_MS + wake_at_ms)
            shown = len(self.lines)
            self._run(self.group.tick(self._now()))
            if len(self.lines) > shown and shows_time:
                self.lines.insert(shown, f"at {self.now_ms - START_MS} ms:")
        self.now_ms = end_ms

    def _hold(self) -> None:
        self.holding = True

    def _refuse(self, error: str) -> None:
        """Refuse the next append."""
        self.refusal = ErrorCode[error]

    def _release(self, error: str = "NONE") -> None:
        self.holding = False
        held, self.held = self.held, []
        for arguments in held:
            self._written(*arguments, ErrorCode[error])

    def _restart(self) -> None:
        loader = Loader()
        for batch in self.log:
            loader.feed(batch)
        self._begin()
        for key, value, log_offset, producer_id in loader.records():
            record = decode_record(key, value)
            assert record is not None
            self.group.replay(record, log_offset, producer_id)
        self._run(self.group.loaded(self._now()))
