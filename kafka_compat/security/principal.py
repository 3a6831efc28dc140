"""Principals: the authenticated identity of a client."""

from __future__ import annotations

from typing import NamedTuple


class Principal(NamedTuple):
    """Kafka's KafkaPrincipal: `kind` is "User" for authenticated clients."""

    kind: str
    name: str

    def __str__(self) -> str:
        return f"{self.kind}:{self.name}"


class TokenHolder(Principal):
    """A client authenticated by a delegation token of that user. Equal to the user, with the same rights
    except the right to request tokens.
    """

    __slots__ = ()


ANONYMOUS = Principal("User", "ANONYMOUS")
"""Every client of a listener without authentication."""
