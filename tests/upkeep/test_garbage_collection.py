"""Garbage collection in a broker: reference cycles are collected, and no collection examines many objects."""

from __future__ import annotations

import asyncio
import gc
import itertools
import weakref
from collections.abc import Iterator

import pytest

from kafka_compat.long_work import TURNS_TO_COLLECT, LongWork, Steps
from kafka_compat.upkeep.garbage import INTERVAL_MS, PATIENCE_MS, GarbageCollection, collect_young
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


def replaced(kept: list[list[int]]) -> None:
    """Replace each object by a new one, as when states are stored. The automatic collector does not notice,
    because as many objects are freed as are created.
    """
    for position, old in enumerate(kept):
        kept[position] = [*old]


def test_garbage_collections_stay_short_if_new_objects_replace_old_ones() -> None:
    kept = [[[number] for number in range(20_000)] for _ in range(10)]
    with as_in_a_broker():
        garbage = GarbageCollection(0)
        examined = Examined()
        gc.callbacks.append(examined)
        try:
            for second, some in enumerate(kept):
                replaced(some)
                garbage.look(second * 1000, is_idle=True)
            gc.collect()
        finally:
            gc.callbacks.remove(examined)
    assert 20_000 < examined.most < EXAMINED_MAX


async def test_long_work_that_replaces_many_objects_is_interrupted_by_short_collections() -> None:
    kept = [[[number] for number in range(1_000)] for _ in range(300)]
    turns_s = itertools.count()

    def steps() -> Steps[None]:
        for some in kept:
            replaced(some)
            yield None

    # By this clock, each step is one turn.
    long_work = LongWork(asyncio.get_running_loop(), lambda: float(next(turns_s)))
    long_work.collect = collect_young
    with as_in_a_broker():
        examined = Examined()
        gc.callbacks.append(examined)
        try:
            await long_work.finish(steps())
            gc.collect()
        finally:
            gc.callbacks.remove(examined)
    assert TURNS_TO_COLLECT * 1_000 < examined.most < EXAMINED_MAX
