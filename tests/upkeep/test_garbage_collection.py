"""Garbage collection in a broker: reference cycles are collected, and no collection examines many objects."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Iterator

import pytest

from kafka_compat.upkeep.garbage import INTERVAL_MS, PATIENCE_MS, GarbageCollection
from tests.support.collecting import as_in_a_broker

EXAMINED_MAX = 60_000
"""The largest number of objects that one collection may examine, about 6 ms. Objects are counted, because
times vary with the machine."""


class Knot:
    """A reference cycle."""

    def __init__(self) -> None:
        self.itself = self


def old_garbage() -> weakref.ref[Knot]:
    """Create a reference cycle that has left the youngest generations."""
    knot = Knot()
    gc.collect(0)
    gc.collect(1)
    return weakref.ref(knot)


class Examined:
    """A gc callback that records the largest number of objects that a collection examined."""

    def __init__(self) -> None:
        self.most = 0

    def __call__(self, phase: str, info: dict[str, int]) -> None:
        if phase == "start":
            generations = range(info["generation"] + 1)
            self.most = max(self.most, sum(len(gc.get_objects(generation)) for generation in generations))


@pytest.fixture
def collecting() -> Iterator[None]:
    with as_in_a_broker():
        yield


@pytest.mark.usefixtures("collecting")
def test_old_garbage_is_collected_when_the_event_loop_is_idle() -> None:
    garbage = GarbageCollection(0)
    left = old_garbage()
    garbage.look(INTERVAL_MS - 1, is_idle=True)
    garbage.look(INTERVAL_MS, is_idle=False)
    assert left() is not None
    garbage.look(INTERVAL_MS + 1000, is_idle=True)
    assert left() is None


@pytest.mark.usefixtures("collecting")
def test_old_garbage_is_collected_even_if_the_event_loop_is_never_idle() -> None:
    garbage = GarbageCollection(0)
    left = old_garbage()
    garbage.look(INTERVAL_MS + PATIENCE_MS, is_idle=False)
    assert left() is None


@pytest.mark.parametrize("loaded", [0, 1_000_000])
def test_garbage_collections_stay_short_however_many_objects_are_created(loaded: int) -> None:
    """The objects are kept, as after the creation of 100,000 partitions. `loaded` objects exist before."""
    before_start = [[number] for number in range(loaded)]
    with as_in_a_broker():
        garbage = GarbageCollection(0)
        kept = []
        examined = Examined()
        gc.callbacks.append(examined)
        try:
            for second in range(100):
                kept.append([[number] for number in range(20_000)])
                garbage.look(second * 1000, is_idle=True)
        finally:
            gc.callbacks.remove(examined)
        assert 0 < examined.most < EXAMINED_MAX
        assert gc.get_freeze_count() > 1_000_000 + len(before_start)
