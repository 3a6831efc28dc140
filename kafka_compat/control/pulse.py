"""Wait for conditions that depend on requests or coordinator timers. A condition is checked after each
response, timer and metadata change, not at intervals.
"""

import asyncio
from collections.abc import Callable

from kafka_compat.http.routes import Answer, BadCall, Call, natural

_TIMEOUT_MS = 10_000
_TIMED_OUT = 408
TIMEOUT = {"timeout_ms": f"integer: timeout in milliseconds (default: {_TIMEOUT_MS})"}
"""Query parameter of all routes that wait."""


class Pulse:
    """Event that wakes waiters after each response, timer, or metadata change."""

    def __init__(self) -> None:
        self._waiting: list[asyncio.Future[None]] = []

    def beat(self, _: object = None) -> None:
        """Wake all waiters, so that they check their conditions."""
        if self._waiting:
            waiting, self._waiting = self._waiting, []
            for future in waiting:
                if not future.done():
                    future.set_result(None)

    async def until(self, is_so: Callable[[], bool], timeout_ms: int) -> bool:
        """Wait until `is_so()` is true, and return whether it became true within `timeout_ms`."""
        loop = asyncio.get_running_loop()
        deadline_s = loop.time() + timeout_ms / 1000
        while not is_so():
            future = loop.create_future()
            self._waiting.append(future)
            timer = loop.call_at(deadline_s, future.cancel)
            try:
                await future
            except asyncio.CancelledError:
                if loop.time() < deadline_s:
                    raise
                return is_so()
            finally:
                timer.cancel()
        return True

    async def answer(
        self,
        call: Call,
        is_so: Callable[[], bool],
        describe: Callable[[], Answer],
        late: Callable[[int], str],
    ) -> Answer:
        """Wait until `is_so()` is true, and return `describe()`. Raises BadCall, with status 408 and the text
        from `late`, if this takes longer than the call's timeout_ms.
        """
        timeout_ms = natural(call.query.get("timeout_ms", str(_TIMEOUT_MS)), "timeout_ms")
        if await self.until(is_so, timeout_ms):
            return describe()
        raise BadCall(late(timeout_ms), _TIMED_OUT)
