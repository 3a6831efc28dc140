"""Compute the new offsets of a group, as kafka-consumer-groups --reset-offsets does. No I/O.

As in Kafka, an offset out of range is replaced by the nearest valid offset, and a time after the last record
selects the end of the partition.
"""

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
    """The first offset of a partition, and the end offset for consumers."""

    start: int
    end: int


class Step(NamedTuple):
    """The offset change for one partition. `old` is None if the group has no committed offset."""

    topic: str
    partition: int
    old: int | None
    new: int | None
    """The new offset, or None if it cannot be determined. `note` then contains the reason."""
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
    """Yield the change for each partition. `number` is the offset or the shift. If an extent is unknown,
    `extents` contains the reason. `at_time` contains the first offset at or after the time, or None.
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
            return Step(topic, partition, old, None, start, end, "there is no committed offset to move")
        wanted = old + number
    elif scenario == TIME:
        wanted = end if at_time is None else at_time
        if at_time is None:
            note = "no record has that timestamp or a later one"
    new = min(max(wanted, start), end)
    if new != wanted:
        note = f"{wanted:,} is {'after the end' if wanted > end else 'before the start'}"
    return Step(topic, partition, old, new, start, end, note)
