"""When keys are fetched out of turn, since a token came whose key is not there; pure.

Rules
1. A key id that is missing asks for the keys once in RETRY_MS; the last IDS_MAX of them are remembered. Ids
   longer than ID_CHARACTERS_MAX ask for nothing (all three are Kafka's).
2. Whoever invents ids gets the keys fetched once in INTERVAL_MS, and no more often.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable
from typing import Final

IDS_MAX: Final = 16
ID_CHARACTERS_MAX: Final = 1000
RETRY_MS: Final = 60_000
INTERVAL_MS: Final = 1_000


class EarlyRefresh:
    """See the rules above; times never jump."""

    def __init__(self) -> None:
        self._asked: OrderedDict[str, float] = OrderedDict()
        self._fetched_ms = float("-inf")

    def missed(self, kid: str, now_ms: float) -> bool:
        """Whether the keys are to be fetched for that."""
        if len(kid) > ID_CHARACTERS_MAX or now_ms < self._asked.get(kid, float("-inf")) + RETRY_MS:
            return False
        self._asked[kid] = now_ms
        self._asked.move_to_end(kid)
        while len(self._asked) > IDS_MAX:
            self._asked.popitem(last=False)
        return True

    def wait_ms(self, now_ms: float) -> float:
        """For how long a fetch out of turn has to wait."""
        return max(0.0, self._fetched_ms + INTERVAL_MS - now_ms)

    def fetching(self, now_ms: float) -> None:
        """They are fetched now."""
        self._fetched_ms = now_ms

    def fetched(self, kids: Iterable[str | None]) -> None:
        """These are there now."""
        for kid in kids:
            if kid is not None:
                self._asked.pop(kid, None)
