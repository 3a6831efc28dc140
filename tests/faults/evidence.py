"""A check of a log against its producers' acknowledgements, and the longest gap between them."""

from __future__ import annotations

import itertools
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields

from tests.faults.producers import NO_OFFSET, Acknowledgement, value_of

Place = tuple[int, int]
"""(partition, offset)"""


@dataclass(slots=True)
class Findings:
    """Inconsistencies of a log. All are empty if the log is correct.

    lost: acknowledged and missing; moved: stored at a different offset than acknowledged; duplicated: stored
    twice; disordered: stored after a record that the same client sent later to the same partition; phantom:
    never sent, or altered.
    """

    lost: list[tuple[str, int]] = field(default_factory=list)
    moved: list[tuple[str, int]] = field(default_factory=list)
    duplicated: list[tuple[str, int]] = field(default_factory=list)
    disordered: list[Place] = field(default_factory=list)
    phantom: list[Place] = field(default_factory=list)

    @property
    def nothing(self) -> bool:
        return not any(getattr(self, item.name) for item in fields(self))

    def __str__(self) -> str:
        found = ((item.name, getattr(self, item.name)) for item in fields(self))
        return ", ".join(f"{name}: {len(items)} {items[:5] or ''}".strip() for name, items in found)


def check(log: Mapping[Place, bytes], acknowledged: Mapping[str, Iterable[Acknowledgement]]) -> Findings:
    """Compare a whole topic with the acknowledgements of its clients."""
    findings = Findings()
    counts: Counter[tuple[str, int]] = Counter()
    places: dict[tuple[str, int], Place] = {}
    last: dict[tuple[str, int], int] = defaultdict(lambda: -1)
    for place in sorted(log):
        client, number = _record_of(log[place])
        if client not in acknowledged or log[place] != value_of(client, number):
            findings.phantom.append(place)
            continue
        counts[client, number] += 1
        places[client, number] = place
        if number < last[client, place[0]]:
            findings.disordered.append(place)
        last[client, place[0]] = number
    findings.duplicated = [record for record, count in counts.items() if count > 1]
    for client, items in acknowledged.items():
        for item in items:
            found = places.get((client, item.number))
            if found is None:
                findings.lost.append((client, item.number))
            elif item.offset != NO_OFFSET and counts[client, item.number] == 1 and found != item.place:
                findings.moved.append((client, item.number))
    return findings


def take_out_repeated(findings: Findings, log: Mapping[Place, bytes], client: str) -> int:
    """Remove the records of a client that were stored twice or out of order from the findings, and return
    their number.
    """
    duplicated = [record for record in findings.duplicated if record[0] == client]
    disordered = [place for place in findings.disordered if _record_of(log[place])[0] == client]
    findings.duplicated = [record for record in findings.duplicated if record not in duplicated]
    findings.disordered = [place for place in findings.disordered if place not in disordered]
    return len(duplicated) + len(disordered)


def _record_of(value: bytes) -> tuple[str, int]:
    client, _, rest = value.partition(b":")
    digits = rest.partition(b":")[0]
    return client.decode(errors="replace"), int(digits) if digits.isdigit() else -1


def longest_gap_s(acknowledged: Sequence[Acknowledgement], began_ms: int, ended_ms: int) -> float:
    """Return the longest time between two acknowledgements of one partition, where the gap overlaps the
    window.
    """
    longest_ms = 0
    times: dict[int, list[int]] = defaultdict(list)
    for item in acknowledged:
        times[item.partition].append(item.time_ms)
    for moments in times.values():
        for before, after in itertools.pairwise(moments):
            if after >= began_ms and before <= ended_ms:
                longest_ms = max(longest_ms, after - before)
    return longest_ms / 1000
