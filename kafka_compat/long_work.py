"""Cooperative scheduling of long-running work, so that it does not delay other requests on the event loop.

Work that may take long is written as a generator of steps. It yields None to allow other work to run, or a
function to run in another thread; the generator then receives the function's result. `LongWork.run` executes
the steps immediately while they are quick, as nearly all are, and returns their result; otherwise it returns
a coroutine that executes the remaining steps. If the generator returns a coroutine, its result is the result
of the work. Long work in a coroutine calls `LongWork.begin`, and `pause_if_due` between its steps.

Rules
1. A turn lasts TURN_S. All long-running work of a broker together gets one turn in each pass of the event
   loop, in order of arrival: 100 long requests delay a short one hardly more than one long request does.
2. At most one function runs in another thread at a time, also in order of arrival. Python runs one thread at
   a time, and a computing thread delays the loop by the interpreter's switch interval (5 ms) whenever the
   loop returns from a system call; several threads would add up these delays. The limit also bounds the
   memory used by decompression.
"""

import asyncio
import logging
import time
from collections import Counter, deque
from collections.abc import Callable, Coroutine, Generator, Iterable, Iterator
from heapq import merge
from itertools import islice
from typing import Any, Final, TypeVar

log = logging.getLogger(__name__)

T = TypeVar("T")
Ordered = TypeVar("Ordered", str, int)

Job = Callable[[], Any]
Steps = Generator[Job | None, Any, T]
"""Long work with a result of type T, as a generator of steps."""

AT_ONCE: Final = 500
"""Number of items per step, for items that take almost no time."""
_SORTED_AT_ONCE: Final = 5_000
"""Number of items to sort in one step."""
TURN_S: Final = 0.004
TURNS_TO_COLLECT: Final = 2
"""Number of turns after which `LongWork.collect` is called: about 8 ms of work."""
QUICK_S: Final = 0.0005
"""Time in s that `LongWork.run` continues immediately if other work has used the turn of this pass."""


def batched(items: Iterable[T], count: int = AT_ONCE) -> Iterator[list[T]]:
    """Split the items into lists of `count`, one per step. The last list may be shorter."""
    iterator = iter(items)
    while batch := list(islice(iterator, count)):
        yield batch


def finished(steps: Steps[T]) -> T:
    """Execute all steps at once, none of which may need another thread, and return their result."""
    while True:
        try:
            next(steps)
        except StopIteration as stop:
            result: T = stop.value
            return result


def gathered(items: Iterable[T]) -> Steps[list[T]]:
    """Collect all the items in a list, in steps."""
    found: list[T] = []
    for batch in batched(items):
        found += batch
        yield None
    return found


def sorted_in_steps(items: Iterable[Ordered]) -> Steps[list[Ordered]]:
    """Sort the items, in steps."""
    runs: list[list[Ordered]] = []
    for batch in batched(items, _SORTED_AT_ONCE):
        runs.append(sorted(batch))
        yield None
    if len(runs) < 2:
        return runs[0] if runs else []
    return (yield from gathered(merge(*runs)))


def counted(items: Iterable[T]) -> Steps[Counter[T]]:
    """Count the occurrences of each item, in steps."""
    counts: Counter[T] = Counter()
    for batch in batched(items):
        counts.update(batch)
        yield None
    return counts


