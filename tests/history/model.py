"""A history of the operations of all processes with their times, as written by Workload.java."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Literal, NamedTuple

UNKNOWN = -1


class Send(NamedTuple):
    """A record of a key. The offset is -1 while unknown. Values are unique within their key."""

    key: int
    value: int
    offset: int = UNKNOWN


class Read(NamedTuple):
    """A record that a poll returned."""

    key: int
    value: int
    offset: int


Poll = tuple[Read, ...]


class Assign(NamedTuple):
    """Assigns these keys to the process for later reads."""

    keys: frozenset[int]


Step = Send | Poll | Assign


@dataclass(frozen=True, slots=True, eq=False)
class Operation:
    """An operation. The type `info` means that its outcome is unknown. Times are in ns on one clock."""

    process: int
    type: Literal["ok", "fail", "info"]
    begin: int
    end: int
    steps: tuple[Step, ...]

    @property
    def sends(self) -> Iterator[Send]:
        return (step for step in self.steps if isinstance(step, Send))

    @property
    def reads(self) -> Iterator[Read]:
        for step in self.steps:
            if not isinstance(step, Send | Assign):
                yield from step

    def __str__(self) -> str:
        return f"process {self.process} {self.type} {list(self.steps)}"


def parse(lines: Iterable[str]) -> list[Operation]:
    """Return the operations in the order in which they ended."""
    return [_parse(line.split()) for line in lines if line.strip()]


def _parse(words: list[str]) -> Operation:
    process, kind, begin, end, *rest = words
    assert kind in ("ok", "fail", "info"), words
    steps: list[Step] = []
    numbers = iter(rest)
    for letter in numbers:
        if letter == "s":
            steps.append(Send(int(next(numbers)), int(next(numbers)), int(next(numbers))))
        elif letter == "p":
            count = int(next(numbers))
            steps.append(
                tuple(Read(int(next(numbers)), int(next(numbers)), int(next(numbers))) for _ in range(count))
            )
        else:
            count = int(next(numbers))
            steps.append(Assign(frozenset(int(next(numbers)) for _ in range(count))))
    return Operation(int(process), kind, int(begin), int(end), tuple(steps))  # type: ignore[arg-type]
