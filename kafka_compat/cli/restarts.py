"""When a process that died is started again. Pure."""

from __future__ import annotations

FIRST_WAIT_S = 0.5
WAIT_S_MAX = 10.0
CALM_S = 60.0
"""One that served for so long is started again as after its first death."""


class RestartWaits:
    """The waits of one process: none after the first death, then twice as long each time."""

    def __init__(self) -> None:
        self._next_s = 0.0

    def after(self, served_s: float) -> float:
        """How long to wait, in seconds, now that it died after it had served for so long."""
        if served_s >= CALM_S:
            self._next_s = 0.0
        wait_s = self._next_s
        self._next_s = min(2 * wait_s, WAIT_S_MAX) or FIRST_WAIT_S
        return wait_s
