"""Sessions of browsers that have shown the token, as cookies. No I/O.

A session is a random name that only its cookie has. They are kept in memory: after a restart of the broker
the token is asked for again.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Final

SESSIONS_MAX: Final = 64
IDLE_MAX_S: Final = 8 * 3600.0
_BYTES: Final = 32


class Sessions:
    """Of one listener. `now_s` is a clock that never jumps."""

    def __init__(self, now_s: Callable[[], float]) -> None:
        self._now_s = now_s
        self._used_s: dict[str, float] = {}
        """When each was used last, the one that was not for longest first."""

    def open(self) -> str:
        """A new one. Where there are too many, the one that was not used for longest ends."""
        if len(self._used_s) >= SESSIONS_MAX:
            del self._used_s[next(iter(self._used_s))]
        session = os.urandom(_BYTES).hex()
        self._used_s[session] = self._now_s()
        return session

    def use(self, session: str) -> bool:
        """Whether there is this session; it lasts for IDLE_MAX_S from now on."""
        used_s, now_s = self._used_s.pop(session, None), self._now_s()
        if used_s is None or now_s - used_s > IDLE_MAX_S:
            return False
        self._used_s[session] = now_s
        return True

    def end(self, session: str) -> None:
        """Forget it."""
        self._used_s.pop(session, None)
