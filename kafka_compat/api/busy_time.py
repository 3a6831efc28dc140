"""Measurement of the working time of a request, which excludes the time that it waits.

This module is not compiled, because running another coroutine step by step is safer in Python.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Generator
from typing import Any, Protocol


class Timed(Protocol):
    """A request whose working time is measured."""

    def resume(self) -> None: ...

    def rest(self) -> None: ...


class _Driven:
    """An awaitable that runs a coroutine and measures its steps."""

    __slots__ = ("_coroutine", "_ctx")

    def __init__(self, ctx: Timed, coroutine: Coroutine[Any, Any, Any]) -> None:
        self._ctx = ctx
        self._coroutine = coroutine

    def __await__(self) -> Generator[Any, Any, Any]:
        return _steps(self._ctx, self._coroutine)


def timed(function: Callable[[Any, Any], Any], ctx: Any, request: Any) -> Any:
    """Call the handler, and measure the working time of the call and of its steps or coroutine."""
    try:
        response = function(ctx, request)
    finally:
        ctx.rest()
    # Check for coroutines first, because a compiled coroutine also looks like a generator.
    if isinstance(response, Coroutine):
        return _timed_coroutine(ctx, response)
    if isinstance(response, Generator):
        return _steps(ctx, response)
    return response


async def _timed_coroutine(ctx: Timed, coroutine: Coroutine[Any, Any, Any]) -> Any:
    return await _Driven(ctx, coroutine)


def _steps(
    ctx: Timed, inner: Generator[Any, Any, Any] | Coroutine[Any, Any, Any]
) -> Generator[Any, Any, Any]:
    value: Any = None
    thrown: BaseException | None = None
    while True:
        ctx.resume()
        try:
            out = inner.send(value) if thrown is None else inner.throw(thrown)
        except StopIteration as end:
            return end.value
        finally:
            ctx.rest()
            # Break a reference cycle: if `inner` raises the exception again, its traceback refers to this
            # frame.
            value = thrown = None
        try:
            value = yield out
        except BaseException as error:
            thrown = error
