"""What is made when it is first asked for: a broker that nobody asks for groups starts sooner without."""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, TypeVar

T = TypeVar("T")


class Lazy(Generic[T]):
    """Calls `make` once, at the first `get`."""

    __slots__ = ("_make", "made")

    def __init__(self, make: Callable[[], T]) -> None:
        self._make = make
        self.made: T | None = None
        """What was made; None as long as nobody has asked. For those who stop or tell it, and must not make
        it."""

    def get(self) -> T:
        """What there is from now on."""
        made = self.made
        if made is None:
            made = self.made = self._make()
        return made
