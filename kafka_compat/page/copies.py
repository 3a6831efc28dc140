"""Background copies of topics in this process, and their progress."""

import asyncio
import logging
from collections import deque
from collections.abc import Awaitable, Callable
from typing import Any, Final

from kafka_compat.http.routes import BadCall
from kafka_compat.metrics.cluster_view import NoBrokerRuns
from kafka_compat.search.source import Unreadable
from kafka_compat.storage.errors import StorageError

log = logging.getLogger(__name__)

_REMEMBERED: Final = 20


class Copy:
    """A copy of a topic: in progress, completed or failed."""

    def __init__(self, source: str, target: str) -> None:
        self.source = source
        self.target = target
        self.records = 0
        self.done = 0
        """Number of source offsets copied so far."""
        self.total = 0
        self.state = "in progress"
        """`in progress`, `done` or `failed`."""
        self.problem: str | None = None

    def as_data(self) -> dict[str, Any]:
        return dict(vars(self))


class Copies:
    """The most recent copies of topics in this process. `close` cancels copies in progress."""

    def __init__(self) -> None:
        self.all: deque[Copy] = deque(maxlen=_REMEMBERED)
        """The remembered copies, newest first."""
        self._tasks: set[asyncio.Task[None]] = set()

    def begin(self, source: str, target: str, work: Callable[[Copy], Awaitable[None]]) -> Copy:
        """Start a copy in the background. `work` copies the records, and updates the progress."""
        copy = Copy(source, target)
        self.all.appendleft(copy)
        task = asyncio.ensure_future(self._run(copy, work))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return copy

    async def close(self) -> None:
        """Cancel all copies in progress."""
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _run(self, copy: Copy, work: Callable[[Copy], Awaitable[None]]) -> None:
        try:
            await work(copy)
        except asyncio.CancelledError:
            copy.state, copy.problem = "failed", "the broker stopped"
            raise
        except NoBrokerRuns:
            copy.state, copy.problem = "failed", "the broker stopped"
        except (BadCall, Unreadable, StorageError, OSError) as error:
            copy.state, copy.problem = "failed", str(error)
            log.warning("Could not copy topic %s to %s: %s", copy.source, copy.target, error)
        except Exception as error:
            copy.state, copy.problem = "failed", repr(error)
            log.exception("Could not copy topic %s to %s", copy.source, copy.target)
        else:
            copy.state = "done"
