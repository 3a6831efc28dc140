"""Event loop with simulated time, which jumps to the next timer when no callback is ready.

Rules
1. Callbacks run in asyncio's order. Each takes STEP_S, so that time also passes for code that polls.
2. Callbacks of a dead process are dropped. Callbacks of a paused process wait until it resumes (nodes.py).
3. Work for another thread runs on this thread, after a delay chosen by the seed.
4. Tasks and futures are hashed by their numbers, so that sets have the same order in every run.
"""

import asyncio
import heapq
import itertools
import random
import socket
from asyncio.selector_events import BaseSelectorEventLoop
from collections import deque
from collections.abc import Callable, Coroutine, MutableMapping
from contextvars import Context
from typing import Any, TypeVar

from kafka_compat.testing.simulation.journal import Journal
from kafka_compat.testing.simulation.network import Network
from kafka_compat.testing.simulation.nodes import CURRENT, Node
from kafka_compat.testing.simulation.readiness import Readiness

T = TypeVar("T")

STEP_S = 1e-6
STEPS_MAX = 5_000_000
"""Maximum number of steps. A simulation that exceeds it is considered to be in an endless loop."""
EPOCH_S = 1_767_225_600.0
"""Time of day at the start of every simulation: 2026-01-01, 00:00 UTC."""
_THREAD_S = (0.00005, 0.002)


class Standstill(Exception):
    """Raised if `main` cannot end: no callback or timer is left, or the time or step limit is reached."""


class NumberedFuture(asyncio.Future[T]):
    """Future that is hashed by its number (rule 4)."""

    def __init__(self, number: int, loop: asyncio.AbstractEventLoop) -> None:
        self._number = number
        super().__init__(loop=loop)

    def __hash__(self) -> int:
        return self._number


class NumberedTask(asyncio.Task[T]):
    """Task that is hashed by its number (rule 4)."""

    def __init__(self, number: int, coroutine: Coroutine[Any, Any, T], **named: Any) -> None:
        self._number = number
        super().__init__(coroutine, **named)

    def __hash__(self) -> int:
        return self._number


class SimulatedLoop(BaseSelectorEventLoop):
    """Event loop that follows the rules of this module, for at most `timeout_s` of simulated time."""

    _ready: deque[asyncio.Handle]
    _scheduled: list[asyncio.TimerHandle]
    _transports: MutableMapping[int, object]

    def __init__(self, seed: int, timeout_s: float) -> None:
        self._now_s = 0.0
        self._timeout_s = timeout_s
        self.steps = 0
        self._numbers = itertools.count(1)
        self._chance = random.Random(f"{seed} threads")
        self._tasks: dict[asyncio.Task[Any], None] = {}
        self._readiness = Readiness(_may_run)
        super().__init__(self._readiness)
        self.set_task_factory(self._new_task)
        self.journal = Journal(self.time)
        self.network = Network(self, self._readiness, random.Random(f"{seed} network"))

    # --- time

    def time(self) -> float:
        return self._now_s

    def time_of_day_s(self) -> float:
        """Return the simulated time of day, in seconds since the Unix epoch."""
        return EPOCH_S + self._now_s

    def sleep(self, seconds: float) -> None:
        """Advance the simulated time. This replaces time.sleep, which would block all processes."""
        self._now_s += max(seconds, 0.0)

    def _run_once(self) -> None:
        ready, scheduled = self._ready, self._scheduled
        self._readiness.collect(ready)
        if not ready:
            while scheduled and scheduled[0].cancelled():
                heapq.heappop(scheduled)
            if not scheduled:
                raise Standstill("all tasks wait for events that cannot occur")
            self._now_s = max(self._now_s, scheduled[0].when())
        if self._now_s > self._timeout_s:
            raise Standstill(f"main has not ended after {self._timeout_s:g} s of simulated time")
        while scheduled and scheduled[0].when() <= self._now_s:
            ready.append(heapq.heappop(scheduled))
        self.steps += len(ready)
        if self.steps > STEPS_MAX:
            raise Standstill(f"main has not ended after {STEPS_MAX} steps")
        for _ in range(len(ready)):
            handle = ready.popleft()
            if not handle.cancelled() and _may_run(handle, keep=True):
                self._now_s += STEP_S
                handle._run()

    # --- processes

    def resume(self, node: Node) -> None:
        """Resume a paused process (SIGCONT)."""
        if node.state == "paused":
            node.running, node.state = True, "running"
            self._ready.extend(node.kept)
            node.kept.clear()

    def forget_transport(self, descriptor: int) -> None:
        """Forget the transport of a killed process, because its descriptor may be reused."""
        self._transports.pop(descriptor, None)

    def abandon(self) -> list[asyncio.Task[Any]]:
        """Return all unfinished tasks, and stop tracking them, without asyncio's warnings about them."""
        for task in self._tasks:
            task._log_destroy_pending = False  # type: ignore[attr-defined]
        left = list(self._tasks)
        self._tasks.clear()
        return left

    def create_future(self) -> asyncio.Future[Any]:
        return NumberedFuture(next(self._numbers), self)

    def _new_task(
        self, loop: asyncio.AbstractEventLoop, coroutine: Any, context: Context | None = None, **named: Any
    ) -> asyncio.Task[Any]:
        task = NumberedTask[Any](next(self._numbers), coroutine, loop=loop, context=context, **named)
        # Keep tasks of dead processes, because garbage collection would run their `finally` blocks.
        self._tasks[task] = None
        task.add_done_callback(self._forget, context=_NOBODYS)
        return task

    def _forget(self, task: asyncio.Task[Any]) -> None:
        self._tasks.pop(task, None)

    # --- asyncio features that would escape the simulation

    def run_in_executor(  # type: ignore[override]
        self, executor: Any, function: Callable[..., T], *arguments: Any
    ) -> asyncio.Future[T]:
        future = self.create_future()

        def run() -> None:
            try:
                found = function(*arguments)
            except Exception as error:
                if not future.done():
                    future.set_exception(error)
            else:
                if not future.done():
                    future.set_result(found)

        self.call_later(self._chance.uniform(*_THREAD_S), run)
        return future

    async def getaddrinfo(self, host: Any, port: Any, **named: Any) -> Any:
        return socket.getaddrinfo(host, port, **named)

    def _make_self_pipe(self) -> None:
        """Do nothing, because no other thread wakes this loop."""

    def _close_self_pipe(self) -> None:
        """Do nothing, because there is no pipe."""

    def _write_to_self(self) -> None:
        """Do nothing, because this loop never blocks and so need not be woken."""


_NOBODYS = Context()


def _may_run(handle: asyncio.Handle, keep: bool = False) -> bool:
    """Return whether the callback's process is running (rule 2)."""
    node = handle._context.get(CURRENT)  # type: ignore[attr-defined]
    if node is None or node.running:
        return True
    if keep and node.state == "paused":
        node.kept.append(handle)
    return False
