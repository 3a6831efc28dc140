"""Garbage collection in short, scheduled runs, for objects that reference counting does not free.

Short-lived objects are freed by reference counting (tests/memory). Reference cycles, such as a stored
exception with its traceback or an asyncio transport, are freed by the garbage collector. It blocks the event
loop for about 10 ms per 100,000 objects examined.

Rules
1. The automatic collector examines only the youngest objects (THRESHOLDS). Objects loaded during startup are
   frozen when the broker is ready and never examined.
2. Surviving objects are examined again before their number grows large (MIDDLE_MAX).
3. All objects are examined every minute when the loop is idle. If more than OLDER_MAX objects survive, such
   as those of new partitions, they are frozen as well, so the next run is short again.
"""

from __future__ import annotations

import gc
from typing import Final

THRESHOLDS: Final = (5_000, 1_000_000, 1_000_000)
"""The number of new objects between two automatic collections. This module collects older objects."""
MIDDLE_MAX: Final = 10
"""The number of automatic collections before their survivors (50,000 at most) are examined."""
OLDER_MAX: Final = 50_000
INTERVAL_MS: Final = 60_000
PATIENCE_MS: Final = 30_000
"""Maximum wait for an idle moment."""


class GarbageCollection:
    """The garbage collections of a broker's process, except collections of the youngest objects."""

    def __init__(self, now_ms: int) -> None:
        """`now_ms` is monotonic, as in all methods."""
        self._due_ms = now_ms + INTERVAL_MS
        self._older = 0
        """The maximum number of objects that a full collection may examine."""

    def look(self, now_ms: int, *, is_idle: bool) -> None:
        """Run the collections that are due. Called about every second."""
        survived = gc.get_count()[1]
        if survived >= MIDDLE_MAX:
            gc.collect(1)
            self._older += survived * THRESHOLDS[0]
        is_due = now_ms >= self._due_ms and (is_idle or now_ms >= self._due_ms + PATIENCE_MS)
        if is_due or self._older > 2 * OLDER_MAX:
            self._collect_all(now_ms)

    def _collect_all(self, now_ms: int) -> None:
        gc.collect()
        self._due_ms = now_ms + INTERVAL_MS
        self._older = len(gc.get_objects(2))
        if self._older > OLDER_MAX:
            gc.freeze()
            self._older = 0
