"""Background tasks. Each has an owner, which handles failures and, when closed, cancels the task.

Rules
1. A failure of a task is logged with its name, immediately rather than when the task is garbage collected.
2. A task that restarts runs its work again after a pause that doubles with each failure. Other tasks end.
   CannotGoOn always stops the broker.
3. Closing an owner cancels its tasks, the youngest first, and waits for each before canceling the next. After
   that, no task can be started.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, TypeVar

from kafka_compat.long_work import TURN_S

log = logging.getLogger(__name__)

S = TypeVar("S")
T = TypeVar("T")
Work = Callable[[], Awaitable[None]]
Sleep = Callable[[float], Awaitable[None]]

RESTART_S_MIN = 0.1
RESTART_S_MAX = 10.0
CALM_S = 60.0
"""If the work fails after running for at least this many seconds, it restarts after the minimum pause."""


class CannotGoOn(Exception):
    """Raised by a task to stop the broker (rule 2). The message states the reason."""


def _nothing() -> None:
    """The default `end_broker`, for owners whose tasks never raise CannotGoOn."""


class Background:
    def __init__(self, name: str, task: asyncio.Task[None]) -> None:
        self.name = name
        self._task: asyncio.Task[None] | None = task
        """The asyncio task, or None after it has ended. Keeping it could create a reference cycle,
        because its error refers to stack frames, and these to an owner that may keep this object.
        """

    @property
    def done(self) -> bool:
        """Whether the task has ended, by itself or by cancellation."""
        return self._task is None or self._task.done()

    def cancel(self) -> None:
        """Request cancellation of the task."""
        if self._task is not None:
            self._task.cancel()

    async def wait(self) -> None:
        """Wait until the task has ended, successfully or not. Canceling the wait does not cancel the task."""
        if self._task is not None:
            await asyncio.wait([self._task])

    async def stop(self) -> None:
        """Cancel the task, and wait until it has ended."""
        self.cancel()
        await self.wait()

    def ended(self) -> None:
        self._task = None


class Tasks:
    """The tasks of one owner."""

    def __init__(self, end_broker: Callable[[], None] = _nothing, *, sleep: Sleep = asyncio.sleep) -> None:
        """`end_broker` is called after CannotGoOn. `sleep` waits a number of seconds before a restart."""
        self._end_broker = end_broker
        self._sleep = sleep
        self._running: dict[Background, None] = {}
        self.closed = False
        """Whether tasks can no longer be started."""

    def __len__(self) -> int:
        return len(self._running)

    def spawn(self, name: str, work: Work, *, restarts: bool = False) -> Background:
        """Run `work` in the background. `name` appears in the log, for example "fetching from broker 2".

        With `restarts`, `work` may be called again, so it must determine where to continue.
        """
        if self.closed:
            raise RuntimeError(f"{name}: its owner is closed")
        task = asyncio.get_running_loop().create_task(self._run(name, work, restarts), name=name)
        background = Background(name, task)
        self._running[background] = None
        task.add_done_callback(lambda _: self._ended(background))
        return background

    def _ended(self, background: Background) -> None:
        self._running.pop(background, None)
        background.ended()

    async def finish(self) -> None:
        """Wait for all tasks to end. No further tasks can be started."""
        self.closed = True
        for background in list(self._running):
            await background.wait()

    async def close(self) -> None:
        """Cancel all tasks, the youngest first, and wait until they have ended."""
        self.closed = True
        for background in reversed(list(self._running)):
            await background.stop()

    async def _run(self, name: str, work: Work, restarts: bool) -> None:
        loop = asyncio.get_running_loop()
        pause_s = RESTART_S_MIN
        while True:
            began_s = loop.time()
            try:
                await work()
                return
            except CannotGoOn as error:
                log.critical('Stopping the broker: task "%s" failed: %s', name, error)
                self._end_broker()
                return
            except Exception:
                if not restarts:
                    log.exception('Task "%s" failed', name)
                    return
                if loop.time() - began_s >= CALM_S:
                    pause_s = RESTART_S_MIN
                log.exception('Task "%s" failed; retrying in %.1f s', name, pause_s)
            await self._sleep(pause_s)
            pause_s = min(2 * pause_s, RESTART_S_MAX)


async def asked_for_all(items: Sequence[S], ask: Callable[[S], Awaitable[T]], most: int) -> list[T]:
    """Call `ask` for all items, `most` at a time. Return the results. A failure cancels the other calls.

    If the calls return without waiting, the event loop still runs after every TURN_S.
    """
    found: dict[int, T] = {}
    waiting = enumerate(items)
    now_s = asyncio.get_running_loop().time
    turn_ends_s = now_s() + TURN_S
    yielding = asyncio.Lock()

    async def work() -> None:
        nonlocal turn_ends_s
        for number, item in waiting:
            found[number] = await ask(item)
            if now_s() > turn_ends_s:
                # If every worker yielded for itself, each would take a whole turn in every pass of the loop.
                async with yielding:
                    if now_s() > turn_ends_s:
                        await asyncio.sleep(0)
                        turn_ends_s = now_s() + TURN_S

    workers = [asyncio.ensure_future(work()) for _ in range(min(len(items), most))]
    try:
        await asyncio.gather(*workers)
    finally:
        for worker in workers:
            worker.cancel()
    return [found[number] for number in range(len(found))]


def settle(answer: asyncio.Future[Any], outcome: Any) -> None:
    """Set the result of a future, or its exception if `outcome` is one, unless its caller was canceled."""
    if answer.done():
        return
    if isinstance(outcome, Exception):
        answer.set_exception(outcome)
    else:
        answer.set_result(outcome)
