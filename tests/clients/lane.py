"""One broker with one client, and operations for the scenarios."""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from tests.clients.programs import ClientProgram

START_MS = int(time.time()) * 1000 - 3_600_000
"""Timestamp of the first record in every scenario: an hour ago, so that retention does not delete it."""

Observations = dict[str, Any]
Record = dict[str, Any]


@dataclass
class Lane:
    """One broker with one client program."""

    bootstrap: str
    program: ClientProgram
    new_program: Callable[[], ClientProgram]
    make_topic: Callable[[str, int, dict[str, str]], None]
    run: str
    _numbers: itertools.count[int] = field(default_factory=itertools.count)

    def fresh(self, what: str) -> str:
        """Return a new name, the same in both lanes."""
        return f"{what}-{self.run}-{next(self._numbers)}"

    def topic(self, partitions: int = 1, **configs: str) -> str:
        """Create a topic, and return its name. Underscores in config names stand for dots."""
        name = self.fresh("topic")
        given = {setting.replace("_", "."): value for setting, value in configs.items()}
        self.make_topic(name, partitions, given)
        return name

    def has(self, feature: str) -> bool:
        return feature in self.program.kind.features


def attempted(scenario: Callable[[Lane], Observations], lane: Lane) -> Observations:
    """Run the scenario, and return its observations. It is retried only for clients that are known to
    stall.
    """
    for _ in range(lane.program.kind.attempts - 1):
        try:
            return scenario(lane)
        except AssertionError:
            continue
    return scenario(lane)


def numbered(count: int, partitions: int = 1, *, size_bytes: int = 0) -> list[Record]:
    """Return `count` records spread over the partitions, with timestamps one second apart."""
    return [
        {
            "partition": number % partitions,
            "key": f"key-{number}",
            "value": f"value-{number}".ljust(size_bytes, "."),
            "timestamp": START_MS + number * 1000,
        }
        for number in range(count)
    ]


def read(lane: Lane, topic: str, partitions: int, count: int, **arguments: Any) -> list[Record]:
    given = {"start": "earliest", "partitions": list(range(partitions)), **arguments}
    records: list[Record] = lane.program.call("consume", topic=topic, count=count, **given)["records"]
    assert len(records) == count, f"{len(records)} of {count} records"
    if not lane.has("timestamps"):
        assert not any("timestamp" in record for record in records)
    return sorted(records, key=lambda record: (record["partition"], record["offset"]))
