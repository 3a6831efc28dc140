"""Daemon threads for calls that may never return, such as calls to an HTTP server or a KDC."""

import asyncio
import contextlib
import threading
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")


async def in_daemon_thread(function: Callable[[], T]) -> T:
    """Return the result of a function, called in a daemon thread so that it cannot delay process exit."""
    return await _begin(function)


def _begin(function: Callable[[], T]) -> asyncio.Future[T]:
    loop = asyncio.get_running_loop()
    future: asyncio.Future[T] = loop.create_future()
    threading.Thread(target=_run, args=(function, loop, future), name="waiting", daemon=True).start()
    return future


def _run(function: Callable[[], T], loop: asyncio.AbstractEventLoop, future: asyncio.Future[T]) -> None:
    # Drop the result if the loop was closed before the function returned.
    with contextlib.suppress(RuntimeError):
        try:
            result = function()
        except Exception as error:
            loop.call_soon_threadsafe(_fail, future, error)
        else:
            loop.call_soon_threadsafe(_succeed, future, result)
    # Delete the future to break a reference cycle: the traceback of its error refers to this frame.
    del future


def _succeed(future: asyncio.Future[T], result: T) -> None:
    if not future.done():
        future.set_result(result)


def _fail(future: asyncio.Future[T], error: Exception) -> None:
    if not future.done():
        future.set_exception(error)
