"""A handler's word that its answer comes later."""

from __future__ import annotations

from typing import Final, Protocol


class Pending:
    """The type of PENDING."""


PENDING: Final = Pending()


class Parked(Protocol):
    """A request that is answered later, and wants to hear when nobody waits for its answer any more."""

    def connection_ended(self) -> None: ...
