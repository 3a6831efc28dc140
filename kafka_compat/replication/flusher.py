"""Group commit: one thread makes logs durable, and whoever asks meanwhile shares the next round.

fdatasync takes 0.1 to 10 ms; the event loop never waits for it. While one round runs, requests collect; the
next round serves them all, so the cost of a sync is shared by every append that arrived during the one
before.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

from storage.errors import DiskFull
from storage.log import Log

log = logging.getLogger(__name__)

Callback = Callable[[Exception | None], None]

FULL_DISK_RETRY_S = 1.0


class Flusher:
    """Flushes logs of one broker in a thread of its own."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._pending: dict[Log, set[Callback]] = {}
        self._running = False
        self._closed = False
        self._executor: ThreadPoolExecutor | None = None

    def request(self, target: Log, callback: Callback) -> None:
        """Flush what `target` holds now, then call `callback(error or None)` on the loop.

        While the disk is full the flush is tried again every second: what failed was no sync of records.
        """
        if self._closed:
            return
        self._pending.setdefault(target, set()).add(callback)
        if not self._running:
            self._running = True
            # Not at once: appends that are already waiting in the loop join this round.
            self._loop.call_soon(self._start_round)

    def run(self, job: Callable[[], object]) -> asyncio.Future[None]:
        """Do other slow work on the disk between rounds, such as a checkpoint; a failure is logged. Who must
        know when it is done may await it.
        """
        return self._loop.run_in_executor(self._thread(), _guarded, job)

    def _thread(self) -> ThreadPoolExecutor:
        if self._executor is None:
            self._executor = ThreadPoolExecutor(max_workers=1, thread_name_prefix="log-flusher")
        return self._executor

    def _start_round(self) -> None:
        batch, self._pending = self._pending, {}
        future = self._loop.run_in_executor(self._thread(), _flush_all, list(batch))
        future.add_done_callback(lambda done: self._finish(batch, done.result()))

    def _finish(self, batch: dict[Log, set[Callback]], errors: dict[Log, Exception]) -> None:
        if self._pending:
            self._loop.call_soon(self._start_round)
        else:
            self._running = False
        for target, callbacks in batch.items():
            error = errors.get(target)
            for callback in callbacks:
                if isinstance(error, DiskFull):
                    self._loop.call_later(FULL_DISK_RETRY_S, self.request, target, callback)
                else:
                    callback(error)

    def close(self) -> None:
        self._closed = True
        if self._executor is not None:
            self._executor.shutdown(wait=True)


def _flush_all(logs: list[Log]) -> dict[Log, Exception]:
    errors: dict[Log, Exception] = {}
    for target in logs:
        try:
            target.flush()
        except DiskFull as error:
            errors[target] = error
        except Exception as error:
            log.exception("flushing %s-%d failed", target.topic, target.partition)
            errors[target] = error
    return errors


def _guarded(job: Callable[[], object]) -> None:
    try:
        job()
    except Exception:
        log.exception("work on the log directories failed")