class LongWork:
    """The scheduler of one broker's long-running work on its event loop. `now_s` is a monotonic clock,
    time.perf_counter by default.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop, now_s: Callable[[], float] | None = None) -> None:
        self._loop = loop
        self._now_s = now_s or time.perf_counter
        self._waiting: deque[asyncio.Future[None]] = deque()
        self._taken = False
        """Whether other work has already used the turn of this pass of the loop."""
        self.collect: Callable[[], object] | None = None
        """Called between turns, so that garbage collections stay short. Long-running work may replace very
        many objects.
        """
        self._turns = 0
        """Number of turns since the last call of `collect`."""
        self._thread_free = asyncio.Lock()
        self._tasks: set[asyncio.Task[None]] = set()

    def run(
        self, steps: Steps[T], before_pause: Callable[[], object] | None = None
    ) -> T | Coroutine[Any, Any, T]:
        """Execute `steps`. Return their result if they are quick, otherwise a coroutine that returns it.

        `before_pause` is called before this method returns a coroutine. It can copy data that the steps use
        and that is valid only until the caller returns.
        """
        now_s = self._now_s
        end_s = now_s() + (QUICK_S if self._taken else TURN_S)
        try:
            while True:
                job = next(steps)
                if job is not None or now_s() > end_s:
                    if not self._taken:
                        self._pass_on_later()
                    if before_pause is not None:
                        before_pause()
                    return self.finish(steps, job)
        except StopIteration as stop:
            result: T = stop.value
            return result

    async def finish(self, steps: Steps[T], job: Job | None = None) -> T:
        """Continue `steps`, which paused at `job`, and return their result."""
        turn = await self.begin()
        try:
            while True:
                if job is None:
                    await turn.pause_if_due()
                    job = next(steps)
                    continue
                try:
                    found = await self.in_thread(job)
                except Exception as error:
                    job = steps.throw(error)
                else:
                    await turn.pause()
                    job = steps.send(found)
        except StopIteration as stop:
            result: T = stop.value
        finally:
            steps.close()
        if isinstance(result, Coroutine):
            result = await result
        return result

    def start(self, steps: Steps[T], done: Callable[[T], object]) -> None:
        """Run `steps`, and call `done` with their result, immediately if the steps are quick."""
        found = self.run(steps)
        if not isinstance(found, Coroutine):
            done(found)
            return
        task = self._loop.create_task(self._tell(found, done))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _tell(self, result: Coroutine[Any, Any, T], done: Callable[[T], object]) -> None:
        try:
            done(await result)
        except Exception:
            log.exception("A long-running operation failed")

    def close(self) -> None:
        """Cancel work started by `start`."""
        for task in self._tasks:
            task.cancel()

    async def begin(self) -> "Turn":
        """Wait for the caller's first turn, possibly until a later iteration of the event loop."""
        await self._next_turn(waits=self._taken)
        return Turn(self)

    async def in_thread(self, job: Callable[[], T]) -> T:
        """Run `job` in another thread. Return its result or raise its exception."""
        async with self._thread_free:
            return await self._loop.run_in_executor(None, job)

    async def _next_turn(self, *, waits: bool) -> None:
        if waits:
            turn: asyncio.Future[None] = self._loop.create_future()
            self._waiting.append(turn)
            if not self._taken:
                self._pass_on_later()
            await turn
        elif not self._taken:
            self._pass_on_later()

    def _pass_on_later(self) -> None:
        self._taken = True
        self._loop.call_soon(self._pass_on)

    def _pass_on(self) -> None:
        """Give the next turn to the work that has waited longest, if any work is waiting."""
        self._turns += 1
        if self._turns >= TURNS_TO_COLLECT:
            self._turns = 0
            if self.collect is not None:
                self.collect()
        while self._waiting:
            turn = self._waiting.popleft()
            if not turn.done():
                turn.set_result(None)
                self._loop.call_soon(self._pass_on)
                return
        self._taken = False


class Turn:
    """The turns of one long-running operation on the event loop."""

    __slots__ = ("_end_s", "_work")

    def __init__(self, work: LongWork) -> None:
        self._work = work
        self._end_s = work._now_s() + TURN_S

    async def pause_if_due(self) -> None:
        """Yield to other work if the turn is over, and return in the next turn. Call between two steps."""
        if self._work._now_s() > self._end_s:
            await self.pause()

    async def pause(self) -> None:
        """Yield to other work until the next turn."""
        await self._work._next_turn(waits=True)
        self._end_s = self._work._now_s() + TURN_S
