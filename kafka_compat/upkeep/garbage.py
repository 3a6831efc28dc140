"""Garbage collection in short runs, for objects that reference counting does not free.

Reference counting frees most objects (tests/memory). Reference cycles, such as a stored exception with its
traceback or an asyncio transport, are freed by the garbage collector, which blocks the event loop for about
10 ms per 100,000 examined objects.

Rules
1. Objects loaded during startup are frozen when the broker is ready, and are never examined.
2. The automatic collector runs often (THRESHOLDS), so that few new objects are examined at once.
3. If more than SURVIVORS_MAX objects survive a full collection, for example because partitions were added,
   they are frozen as well, so that the next run is short again.
4. A full collection also runs every minute, when the loop is idle.
5. The automatic collector counts created objects minus freed ones. It never runs if new objects replace as
   many old ones, for example stored states; then the next collection would examine all of them at once.
   Therefore, a full collection also runs if there are more than YOUNG_MAX objects in the youngest generation,
   which is checked each second, and regularly during long-running work.
"""

import gc
from typing import Any, Final

THRESHOLDS: Final = (5_000, 1, 0)
"""Arguments of gc.set_threshold: the number of new objects that triggers a collection of the youngest
generation and, for each older generation, one less than the number of collections of the next younger
generation that triggers a collection. A full collection examines about 30,000 new objects.
"""
SURVIVORS_MAX: Final = 10_000
YOUNG_MAX: Final = 2 * THRESHOLDS[0]
INTERVAL_MS: Final = 60_000
PATIENCE_MS: Final = 30_000
"""Maximum time in ms to wait until the event loop is idle."""


class GarbageCollection:
    """Garbage collection of a broker's process."""

    def __init__(self, now_ms: int) -> None:
        """In all methods of this class, `now_ms` is a monotonic time in milliseconds."""
        self._due_ms = now_ms + INTERVAL_MS

    def start(self) -> None:
        """Run the automatic collector (rule 2) and freeze survivors (rule 3) until `stop` is called.

        Call this after gc.freeze(). Up to Python 3.13, the automatic collector postpones full collections
        until new objects are a quarter of the survivors of the last full collection. gc.freeze() does not
        reset the number of survivors, but a full collection of the few unfrozen objects does.
        """
        gc.collect()
        gc.set_threshold(*THRESHOLDS)
        gc.callbacks.append(_freeze_survivors)

    def stop(self) -> None:
        gc.callbacks.remove(_freeze_survivors)

    def look(self, now_ms: int, *, is_idle: bool) -> None:
        """Run a full collection if one is due. Call this about once per second."""
        if now_ms >= self._due_ms and (is_idle or now_ms >= self._due_ms + PATIENCE_MS):
            self._due_ms = now_ms + INTERVAL_MS
            gc.collect()
        else:
            collect_young()


def collect_young() -> None:
    """Run a full collection if the automatic collector has not run for too long (rule 5)."""
    if gc.isenabled() and len(gc.get_objects(0)) > YOUNG_MAX:
        gc.collect()


def _freeze_survivors(phase: str, info: dict[str, Any]) -> None:
    if phase == "stop" and info["generation"] == 2 and len(gc.get_objects(2)) > SURVIVORS_MAX:
        gc.freeze()
