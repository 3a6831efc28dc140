"""The order in which a broker writes topics to the store."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager

from kafka_compat.cluster.topic_writes import TopicWrites


class Writers:
    """Tasks that each hold a context until they are told to end. `inside` lists those in their context."""

    def __init__(self) -> None:
        self.writes = TopicWrites()
        self.inside: list[str] = []
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._ends: dict[str, asyncio.Event] = {}

    async def begin(self, name: str, context: Callable[[], AbstractAsyncContextManager[None]]) -> None:
        self._ends[name] = asyncio.Event()
        self._tasks[name] = asyncio.create_task(self._hold(name, context))
        await self.settle()

    async def _hold(self, name: str, context: Callable[[], AbstractAsyncContextManager[None]]) -> None:
        async with context():
            self.inside.append(name)
            try:
                await self._ends[name].wait()
            finally:
                self.inside.remove(name)

    async def topic(self, name: str) -> None:
        await self.begin(name, lambda: self.writes.of(name.partition("#")[0]))

    async def end(self, name: str, *, cancel: bool = False) -> None:
        if cancel:
            self._tasks[name].cancel()
        self._ends[name].set()
        await self.settle()

    @staticmethod
    async def settle() -> None:
        for _ in range(10):
            await asyncio.sleep(0)  # lets the tasks run until they wait


async def test_different_topics_are_written_at_the_same_time() -> None:
    writers = Writers()
    for name in ("a", "b", "c.d"):
        await writers.topic(name)
    assert writers.inside == ["a", "b", "c.d"]


async def test_topics_with_equal_or_colliding_names_are_written_one_after_the_other() -> None:
    writers = Writers()
    for name in ("a.b", "a_b", "a.b#again"):
        await writers.topic(name)
    assert writers.inside == ["a.b"]
    await writers.end("a.b", cancel=True)
    assert writers.inside == ["a_b"]
    await writers.end("a_b")
    assert writers.inside == ["a.b#again"]


async def test_alone_waits_for_writes_and_delays_later_writes() -> None:
    writers = Writers()
    await writers.topic("a")
    await writers.begin("snapshot", writers.writes.alone)
    await writers.begin("fork", writers.writes.alone)
    await writers.topic("b")
    assert writers.inside == ["a"]
    await writers.end("a")
    assert writers.inside == ["snapshot"]
    await writers.end("snapshot")
    assert len(writers.inside) == 1
    for name in ("fork", "b"):
        await writers.end(name)
    await writers.topic("c")
    assert writers.inside == ["c"]


async def test_a_cancelled_wait_to_be_alone_lets_others_write() -> None:
    writers = Writers()
    await writers.topic("a")
    await writers.begin("snapshot", writers.writes.alone)
    await writers.end("snapshot", cancel=True)
    await writers.topic("b")
    assert writers.inside == ["a", "b"]
