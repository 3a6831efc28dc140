"""What a SASL mechanism is to the exchange that carries it."""

from __future__ import annotations

from typing import Protocol

from kafka_compat.security.principal import Principal


class Refused(Exception):
    """The client has not proved who it says it is.

    The text is for the broker's log. `told` is what the client is told; None for what any wrong password
    gets, so that nobody learns which users there are.
    """

    def __init__(self, why: str, told: str | None = None) -> None:
        super().__init__(why)
        self.told = told


class Mechanism(Protocol):
    """The server's side of one exchange; used once."""

    principal: Principal | None
    """Who the client is, once it has proved it."""
    expires_ms: int | None
    """Until when its proof holds, in ms since 1970, if it does not hold for ever."""

    def evaluate(self, token: bytes) -> bytes | None:
        """The answer to a token of the client's; None where not even an empty one is due, which only clients
        see whose tokens are frames of their own. Raises Refused.
        """
