"""The work of a log directory, on the simulation's own thread."""

from __future__ import annotations

import asyncio
import random
from collections import deque
from collections.abc import Callable

from kafka_compat.storage.directories.directory_worker import Done, Job, log_failure, run

_DISK_S = (0.00002, 0.002)


class SimulatedWorker:
    """Each job is done some time later, which the seed decides; one at a time, in their order."""

    def __init__(self, chance: random.Random) -> None:
        self._loop = asyncio.get_running_loop()
        self._chance = chance
        self._urgent: deque[tuple[Job, Done | None]] = deque()
        self._jobs: deque[tuple[Job, Done | None]] = deque()
        self._is_due = False
        self._closed = False

    def submit(self, job: Job, done: Done | None = None, *, urgent: bool = False) -> None:
        (self._urgent if urgent else self._jobs).append((job, done))
        if self._closed:
            self._do_next()
        else:
            self._do_later()

    def hand_back(self, function: Callable[[], None]) -> None:
        self._loop.call_soon(function)

    def close(self) -> None:
        while self._urgent or self._jobs:
            self._do_next()
        self._closed = True

    def _do_later(self) -> None:
        if not self._is_due and (self._urgent or self._jobs):
            self._is_due = True
            self._loop.call_later(self._chance.uniform(*_DISK_S), self._due)

    def _due(self) -> None:
        self._is_due = False
        if self._urgent or self._jobs:
            self._do_next()
        self._do_later()

    def _do_next(self) -> None:
        job, done = (self._urgent or self._jobs).popleft()
        error = run(job)
        if done is not None:
            self._loop.call_soon(done, error)
        elif error is not None:
            log_failure(error)
