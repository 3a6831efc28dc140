"""The last values of a measurement, for metrics."""

from collections import deque
from typing import Final

_KEPT: Final = 256


class Samples:
    """The number of values, and the last of them."""

    __slots__ = ("count", "kept")

    def __init__(self) -> None:
        self.count = 0
        self.kept: deque[float] = deque(maxlen=_KEPT)

    def add(self, value: float) -> None:
        self.count += 1
        self.kept.append(value)
