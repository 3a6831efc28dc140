"""Compute the new offsets of a group, as kafka-consumer-groups --reset-offsets does. Pure.

As in Kafka, an offset out of range becomes the nearest valid one; a time after the last record selects the
end of the partition.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Final, NamedTuple

from kafka_compat.lag import records_behind

TopicPartition = tuple[str, int]

EARLIEST: Final = "earliest"
LATEST: Final = "latest"
OFFSET: Final = "offset"
TIME: Final = "time"
SHIFT: Final = "shift"
SCENARIOS: Final = (EARLIEST, LATEST, OFFSET, TIME, SHIFT)


class Extent(NamedTuple):
    """Where a partition begins, and up to where consumers may read."""

    start: int
    end: int


class Step(NamedTuple):
    """What becomes of one partition. `old` is None where the group has committed nothing."""

    topic: str
    partition: int
    old: int | None
    new: int | None
    """None where it cannot be said: `note` says why."""
    start: int | None
    end: int | None
    note: str

    @property
    def old_lag(self) -> int | None:
        return records_behind(self.old, self.end)

    @property
    def new_lag(self) -> int | None:
        return records_behind(self.new, self.end)


def plan(
    partitions: Iterable[TopicPartition],
    scenario: str,
    number: int,
    committed: Mapping[TopicPartition, int],
    extents: Mapping[TopicPartition, Extent | str],
    at_time: Mapping[TopicPartition, int | None],
) -> Iterator[Step]:
    """`number` is the offset, or by how many it is moved. `extents` have the reason where somebody does not
    tell; `at_time` is the first offset of the time that is meant, None where there is none.
    """
    for place in sorted(partitions):
        yield _step(place, scenario, number, committed.get(place), extents[place], at_time.get(place))


def _step(
    place: TopicPartition,
    scenario: str,
    number: int,
    old: int | None,
    extent: Extent | str,
    at_time: int | None,
) -> Step:
    topic, partition = place
    if isinstance(extent, str):
        return Step(topic, partition, old, None, None, None, extent)
    start, end = extent
    wanted, note = number, ""
    if scenario == EARLIEST:
        wanted = start
    elif scenario == LATEST:
        wanted = end
    elif scenario == SHIFT:
        if old is None:
            return Step(topic, partition, old, None, start, end, "nothing is committed that could be moved")
        wanted = old + number
    elif scenario == TIME:
        wanted = end if at_time is None else at_time
        if at_time is None:
            note = "no record is of that time or later"
    new = min(max(wanted, start), end)
    if new != wanted:
        note = f"{wanted:,} lies {'behind the end' if wanted > end else 'before the start'}"
    return Step(topic, partition, old, new, start, end, note)
