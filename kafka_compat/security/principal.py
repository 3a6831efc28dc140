"""Principals: the authenticated identity of a client."""

from __future__ import annotations

from typing import NamedTuple


class Principal(NamedTuple):
    """As Kafka's KafkaPrincipal: `kind` is "User" for those who authenticate themselves."""

    kind: str
    name: str

    def __str__(self) -> str:
        return f"{self.kind}:{self.name}"


class TokenHolder(Principal):
    """Who authenticated itself with a delegation token of that user's. It equals the user, and may do what
    the user may, except to ask for tokens.
    """

    __slots__ = ()


ANONYMOUS = Principal("User", "ANONYMOUS")
"""Every client of a listener that authenticates nobody."""
