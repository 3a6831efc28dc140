"""How many clients have shown by TLS or SASL who they are, and how many could not, by listener. No I/O."""

from __future__ import annotations

from typing import Final

PASSED: Final = "successful-authentication"
PASSED_AGAIN: Final = "successful-reauthentication"
FAILED: Final = "failed-authentication"
FAILED_AGAIN: Final = "failed-reauthentication"
"""As Kafka names them; again: on a connection that was let in before (KIP-368)."""


class Authentications:
    """Of one broker since its start. On listeners without security there are none."""

    def __init__(self) -> None:
        self._counts: dict[tuple[str, str], int] = {}
        self.expired = 0
        """Connections that were closed since their session had ended."""

    def count(self, listener: str, kind: str) -> None:
        """One more."""
        self._counts[listener, kind] = self._counts.get((listener, kind), 0) + 1

    def of(self, listener: str, kind: str) -> int:
        """How many there were."""
        return self._counts.get((listener, kind), 0)
