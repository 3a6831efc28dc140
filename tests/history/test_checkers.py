"""The checkers of transaction histories: each detects its anomaly in an otherwise valid history, and none
reports a valid history.
"""

from __future__ import annotations

import pytest

from tests.history.checkers import CHECKERS, anomalies
from tests.history.model import Operation, parse

GOOD = [
    "1 ok 0 10 s 0 1 0",
    "1 ok 20 30 s 0 2 2 s 1 1 0",
    "2 ok 40 50 p 2 0 1 0 0 2 2 p 1 1 1 0",
    "1 fail 52 55 s 0 3 4",
    "1 info 60 70 s 0 4 6",
    "2 ok 75 80 p 1 0 4 6",
    "2 ok 85 86 a 1 1",
    "9 ok 100 110 p 3 0 1 0 0 2 2 0 4 6",
    "9 ok 111 120 p 1 1 1 0",
]


def changed(index: int, line: str) -> list[str]:
    return [*GOOD[:index], line, *GOOD[index + 1 :]]


PLANTED = {
    "inconsistent offsets": changed(7, "9 ok 100 110 p 3 0 1 0 0 2 2 0 4 2"),
    "duplicate": changed(7, "9 ok 100 110 p 3 0 1 0 0 2 2 0 4 8"),
    "aborted read (G1a)": changed(7, "9 ok 100 110 p 4 0 1 0 0 2 2 0 3 4 0 4 6"),
    "precommitted read": [*GOOD, "3 ok 130 140 s 1 2 2 p 1 1 2 2"],
    "lost write": [
        "1 ok 0 10 s 0 1 0",
        "1 ok 20 30 s 0 2 2",
        "1 ok 40 50 s 0 3 4",
        "2 ok 60 70 p 2 0 1 0 0 3 4",
    ],
    "internal poll skip or non-monotonic poll": changed(7, "9 ok 100 110 p 3 0 1 0 0 4 6 0 2 2"),
    "internal non-monotonic send": changed(1, "1 ok 20 30 s 0 2 2 s 0 1 0"),
    "poll skip or non-monotonic poll": [*GOOD, "9 ok 130 140 p 1 0 2 2"],
    "non-monotonic send": [
        *changed(1, "1 ok 20 30 s 0 5 8"),
        "1 ok 130 140 s 0 6 7",
        "9 ok 150 160 p 2 0 6 7 0 5 8",
    ],
    "unseen": [*GOOD, "1 ok 130 140 s 1 2 2"],
    "cycle (G1c)": [
        "1 ok 0 10 s 0 1 0 p 1 1 1 0",
        "2 ok 5 15 s 1 1 0 p 1 0 1 0",
    ],
    "phantom": [*GOOD, "9 ok 130 140 p 1 1 77 4"],
    "set": [*GOOD, "1 ok 130 140 s 0 9 1", "9 ok 150 160 p 1 0 9 1"],
    "reread": changed(7, "9 ok 100 110 p 3 0 1 0 0 2 2 0 2 2"),
}


def found(lines: list[str]) -> set[str]:
    return set(anomalies(parse(lines)))


def test_a_consistent_history_has_no_anomalies() -> None:
    assert anomalies(parse(GOOD)) == {}


@pytest.mark.parametrize("name", CHECKERS)
def test_a_planted_anomaly_is_detected(name: str) -> None:
    assert name in found(PLANTED[name])


def test_a_cycle_that_includes_the_real_time_order_is_detected() -> None:
    lines = ["1 ok 0 10 p 1 0 1 0", "2 ok 20 30 s 0 1 0"]
    assert "cycle (G1c)" in found(lines)


def test_overlapping_writes_are_not_reported_as_an_anomaly() -> None:
    """Kafka allows overlapping writes (G0)."""
    lines = [
        "1 ok 0 10 s 0 1 0 s 1 1 2",
        "2 ok 0 10 s 1 2 0 s 0 2 2",
        "9 ok 20 30 p 2 0 1 0 0 2 2 p 2 1 2 0 1 1 2",
    ]
    assert found(lines) == set()


def test_logged_operations_are_parsed() -> None:
    (operation,) = parse(["3 info 5 9 s 0 7 -1 p 2 1 2 3 1 4 5 a 2 0 1"])
    assert isinstance(operation, Operation)
    assert [tuple(sent) for sent in operation.sends] == [(0, 7, -1)]
    assert [tuple(read) for read in operation.reads] == [(1, 2, 3), (1, 4, 5)]
