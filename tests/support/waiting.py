"""Waiting in asynchronous tests. Synchronous tests use `tests.support.process.wait_until`."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

PATIENCE_S = 10.0


async def until(
    condition: Callable[[], object | Awaitable[object]],
    timeout_s: float = PATIENCE_S,
    interval_s: float = 0.01,
) -> None:
    """Poll `condition`, a function or a coroutine function, until it is true. Raises TimeoutError.

    Use it for states that cause no event.
    """
    async with asyncio.timeout(timeout_s):
        while True:
            found = condition()
            if isinstance(found, Awaitable):
                found = await found
            if found:
                return
            await asyncio.sleep(interval_s)  # polling interval
