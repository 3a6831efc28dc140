"""Group commit of logs. The worker of each log directory flushes in rounds, and all requests that arrive
during one round share the next round.

fdatasync takes 0.1 to 10 ms, and the event loop never waits for it. All appends that arrived during the
previous round share the cost of one sync. The worker runs rounds before other jobs
(`storage.directories.directory_worker`).
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Final, Protocol

from kafka_compat.storage.errors import RefusedForNow, StorageError

if TYPE_CHECKING:
    from kafka_compat.storage.directories.disk import Disk
    from kafka_compat.storage.log.log import Log

log = logging.getLogger(__name__)

Callback = Callable[[Exception | None], None]

RETRY_S: Final = 1.0


class Flushing(Protocol):
    """Interface for flushing the logs of partitions."""

    def request(self, target: Log, callback: Callback) -> None:
        """Flush `target`, and then call `callback` on the event loop with the error, or None on success."""


class Flusher:
    """Group commit for the logs of one broker, in the workers of their directories."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._rounds: dict[Disk, _Rounds] = {}
        self._closed = False

    def request(self, target: Log, callback: Callback) -> None:
        """Flush `target`, and then call `callback` on the event loop with the error, or None on success.

        Failures due to a full disk or exhausted descriptors are retried every second. This is safe, because
        no sync of records has failed. A log that is being truncated is flushed after the truncation.
        """
        if self._closed:
            return
        rounds = self._rounds.get(target.disk)
        if rounds is None:
            rounds = self._rounds[target.disk] = _Rounds(self, target.disk, self._loop)
        rounds.request(target, callback)

    def close(self) -> None:
        """Ignore later flush requests."""
        self._closed = True


class _Rounds:
    def __init__(self, flusher: Flusher, disk: Disk, loop: asyncio.AbstractEventLoop) -> None:
        self._flusher = flusher
        self._disk = disk
        self._loop = loop
        self._pending: dict[Log, dict[Callback, None]] = {}
        """The callbacks of each log, in order of arrival."""
        self._running = False

    def request(self, target: Log, callback: Callback) -> None:
        self._pending.setdefault(target, {})[callback] = None
        if not self._running:
            self._running = True
            # Start the round in the next iteration of the loop, to include requests that are already waiting.
            self._loop.call_soon(self._start)

    def _start(self) -> None:
        batch, self._pending = self._pending, {}
        logs = [target for target in batch if not target.is_settling]
        errors: dict[Log, Exception] = {}
        self._disk.worker.submit(
            lambda: _flush_all(logs, errors), lambda _: self._finish(batch, errors), urgent=True
        )

    def _finish(self, batch: dict[Log, dict[Callback, None]], errors: dict[Log, Exception]) -> None:
        if self._pending:
            self._loop.call_soon(self._start)
        else:
            self._running = False
        again = self._flusher.request
        for target, callbacks in batch.items():
            error = errors.get(target)
            for callback in callbacks:
                if isinstance(error, RefusedForNow):
                    self._loop.call_later(RETRY_S, again, target, callback)
                elif error is None and target.is_settling and not target.closed:
                    target.truncations.when_none(partial(again, target, callback))
                else:
                    callback(error)


def _flush_all(logs: list[Log], errors: dict[Log, Exception]) -> None:
    for target in logs:
        try:
            target.flush()
        except StorageError as error:
            # Do not log the error, because the disk has already logged it.
            errors[target] = error
        except Exception as unexpected:
            log.exception("Could not flush %s-%d", target.topic, target.partition)
            errors[target] = unexpected
