"""Background tasks: notification of their end, and restarts."""

from __future__ import annotations

import asyncio
import logging

import pytest

from kafka_compat.tasks import RESTART_S_MAX, RESTART_S_MIN, CannotGoOn, Tasks, asked_for_all


class Pauses:
    """Replaces the delays before restarts, without waiting."""

    def __init__(self) -> None:
        self.taken_s: list[float] = []

    async def __call__(self, pause_s: float) -> None:
        self.taken_s.append(pause_s)


async def test_a_failure_is_logged_with_the_name_of_the_task(caplog: pytest.LogCaptureFixture) -> None:
    async def work() -> None:
        raise ZeroDivisionError("division by zero")

    tasks = Tasks()
    await tasks.spawn("counting", work).wait()
    [record] = caplog.records
    assert (record.levelno, record.getMessage()) == (logging.ERROR, 'Task "counting" failed')
    assert record.exc_info is not None and isinstance(record.exc_info[1], ZeroDivisionError)
    assert len(tasks) == 0


async def test_restarted_tasks_run_again_after_growing_delays() -> None:
    pauses, failures = Pauses(), iter(range(9))

    async def work() -> None:
        for _ in failures:
            raise OSError

    await Tasks(sleep=pauses).spawn("pumping", work, restarts=True).wait()
    assert pauses.taken_s[:3] == [RESTART_S_MIN, 2 * RESTART_S_MIN, 4 * RESTART_S_MIN]
    assert pauses.taken_s[-1] == RESTART_S_MAX
    assert len(pauses.taken_s) == 9


async def test_a_fatal_failure_stops_the_broker(caplog: pytest.LogCaptureFixture) -> None:
    ended: list[bool] = []

    async def work() -> None:
        raise CannotGoOn("/feature has features that nobody knows")

    tasks = Tasks(lambda: ended.append(True))
    await tasks.spawn("following", work, restarts=True).wait()
    assert ended == [True]
    assert [record.levelno for record in caplog.records] == [logging.CRITICAL]


async def test_closing_cancels_the_most_recent_tasks_first() -> None:
    ends: list[str] = []
    tasks = Tasks()

    async def work(name: str) -> None:
        try:
            await asyncio.Event().wait()
        finally:
            await asyncio.sleep(0)  # the cleanup takes one more iteration of the event loop
            ends.append(name)

    for name in ("first", "second", "third"):
        tasks.spawn(name, lambda name=name: work(name), restarts=True)  # type: ignore[misc]
    await asyncio.sleep(0)  # the tasks begin
    await tasks.close()
    assert ends == ["third", "second", "first"]
    with pytest.raises(RuntimeError, match="its owner is closed"):
        tasks.spawn("fourth", lambda: work("fourth"))


async def test_finishing_waits_for_all_tasks() -> None:
    done: list[bool] = []
    tasks = Tasks()

    async def work() -> None:
        await asyncio.sleep(0)  # the work takes one more iteration of the event loop
        done.append(True)

    tasks.spawn("closing", work)
    await tasks.finish()
    assert done == [True]


async def test_calls_that_return_at_once_yield_to_the_event_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    loop = asyncio.get_running_loop()
    now_s = 0.0
    monkeypatch.setattr(loop, "time", lambda: now_s)
    busy_s: list[float] = []

    async def ask(item: int) -> int:
        nonlocal now_s
        now_s += 0.00002
        return -item

    async def watch() -> None:
        while True:
            began_s = now_s
            await asyncio.sleep(0)  # measures one pass of the event loop
            busy_s.append(now_s - began_s)

    watching = asyncio.ensure_future(watch())
    assert await asked_for_all(range(10_000), ask, 100) == [-item for item in range(10_000)]
    watching.cancel()
    assert max(busy_s) <= 0.01, "one turn in each pass of the loop, not one for each of 100 workers"
