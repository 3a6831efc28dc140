"""The charts of `kafka-compat status`, from snapshots and from a web console."""

from __future__ import annotations

from typing import Any

import pytest

from kafka_compat.status.hour import CHARTS, STEP_S, Hour
from kafka_compat.status.observed_hour import ObservedHour, Row, rows
from kafka_compat.status.snapshot import Snapshot, rates
from tests.status.found import group, partition, snapshot, topic


def _snapshots(count: int) -> list[Snapshot]:
    return [
        snapshot(
            [topic("orders", partition(0, end=100 * number))],
            [group("slow", lag=10 * number), group("quick")],
            taken_at_s=1000.0 + STEP_S * number,
        )
        for number in range(count)
    ]


def test_snapshots_become_charts() -> None:
    observed = ObservedHour()
    before = None
    for each in _snapshots(5):
        observed.add(each, rates(before, each))
        before = each
    assert rows(observed.charts(), 12) == [
        Row("Records written", " " * 11 + "█", "10/s", "10/s"),
        Row("Growth of the logs", " " * 11 + "▁", "0 B/s", "0 B/s"),
        Row("Lag of slow", " " * 11 + "█", "40", "40"),
    ]
    assert rows(observed.charts(), 360)[2].blocks[-5:] == "▁▃▅▇█"


def test_vanished_groups_lose_their_charts() -> None:
    observed = ObservedHour()
    observed.add(snapshot(groups=[group("a", lag=5), group("b", lag=7)]), None)
    assert [each["group"] for each in observed.charts()][2:] == ["b", "a"]
    observed.add(snapshot(groups=[group("a", lag=5)], taken_at_s=110.0), None)
    assert [each["group"] for each in observed.charts()][2:] == ["a"]


def test_each_line_of_a_chart_has_a_row() -> None:
    hour = Hour()
    hour.put(0, {"bytes_in": 2048.0, "bytes_out": 1024.0})
    (chart,) = [each for each in CHARTS if each.name == "bytes"]
    assert rows([hour.chart(chart, 0, 0)], 2) == [
        Row("Bytes written and read: written", " █", "2.0 KiB/s", "2.0 KiB/s"),
        Row("Bytes written and read: read", " ▅", "1.0 KiB/s", "1.0 KiB/s"),
    ]


@pytest.mark.parametrize("chart", [{}, {"unit": "share", "title": "x", "lines": [{"name": "y"}]}, 5, None])
def test_malformed_charts_are_rejected(chart: Any) -> None:
    with pytest.raises(ValueError, match="not a chart"):
        rows([chart], 10)
