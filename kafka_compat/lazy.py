"""A value created on first use, so that, for example, a broker without consumer groups starts sooner."""

from collections.abc import Callable
from typing import Generic, TypeVar

T = TypeVar("T")


class Lazy(Generic[T]):
    """A value that the first call of `get` creates by calling `make`."""

    __slots__ = ("_make", "made")

    def __init__(self, make: Callable[[], T]) -> None:
        self._make = make
        self.made: T | None = None
        """The value, or None before the first `get`, for code that must not create the value."""

    def get(self) -> T:
        """Return the value. The first call creates it."""
        made = self.made
        if made is None:
            made = self.made = self._make()
        return made
