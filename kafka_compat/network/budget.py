"""Memory budgets that all connections of a server share: one for requests that are incomplete or not yet
served, and one for responses that are not yet sent.

Rules of the request budget
1. An incomplete frame that would exceed the budget waits in a queue, and the broker does not read from its
   connection. Small requests (up to FIRST_BYTES) never wait.
2. The queue is first in, first out. When the budget is used up, only the frame at the head of the queue may
   grow, until it is complete. Incomplete frames that fill the budget therefore never block each other, and at
   most one frame exceeds the budget.
3. While the budget is used up (`short`), connections receive little data at a time, so that other bytes stay
   in the sockets' receive buffers, and connections do not keep buffers for reuse.

Rules of the response budget
4. While unsent responses exceed the budget (`short`), a connection with unsent responses is not served.
   Clients that do not read their responses therefore do not delay clients that do.
5. At twice the budget (`full`), no connection is served. `relieve` then closes connections that have read
   none of their responses for STUCK_S, those with the most unsent bytes first.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final, Protocol

STUCK_S: Final = 0.15
"""Time in seconds after which rule 5 applies to a client that does not read its responses."""


class WantsMemory(Protocol):
    """An incomplete frame that waits for memory."""

    @property
    def wants_bytes(self) -> int: ...

    def grant_memory(self) -> None:
        """Allocate the requested memory, and report it by calling `RequestBudget.change`."""


class RequestBudget:
    """The memory budget of requests (rules 1 to 3)."""

    def __init__(self, limit_bytes: int) -> None:
        self.limit_bytes = limit_bytes
        self.used_bytes = 0
        self.short = False
        self.favoured: WantsMemory | None = None
        self._line: dict[WantsMemory, None] = {}
        self._serving_line = False

    @property
    def someone_waits(self) -> bool:
        return bool(self._line)

    @property
    def keeps_spares(self) -> bool:
        """Whether enough of the budget is free to keep buffers for reuse."""
        return self.used_bytes * 2 <= self.limit_bytes

    def change(self, by_bytes: int) -> None:
        """Count bytes that a connection has allocated or, if negative, released."""
        self.used_bytes += by_bytes
        self.short = self.used_bytes >= self.limit_bytes
        if by_bytes < 0 and self._line:
            self._serve_line()

    def ask(self, who: WantsMemory) -> bool:
        """Return whether `who` may grow now. If not, `who.grant_memory` is called once it may."""
        if who is self.favoured:
            return True
        if not self._line:
            if self.used_bytes + who.wants_bytes <= self.limit_bytes:
                return True
            if self.favoured is None:
                self.favoured = who
                return True
        self._line[who] = None
        return False

    def leave(self, who: WantsMemory) -> None:
        """Remove `who`, because its frame is complete or its connection is closed."""
        self._line.pop(who, None)
        if self.favoured is who:
            self.favoured = None
            self._serve_line()

    def _serve_line(self) -> None:
        if self._serving_line:
            return
        self._serving_line = True
        line = self._line
        while line:
            first = next(iter(line))
            if self.used_bytes + first.wants_bytes > self.limit_bytes:
                if self.favoured is not None:
                    break
                self.favoured = first
            del line[first]
            first.grant_memory()
        self._serving_line = False


class HoldsAnswers(Protocol):
    """A connection, as used by the response budget."""

    @property
    def answer_bytes(self) -> int: ...

    @property
    def taken_s(self) -> float:
        """Time in seconds when the client last read queued bytes, or when bytes were first queued."""

    def go_on(self) -> None: ...

    def abort(self) -> None: ...


class AnswerBudget:
    """The memory budget of responses (rules 4 and 5). Calls `on_full` when twice the budget is used."""

    def __init__(
        self, limit_bytes: int, call_soon: Callable[[Callable[[], None]], object], on_full: Callable[[], None]
    ) -> None:
        self.limit_bytes = limit_bytes
        self.used_bytes = 0
        self.short = False
        self.full = False
        self._waiting: dict[HoldsAnswers, None] = {}
        self._call_soon = call_soon
        self._on_full = on_full

    def change(self, by_bytes: int) -> None:
        """Count response bytes that were queued or, if negative, sent."""
        self.used_bytes += by_bytes
        was_short, self.short = self.short, self.used_bytes > self.limit_bytes
        was_full, self.full = self.full, self.used_bytes > 2 * self.limit_bytes
        if self.full and not was_full:
            self._on_full()
        if self._waiting and (was_short > self.short or was_full > self.full):
            self._call_soon(self._wake)

    def may_answer(self, who: HoldsAnswers) -> bool:
        """Return whether a request from `who` may be served. If not, `who.go_on` is called once it may."""
        if not self.short or (who.answer_bytes == 0 and not self.full):
            self._waiting.pop(who, None)
            return True
        self._waiting[who] = None
        return False

    def leave(self, who: HoldsAnswers) -> None:
        self._waiting.pop(who, None)

    def relieve(self, connections: Iterable[HoldsAnswers], now_s: float) -> int:
        """If twice the budget is used, disconnect clients that do not read responses. Return their number."""
        if not self.full:
            return 0
        stuck = [one for one in connections if one.answer_bytes and now_s - one.taken_s > STUCK_S]
        stuck.sort(key=lambda one: one.answer_bytes)
        left_bytes = self.used_bytes
        cut_off = 0
        while stuck and left_bytes > self.limit_bytes:
            one = stuck.pop()
            left_bytes -= one.answer_bytes
            cut_off += 1
            one.abort()
        return cut_off

    def _wake(self) -> None:
        for who in list(self._waiting):
            who.go_on()
