"""A directory worker that runs only when the test steps it, to interleave the event loop and the disk in any
order.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator

from kafka_compat.storage.directories.directory_worker import Done, Job


class SteppedWorker:
    """A worker without a thread: `step` runs the next part of a job, and `hear` delivers one result to the
    event loop.
    """

    def __init__(self) -> None:
        self._urgent: deque[tuple[Job, Done | None]] = deque()
        self._jobs: deque[tuple[Job, Done | None]] = deque()
        self._under_way: tuple[Iterator[None], Done | None] | None = None
        self._heard: deque[Callable[[], None]] = deque()

    def submit(self, job: Job, done: Done | None = None, *, urgent: bool = False) -> None:
        (self._urgent if urgent else self._jobs).append((job, done))

    def hand_back(self, function: Callable[[], None]) -> None:
        self._heard.append(function)

    def close(self) -> None:
        self.drain()

    def step(self) -> bool:
        """Run until a job ends or yields. Return False if the queue is empty."""
        if self._urgent:
            job, done = self._urgent.popleft()
        elif self._under_way is not None:
            self._go_on(*self._under_way)
            return True
        elif self._jobs:
            job, done = self._jobs.popleft()
        else:
            return False
        try:
            steps = job()
        except Exception as error:
            self._ended(done, error)
            return True
        if steps is None:
            self._ended(done, None)
        else:
            for_urgent = self._under_way is not None
            assert not for_urgent, "urgent jobs do not yield"
            self._go_on(steps, done)
        return True

    def _go_on(self, steps: Iterator[None], done: Done | None) -> None:
        self._under_way = (steps, done)
        try:
            next(steps)
        except StopIteration:
            self._under_way = None
            self._ended(done, None)
        except Exception as error:
            self._under_way = None
            self._ended(done, error)

    def _ended(self, done: Done | None, error: Exception | None) -> None:
        if done is not None:
            self.hand_back(lambda: done(error))

    def hear(self) -> bool:
        """Run one event loop iteration, which delivers the oldest result. Return False if there is none."""
        if not self._heard:
            return False
        self._heard.popleft()()
        return True

    def drain(self) -> None:
        """Run until no jobs and no results are left."""
        while self.step() or self.hear():
            pass
