"""Timestamps of aiokafka's records: its C extension asks a clock that nothing can stand in for."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator
from typing import Any


@contextlib.contextmanager
def stamped() -> Iterator[None]:
    """Where aiokafka is installed, its producers stamp by time.time."""
    try:
        from aiokafka.producer.message_accumulator import BatchBuilder
    except ImportError:
        yield
        return
    real = BatchBuilder.append

    def append(self: Any, *, timestamp: int | None, **named: Any) -> Any:
        if timestamp is None:
            timestamp = int(time.time() * 1000)
        return real(self, timestamp=timestamp, **named)

    BatchBuilder.append = append
    try:
        yield
    finally:
        BatchBuilder.append = real
