"""Garbage collection as in a broker, for tests of this process."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager

from kafka_compat.upkeep.garbage import GarbageCollection


@contextmanager
def as_in_a_broker() -> Iterator[None]:
    """Freeze all existing objects, and collect new ones as often as a broker does."""
    threshold = gc.get_threshold()
    gc.collect()
    gc.freeze()
    garbage = GarbageCollection(0)
    garbage.start()
    try:
        yield
    finally:
        garbage.stop()
        gc.set_threshold(*threshold)
        gc.unfreeze()
