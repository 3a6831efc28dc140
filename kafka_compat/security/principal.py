"""Principals: the authenticated identity of a client."""

from typing import NamedTuple


class Principal(NamedTuple):
    """Kafka's KafkaPrincipal. `kind` is "User" for authenticated clients."""

    kind: str
    name: str

    def __str__(self) -> str:
        return f"{self.kind}:{self.name}"


class TokenHolder(Principal):
    """A user who is authenticated by a delegation token. The object equals the user's Principal and has the
    same rights, except the right to request tokens.
    """

    __slots__ = ()


ANONYMOUS = Principal("User", "ANONYMOUS")
"""The principal of every client on a listener without authentication."""
