"""Worker thread that runs the disk operations of one log directory.

Rules
1. Jobs run in the order in which they were submitted, one at a time. A job's writes are durable before the
   next job begins. Deleting and recreating a log with the same name relies on this.
2. Acknowledgements wait for urgent jobs, so these jobs run before all others. A long job is a generator, and
   urgent jobs run at each of its yields.
3. The submitter of a job is called back, on its own thread (the event loop), with the job's error or None.
"""

import contextlib
import logging
import threading
from collections import deque
from collections.abc import Callable, Iterator
from queue import SimpleQueue
from typing import Protocol

from kafka_compat.storage.errors import StorageError

logger = logging.getLogger(__name__)

Job = Callable[[], Iterator[None] | None]
"""A disk operation. If it returns a generator, urgent jobs may run at each yield."""
Done = Callable[[Exception | None], None]


class Worker(Protocol):
    """Interface of the worker that runs the jobs of one directory."""

    def submit(self, job: Job, done: Done | None = None, *, urgent: bool = False) -> None:
        """Queue `job`. When it ends, call `done` with its error or None. Without `done`, log the error."""

    def hand_back(self, function: Callable[[], None]) -> None:
        """Call `function` on the submitting thread. May be called from any thread."""

    def close(self) -> None:
        """Finish all jobs. Jobs submitted later run within `submit`."""


class InlineWorker:
    """A worker that runs each job within `submit`, for tests, simulations and tools."""

    def submit(self, job: Job, done: Done | None = None, *, urgent: bool = False) -> None:
        error = run(job)
        if done is not None:
            done(error)
        elif error is not None:
            log_failure(error)

    def hand_back(self, function: Callable[[], None]) -> None:
        function()

    def close(self) -> None:
        """Do nothing, because no job is ever pending."""


class ThreadWorker:
    """A worker that runs jobs in a thread, which starts with the first job. `call_soon_threadsafe` is the
    event loop's method, or an equivalent function that runs a call on the submitting thread.
    """

    def __init__(self, name: str, call_soon_threadsafe: Callable[[Callable[[], None]], object]) -> None:
        self._name = name
        self._call_soon_threadsafe = call_soon_threadsafe
        self._urgent: deque[tuple[Job, Done | None]] = deque()
        self._jobs: deque[tuple[Job, Done | None]] = deque()
        self._tokens: SimpleQueue[bool] = SimpleQueue()
        """Messages that wake the thread: True for each job, False to end the thread."""
        self._thread: threading.Thread | None = None
        self._closed = False

    def submit(self, job: Job, done: Done | None = None, *, urgent: bool = False) -> None:
        if self._closed:
            self._do(job, done)
            return
        (self._urgent if urgent else self._jobs).append((job, done))
        self._tokens.put(True)
        if self._thread is None:
            # Use a daemon thread, because a hung disk must not prevent the process from exiting.
            self._thread = threading.Thread(target=self._run, name=self._name, daemon=True)
            self._thread.start()

    def hand_back(self, function: Callable[[], None]) -> None:
        # If the loop is already closed, no caller is waiting.
        with contextlib.suppress(RuntimeError):
            self._call_soon_threadsafe(function)

    def close(self) -> None:
        if self._thread is not None:
            self._tokens.put(False)
            self._thread.join()
            self._thread = None
        self._closed = True

    def _run(self) -> None:
        while self._tokens.get():
            # There may be no job for this token: urgent jobs can run during another job.
            if not self._run_urgent() and self._jobs:
                self._do(*self._jobs.popleft())
        while self._run_urgent() or self._jobs:
            if self._jobs:
                self._do(*self._jobs.popleft())

    def _run_urgent(self) -> bool:
        found = False
        while self._urgent:
            found = True
            self._do(*self._urgent.popleft())
        return found

    def _do(self, job: Job, done: Done | None) -> None:
        error = run(job, self._run_urgent)
        if done is not None:
            self.hand_back(lambda: done(error))
        elif error is not None:
            log_failure(error)


def run(job: Job, between: Callable[[], object] = lambda: None) -> Exception | None:
    """Run a job to completion, and call `between` at each of its yields. Return the job's error or None."""
    try:
        steps = job()
        if steps is not None:
            for _ in steps:
                between()
    except Exception as error:
        return error
    return None


def log_failure(error: Exception) -> None:
    """Log the error of a job for which no caller is waiting."""
    foreseen = isinstance(error, StorageError)
    logger.error("A log directory operation failed: %s", error, exc_info=None if foreseen else error)
