"""Garbage that is left to the collector is collected, and no collection holds the event loop up for long."""

from __future__ import annotations

import gc
import time
import weakref
from collections.abc import Iterator

import pytest

from kafka_compat.upkeep.garbage import INTERVAL_MS, PATIENCE_MS, THRESHOLDS, GarbageCollection

STALL_S_MAX = 0.050
"""What a single request may hold others up for, too (docs/design/hostile.md)."""


class Knot:
    """Part of a reference cycle."""

    def __init__(self) -> None:
        self.itself = self


def old_garbage() -> weakref.ref[Knot]:
    """A cycle that lived long enough to leave the youngest generations."""
    knot = Knot()
    gc.collect(0)
    gc.collect(1)
    return weakref.ref(knot)


class Pauses:
    """How long collections took, in CPU time."""

    def __init__(self) -> None:
        self.longest_s = 0.0
        self._began_s = 0.0

    def __call__(self, phase: str, info: object) -> None:
        if phase == "start":
            self._began_s = time.process_time()
        else:
            self.longest_s = max(self.longest_s, time.process_time() - self._began_s)


@pytest.fixture(autouse=True)
def as_in_a_broker() -> Iterator[None]:
    threshold = gc.get_threshold()
    gc.collect()
    gc.freeze()
    gc.set_threshold(*THRESHOLDS)
    yield
    gc.set_threshold(*threshold)
    gc.unfreeze()


def test_old_garbage_is_collected_when_the_event_loop_is_idle() -> None:
    garbage = GarbageCollection(0)
    left = old_garbage()
    garbage.look(INTERVAL_MS - 1, is_idle=True)
    garbage.look(INTERVAL_MS, is_idle=False)
    assert left() is not None
    garbage.look(INTERVAL_MS + 1000, is_idle=True)
    assert left() is None


def test_old_garbage_is_collected_even_if_the_event_loop_is_never_idle() -> None:
    garbage = GarbageCollection(0)
    left = old_garbage()
    garbage.look(INTERVAL_MS + PATIENCE_MS, is_idle=False)
    assert left() is None


def test_collections_stay_short_however_many_objects_are_created() -> None:
    """As where 100,000 partitions are created, which stay."""
    garbage = GarbageCollection(0)
    kept = []
    pauses = Pauses()
    gc.callbacks.append(pauses)
    try:
        for second in range(100):
            kept.append([[number] for number in range(20_000)])
            garbage.look(second * 1000, is_idle=True)
    finally:
        gc.callbacks.remove(pauses)
    assert 0 < pauses.longest_s < STALL_S_MAX
    assert gc.get_freeze_count() > 1_000_000
