"""Shapes and labels of charts."""

from __future__ import annotations

import pytest

from kafka_compat.page.chart import HEIGHT, drawn, scale_top
from kafka_compat.status.hour import CHARTS, SLOTS, STEP_S, Hour, as_data


def _data(values: list[float | None], unit: str = "records/s") -> dict[str, object]:
    padded = [None] * (SLOTS - len(values)) + values
    return as_data("records", "Records written", unit, None, [{"name": "written", "values": padded}], 0)


def test_a_line_and_the_area_below_it_are_drawn() -> None:
    (line,) = drawn(_data([0.0, 5.0, 10.0])).lines
    assert line.path == "M357 100L358 50L359 0L360 0"
    assert line.area == "M357 100L357 100L358 50L359 0L360 0L360 100Z"
    assert line.now == "10/s"


def test_unknown_values_interrupt_the_line() -> None:
    (line,) = drawn(_data([4.0, None, 2.0])).lines
    assert line.path == "M357 0L358 0M359 50L360 50"
    drawing = drawn(_data([]))
    assert drawing.is_empty and drawing.text == "no samples yet" and drawing.most == "–"


def test_screen_readers_hear_the_values() -> None:
    found = drawn(_data([4.0, 3.0]))
    assert found.text == "Records written in the last hour: now 3/s; at most 4/s"
    hour = Hour()
    hour.put(0, {"bytes_in": 2048.0, "bytes_out": 1024.0})
    (chart,) = [each for each in CHARTS if each.name == "bytes"]
    text = drawn(hour.chart(chart, STEP_S, 0)).text
    assert text == (
        "Bytes written and read in the last hour: now written 2.0 KiB/s, read 1.0 KiB/s; at most 2.0 KiB/s"
    )


@pytest.mark.parametrize(
    ("unit", "most", "wanted"),
    [
        ("records/s", 0, 1),
        ("records/s", 1001, 2000),
        ("requests/s", 20, 20),
        ("bytes/s", 10, 1024),
        ("bytes/s", 3000, 3 * 1024),
        ("bytes/s", 1e9, 1000 * 1024**2),
        ("share", 0.3, 0.5),
        ("share", 1.2, 1.0),
        ("seconds", 0.03, 0.1),
        ("seconds", 61, 120),
        ("seconds", 5 * 86_400, 6 * 86_400),
        ("seconds", 0, 1),
    ],
)
def test_the_scale_ends_at_a_round_number(unit: str, most: float, wanted: float) -> None:
    assert scale_top(unit, most) == wanted


def test_values_stay_within_the_chart() -> None:
    (line,) = drawn(_data([0.999, 0.5, 0.001], "share")).lines
    heights = [int(point.split()[1]) for point in line.path.replace("M", "").split("L")]
    assert min(heights) >= 0 and max(heights) <= HEIGHT
