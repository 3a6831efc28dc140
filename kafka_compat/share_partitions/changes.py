"""Acknowledgements of share-partitions, and the changes that they make (KIP-932)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

from kafka_compat.share_partitions.in_flight import ACKNOWLEDGED, ARCHIVED, AVAILABLE, Transition

if TYPE_CHECKING:
    from kafka_compat.share_coordinator.persister import StateBatch

GAP: Final = 0
ACCEPT: Final = 1
RELEASE: Final = 2
REJECT: Final = 3
RENEW: Final = 4
"""Types of acknowledgements."""

CLIENT_REJECT: Final = "Offset rejected by client."
DELIVERY_COUNT_EXCEEDED: Final = "Offset delivery count exceeded the threshold."
"""Reasons why records go to the dead letter queue, in Kafka's words."""


class Limits(NamedTuple):
    """The settings of a group for its share-partitions. They may change between two calls."""

    lock_duration_ms: int = 30_000
    delivery_count_limit: int = 5
    max_record_locks: int = 2_000
    is_renew_enabled: bool = True
    has_dead_letters: bool = False
    """Whether the group has a dead letter queue."""


class Acknowledgement(NamedTuple):
    """An acknowledgement of [first, last]. `types` contains one type, or one for each offset."""

    first: int
    last: int
    types: Sequence[int]


class DeadLetters(NamedTuple):
    """Archiving records, which must be written to the dead letter queue before they are archived."""

    first: int
    last: int
    delivery_count: int
    cause: str


class Write(NamedTuple):
    """Changes to store. After that, pass the object to `SharePartition.written`."""

    start_offset: int
    delivery_complete_count: int
    batches: list[StateBatch]
    changes: list[Change]
    dead_letters: list[DeadLetters]


class Change(NamedTuple):
    """A pending state change, as kept until it is stored."""

    first: int
    last: int
    state: int
    transition: Transition


STATE_AFTER: Final = {GAP: ARCHIVED, ACCEPT: ACKNOWLEDGED, RELEASE: AVAILABLE, REJECT: ARCHIVED}


def of_one_type(first: int, low: int, high: int, types: Sequence[int]) -> Iterator[tuple[int, int, int]]:
    """Divide [low, high] into ranges with the same acknowledgement type: (first, last, type). `first` is the
    offset of the first type.
    """
    if len(types) == 1:
        yield low, high, types[0]
        return
    begin = low
    for offset in range(low + 1, high + 2):
        if offset > high or types[offset - first] != types[begin - first]:
            yield begin, offset - 1, types[begin - first]
            begin = offset
