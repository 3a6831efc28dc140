"""Cooperatively scheduled work without an event loop."""

from __future__ import annotations

from typing import TypeVar

from kafka_compat.long_work import Steps

T = TypeVar("T")


def result_of(steps: Steps[T]) -> T:
    """Run all steps, including work for other threads, in this thread, and return the result."""
    try:
        job = next(steps)
        while True:
            job = next(steps) if job is None else steps.send(job())
    except StopIteration as stop:
        found: T = stop.value
        return found
