"""Human-readable formats of numbers and times."""

from __future__ import annotations

import pytest

from kafka_compat.page import rendering


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (None, "–"),
        (0, "0 s"),
        (0.25, "0.2 s"),
        (9.96, "10.0 s"),
        (12.4, "12 s"),
        (60, "1 min"),
        (75, "1 min 15 s"),
        (3_600, "1 h"),
        (7_261, "2 h 1 min"),
        (86_400 * 3 + 59, "3 d"),
        (86_400 * 400 + 7_200, "400 d 2 h"),
    ],
)
def test_durations_are_shown_in_at_most_two_units(seconds: float | None, text: str) -> None:
    assert rendering.duration(seconds) == text


@pytest.mark.parametrize(
    ("time_ms", "text"),
    [
        (0, "1970-01-01 00:00:00 UTC"),
        (1_795_519_427_541, "2026-11-24 11:23:47 UTC"),
        (-1, "–"),
        (None, "–"),
        (2**62, f"{2**62} ms"),
    ],
)
def test_timestamps_are_shown_in_utc(time_ms: int | None, text: str) -> None:
    assert rendering.moment(time_ms) == text


def test_unknown_values_are_shown_as_a_dash() -> None:
    nothing = [rendering.number(None), rendering.size(None), rendering.rate(None), rendering.percent(None)]
    assert nothing == ["–"] * 4
    assert rendering.shown("") == "–" and rendering.shown(0) == "0"
