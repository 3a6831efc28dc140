"""Measurement of a request's working time, excluding the time it spends waiting.

This module is not compiled, because interpreted Python code is the safer way to run a coroutine step by step.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Generator
from typing import Any, Protocol


class Timed(Protocol):
    """A request whose working time is measured."""

    def resume(self) -> None: ...

    def rest(self) -> None: ...


class _Driven:
    """An awaitable that runs a coroutine and measures the working time of its steps."""

    __slots__ = ("_coroutine", "_ctx")

    def __init__(self, ctx: Timed, coroutine: Coroutine[Any, Any, Any]) -> None:
        self._ctx = ctx
        self._coroutine = coroutine

    def __await__(self) -> Generator[Any, Any, Any]:
        return _steps(self._ctx, self._coroutine)


def timed(function: Callable[[Any, Any], Any], ctx: Any, request: Any) -> Any:
    """Call a handler, and measure its working time, including that of a returned coroutine or generator."""
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
