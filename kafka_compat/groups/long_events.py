"""Events of groups that take long, such as heartbeats that compute the assignment of thousands of members.

Such an event is processed in steps, between which other requests are served. Meanwhile, the group is busy:
later events that change its members wait, in order. All groups together get one turn in each pass of the
event loop.
"""

import logging
from collections import deque
from collections.abc import Callable, Iterator
from typing import Final, NamedTuple

from kafka_compat.coordinator_runtime.machine import Output
from kafka_compat.coordinator_runtime.runtime import CoordinatorRuntime
from kafka_compat.coordinator_runtime.scheduler import Scheduler
from kafka_compat.coordinator_runtime.shard import RunningMachine
from kafka_compat.groups.group import Group
from kafka_compat.groups.records import Record
from kafka_compat.long_work import Steps, batched

log = logging.getLogger(__name__)

_QUICK_MS: Final = 2
"""Time in ms after which an event is processed in steps."""
_RECORDS_AT_ONCE: Final = 100
"""Number of records that are encoded in one step."""
_STEP_SIZE: Final = 20
"""Size of each step (see `run_cooperatively`)."""

Running = RunningMachine[Group]


class _LongEvent(NamedTuple):
    """An event that is processed in steps. `again` submits the event from the beginning, and `fail` responds
    that it has failed.
    """

    running: Running
    steps: Steps[Output]
    again: Callable[[], None]
    fail: Callable[[], None]


class LongEvents:
    """The long events of one coordinator. `encode` encodes a record for the log."""

    def __init__(
        self,
        runtime: CoordinatorRuntime[Group, Record],
        scheduler: Scheduler,
        encode: Callable[[Record], tuple[bytes, bytes | None]],
    ) -> None:
        self._runtime = runtime
        self._scheduler = scheduler
        self._encode = encode
        self._waiting: dict[Running, deque[Callable[[], None]]] = {}
        """The events that wait for each busy group."""
        self._events: deque[_LongEvent] = deque()
        """The long events. The first is being processed."""
        self._resumed: Running | None = None
        """The group whose waiting events are being processed."""
        self._is_working = False

    def waits(self, running: Running, again: Callable[[], None]) -> bool:
        """Return whether an event must wait because its group is busy. If so, `again` is called afterwards to
        submit it from the beginning.
        """
        waiting = self._waiting.get(running)
        if waiting is None or running is self._resumed:
            return False
        waiting.append(again)
        return True

    def process(
        self,
        running: Running,
        begin: Callable[[], Steps[Output]],
        again: Callable[[], None],
        fail: Callable[[], None],
    ) -> None:
        """Process an event of a group that may take long. `begin` returns its steps. `again` submits it from
        the beginning: it is called later if the group is busy, or if this broker stops coordinating the
        group. `fail` responds that the event has failed.
        """
        if self.waits(running, again):
            return
        steps = self._encoded(running, begin())
        end_ms = self._scheduler.monotonic_ms() + _QUICK_MS
        try:
            while self._scheduler.monotonic_ms() <= end_ms:
                next(steps)
        except StopIteration as stop:
            self._runtime.carry_out(running, stop.value)
            return
        running.machine.is_busy = True
        self._waiting.setdefault(running, deque())
        self._events.append(_LongEvent(running, steps, again, fail))
        if not self._is_working:
            self._is_working = True
            self._runtime.run_cooperatively(self._work())

    def _encoded(self, running: Running, steps: Steps[Output]) -> Steps[Output]:
        """Process an event, and encode its records if the event has taken long or the records are many."""
        out = yield from steps
        if out.write is not None and (running.machine.is_busy or len(out.write.records) > _RECORDS_AT_ONCE):
            encoded: list[tuple[bytes, bytes | None]] = []
            for records in batched(out.write.records, _RECORDS_AT_ONCE):
                try:
                    yield None
                except GeneratorExit:
                    out.respond()
                    raise
                encoded += map(self._encode, records)
            out.write = out.write._replace(encoded=encoded)
        return out

    def end_lost(self) -> None:
        """Submit the events of groups that this broker no longer coordinates, which rejects them."""
        for running in [each for each in self._waiting if not self._is_coordinated(each)]:
            self._end(running)

    def _end(self, running: Running) -> None:
        waiting = self._waiting.pop(running)
        events = [each for each in self._events if each.running is running]
        for event in events:
            event.steps.close()
            self._events.remove(event)
        for again in [*(event.again for event in events), *waiting]:
            again()

    def _is_coordinated(self, running: Running) -> bool:
        return not self._runtime.is_closed and self._runtime.running.get(running.key) is running

    def _work(self) -> Iterator[int]:
        while self._events:
            event = self._events[0]
            yield from self._finish(event)
            if self._events and self._events[0] is event:
                self._events.popleft()
                yield from self._resume(event.running)
        self._is_working = False

    def _finish(self, event: _LongEvent) -> Iterator[int]:
        """Process the remaining steps of the first event, unless it ends early."""
        out: Output | None = None
        try:
            while out is None:
                yield _STEP_SIZE
                if self._has_ended(event):
                    return
                try:
                    next(event.steps)
                except StopIteration as stop:
                    out = stop.value
        except Exception:
            log.exception("A request for group %s failed", event.running.key)
            event.running.machine.is_busy = False
            event.fail()
            self._runtime.set_alarm(event.running)
        else:
            event.running.machine.is_busy = False
            self._runtime.carry_out(event.running, out)

    def _has_ended(self, event: _LongEvent) -> bool:
        if self._events and self._events[0] is event and not self._is_coordinated(event.running):
            self._end(event.running)
        return not self._events or self._events[0] is not event

    def _resume(self, running: Running) -> Iterator[int]:
        """Process the events that have waited for a group, until one of them takes long."""
        while waiting := self._waiting.get(running):
            again = waiting.popleft()
            self._resumed = running
            try:
                again()
            except Exception:
                log.exception("A request for group %s failed", running.key)
            finally:
                self._resumed = None
            if running.machine.is_busy:
                return
            yield _STEP_SIZE
            if self._waiting.get(running) is not None and not self._is_coordinated(running):
                self._end(running)
        self._waiting.pop(running, None)
