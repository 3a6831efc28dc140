"""Scheduling of connections on the event loop: the order and the duration of their turns.

Rules
1. In each iteration of the loop, clients are served for SLICE_S. During this slice, a readable connection is
   served at once. Under light load, connections therefore never wait. A callback marks the next iteration,
   except if one connection begins two slices in a row, because a connection is readable once per iteration.
2. After the slice, connections wait in line and are served in the next iterations. Each turn lasts TURN_S, or
   less if many connections wait, and includes at least one request.
3. There are two lines: one for clients that send occasional requests, and one for clients that send requests
   continuously (requests remained at the end of their last turn) and clients that have not been served yet.
   The first line is served FIRST_IN_A_ROW times as often as the second, so that a flood of requests waits
   behind an occasional client without being stalled by it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Final, Protocol

SLICE_S: Final = 0.010
TURN_S: Final = 0.005
FIRST_IN_A_ROW: Final = 4
# Maximum duration in seconds of a round, in which each waiting connection gets one turn.
_ROUND_S: Final = 0.050


class TakesTurns(Protocol):
    """A connection that can wait for its turn."""

    closed: bool
    in_line: bool
    began_slice: int
    """Number of the last slice that began with this connection."""

    def take_turn(self, now_s: float, until_s: float) -> bool:
        """Serve one or more requests, until `until_s`. Return whether more requests can be served now."""


class Turns:
    """Scheduler of a server's connections. `time` is a monotonic clock, and `call_soon` the loop's method."""

    def __init__(self, time: Callable[[], float], call_soon: Callable[[Callable[[], None]], object]) -> None:
        self.ends_s = 0.0
        """End of the current slice, in seconds. Until then, readable connections are served at once."""
        self._time = time
        self._call_soon = call_soon
        self._first: deque[TakesTurns] = deque()
        self._others: deque[TakesTurns] = deque()
        self._first_in_a_row = 0
        self._slices = 0
        self._scheduled = False

    @property
    def waiting(self) -> int:
        return len(self._first) + len(self._others)

    def begin(self, connection: TakesTurns, now_s: float) -> bool:
        """Begin a new slice. Return False if connections are waiting, or if this iteration had a slice."""
        if self._first or self._others or self._scheduled:
            return False
        self.ends_s = now_s + SLICE_S
        if connection.began_slice != self._slices:
            self._schedule()
        self._slices += 1
        connection.began_slice = self._slices
        return True

    def line_up(self, connection: TakesTurns, *, first: bool) -> None:
        """Add the connection to the first line if `first`, otherwise to the second line."""
        if connection.in_line:
            return
        connection.in_line = True
        (self._first if first else self._others).append(connection)
        self.ends_s = 0.0
        self._schedule()

    def _schedule(self) -> None:
        if not self._scheduled:
            self._scheduled = True
            self._call_soon(self._next_iteration)

    def _next_iteration(self) -> None:
        self._scheduled = False
        first, others = self._first, self._others
        if not first and not others:
            return
        now_s = self._time()
        ends_s = now_s + SLICE_S
        while (first or others) and now_s < ends_s:
            if first and (not others or self._first_in_a_row < FIRST_IN_A_ROW):
                self._first_in_a_row += 1
                connection = first.popleft()
            else:
                self._first_in_a_row = 0
                connection = others.popleft()
            connection.in_line = False
            if connection.closed:
                continue
            waiting = len(first) + len(others) + 1
            if connection.take_turn(now_s, now_s + min(TURN_S, _ROUND_S / waiting)):
                self.line_up(connection, first=False)
            now_s = self._time()
        if not first and not others:
            self.ends_s = ends_s
        self._schedule()
