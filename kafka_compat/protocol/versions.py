"""Version ranges, written as in Kafka's message definitions: "3", "0-9", "12+", "none"."""

from __future__ import annotations

from functools import cache
from typing import Final, NamedTuple

HIGHEST: Final = 0x7FFF


class Versions(NamedTuple):
    """An inclusive range of message versions. It is empty if ``low > high``."""

    low: int
    high: int

    def __contains__(self, version: object) -> bool:
        return isinstance(version, int) and self.low <= version <= self.high

    def numbers(self) -> range:
        """Return the versions in the range, in ascending order."""
        return range(self.low, self.high + 1)

    def __str__(self) -> str:
        if self.low > self.high:
            return "none"
        if self.low == self.high:
            return str(self.low)
        return f"{self.low}+" if self.high == HIGHEST else f"{self.low}-{self.high}"


NONE: Final = Versions(0, -1)


@cache
def parse_versions(text: str) -> Versions:
    """Parse a version range. Raises ValueError unless the text has one of the four forms."""
    if text == "none":
        return NONE
    if text.endswith("+"):
        return Versions(int(text[:-1]), HIGHEST)
    low, dash, high = text.partition("-")
    return Versions(int(low), int(high) if dash else int(low))
