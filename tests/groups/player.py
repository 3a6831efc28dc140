"""What the players of transcripts share: a group whose clock moves only with `advance`, and its log."""

from __future__ import annotations

import shlex
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any

from kafka_compat.coordinator_runtime.coordinator_log import NO_PRODUCER_ID, ReplayedBatch
from kafka_compat.coordinator_runtime.loader import Loader
from kafka_compat.coordinator_runtime.machine import Now, Output, Write
from kafka_compat.coordinator_runtime.timeline import SnapshotRegistry
from kafka_compat.errors import ErrorCode
from kafka_compat.groups.group import Group
from kafka_compat.groups.records import Record, decode_record, encode_record

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
        self.held: list[tuple[Write, int, list[Any]]] = []
        """The arguments of `_written` for each delayed commit, without the error code."""
        self.refusal = ErrorCode.NONE

    @abstractmethod
    def _begin(self) -> None:
        """Create a new group and its snapshots."""

    @abstractmethod
    def _answer(self, waiter: str, result: Any) -> None:
        """Write down a response."""

    @abstractmethod
    def _record(self, record: Record) -> str:
        """Return the text for a record."""

    def _effect(self, effect: Any) -> None:
        """Write down another effect, or remember it."""
        raise AssertionError(f"unexpected: {effect}")

    def play(self, block: str) -> str:
        """Run a block of commands, and return its outcome."""
        self.lines = []
        for line in block.splitlines():
            words = shlex.split(line, comments=True)
            if words:
                self._command(words)
        return "\n".join(self.lines) or "ok"

    def _command(self, words: list[str]) -> None:
        positional = [word for word in words[1:] if "=" not in word or "-" in word.split("=")[0]]
        options = dict(word.split("=", 1) for word in words[1:] if word not in positional)
        command: Callable[..., None] = getattr(self, "_" + words[0].replace("-", "_"))
        command(*positional, **options)

    def _run(self, out: Output) -> None:
        """Carry out what the machine wants, and write it down."""
        for note in out.notes:
            self._say(f"* {note}")
        for waiter, result in out.responses:
            self._answer(str(waiter), result)
        write, responses = out.write, out.responses_when_committed
        if write is None:
            if self.held:
                self.held[-1][2].extend(responses)
            else:
                for response in responses:
                    self._answer(str(response.waiter), response.result)
        elif self.refusal:
            refusal, self.refusal = self.refusal, ErrorCode.NONE
            for response in responses:
                self._answer(str(response.waiter), response.failed(refusal))
            self._run(self.group.written(write.purpose, refusal, self._now()))
            return
        else:
            self._append(write, responses)
        for effect in out.effects:
            self._effect(effect)

    def _append(self, write: Write, responses: list[Any]) -> None:
        records = [encode_record(record) for record in write.records]
        self.log.append(ReplayedBatch(len(self.log) + 1, -1, None, records))
        self.snapshots.begin(len(self.log))
        for record in write.records:
            self._say(f"+ {self._record(record)}")
            self.group.replay(record, len(self.log), NO_PRODUCER_ID)
        self.snapshots.end()
        if write.then is not None:
            self._run(write.then())
        if self.holding:
            self.held.append((write, len(self.log), list(responses)))
        else:
            self._written(write, len(self.log), responses, ErrorCode.NONE)

    def _written(self, write: Write, end_offset: int, responses: list[Any], error: ErrorCode) -> None:
        """Report the outcome of a write."""
        if not error:
            self.snapshots.commit(end_offset)
        for response in responses:
            self._answer(str(response.waiter), response.failed(error) if error else response.result)
        self._run(self.group.written(write.purpose, error, self._now()))

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
