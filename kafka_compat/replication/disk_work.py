"""Coroutines that wait for the callbacks of a log directory's worker."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from kafka_compat.storage.directories.directory_worker import Done


async def finished(begin: Callable[[Done], None]) -> Exception | None:
    """Call `begin` with a callback, and wait. Return the error that the callback gets (None: success)."""
    done: asyncio.Future[Exception | None] = asyncio.get_running_loop().create_future()

    def resolve(error: Exception | None) -> None:
        if not done.done():
            done.set_result(error)

    begin(resolve)
    return await done
