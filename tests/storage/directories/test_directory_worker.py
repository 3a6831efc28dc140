"""The worker of a log directory: job order, urgent jobs, and delivery of results to the event loop."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from queue import SimpleQueue

import pytest

from kafka_compat.storage.directories.directory_worker import InlineWorker, ThreadWorker, Worker


class Loop:
    """Stand-in for the event loop: queues the callbacks and runs them on request."""

    def __init__(self) -> None:
        self._calls: SimpleQueue[Callable[[], None]] = SimpleQueue()

    def call_soon_threadsafe(self, function: Callable[[], None]) -> None:
        self._calls.put(function)

    def run_one(self) -> None:
        self._calls.get(timeout=10)()


@pytest.fixture
def loop() -> Loop:
    return Loop()


@pytest.fixture
def worker(loop: Loop) -> Iterator[ThreadWorker]:
    worker = ThreadWorker("test", loop.call_soon_threadsafe)
    yield worker
    worker.close()


def test_jobs_run_in_order_in_a_single_worker_thread(worker: ThreadWorker, loop: Loop) -> None:
    ran: list[tuple[int, int]] = []
    told: list[tuple[Exception | None, int]] = []
    for number in range(50):
        worker.submit(
            lambda number=number: ran.append((number, threading.get_ident())),  # type: ignore[misc]
            lambda error: told.append((error, threading.get_ident())),
        )
    for _ in range(50):
        loop.run_one()
    assert [number for number, _ in ran] == list(range(50))
    assert len({thread for _, thread in ran}) == 1
    assert ran[0][1] != threading.get_ident()
    assert told == [(None, threading.get_ident())] * 50


def test_urgent_jobs_run_first_and_between_the_steps_of_a_long_job(worker: ThreadWorker, loop: Loop) -> None:
    said: list[str] = []
    begun, go_on = threading.Event(), threading.Event()

    def long() -> Iterator[None]:
        said.append("long begins")
        begun.set()
        assert go_on.wait(10)
        yield
        said.append("long goes on")
        yield
        said.append("long ends")

    worker.submit(long)
    worker.submit(lambda: said.append("upkeep"), lambda _: said.append("heard"))
    assert begun.wait(10)
    worker.submit(lambda: said.append("urgent"), urgent=True)
    go_on.set()
    loop.run_one()
    assert said == ["long begins", "urgent", "long goes on", "long ends", "upkeep", "heard"]


@pytest.mark.parametrize("new", [lambda loop: InlineWorker(), lambda loop: ThreadWorker("test", loop)])
def test_a_failed_job_is_reported_and_does_not_stop_the_worker(
    new: Callable[[Callable[[Callable[[], None]], None]], Worker], loop: Loop
) -> None:
    worker = new(loop.call_soon_threadsafe)
    told: list[str] = []

    def fails() -> Iterator[None]:
        yield
        raise OSError("no")

    done = threading.Event()
    worker.submit(fails, lambda error: told.append(str(error)))
    worker.submit(fails)
    worker.submit(done.set)
    assert done.wait(10)
    if not told:
        loop.run_one()
    assert told == ["no"]
    worker.close()


def test_closing_finishes_all_jobs_and_later_jobs_run_in_the_caller(worker: ThreadWorker) -> None:
    ran: list[int] = []
    for number in range(20):
        worker.submit(lambda number=number: ran.append(number))  # type: ignore[misc]
    worker.close()
    assert ran == list(range(20))
    worker.submit(lambda: ran.append(threading.get_ident()))
    assert ran[-1] == threading.get_ident()
