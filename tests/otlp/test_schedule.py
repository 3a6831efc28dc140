"""The schedule of pushes while the receiver is unavailable, and the resulting log messages."""

from __future__ import annotations

import logging

import pytest

from kafka_compat.otlp.schedule import Outcome, Schedule

FAILED = Outcome("refused")


def test_retry_intervals_double_up_to_five_minutes() -> None:
    schedule = Schedule("http://h", 60.0)
    assert schedule.pause_s(1.5) == 58.5
    assert schedule.pause_s(70.0) == 0.0
    seen = []
    for _ in range(5):
        schedule.note(FAILED)
        seen.append(schedule.pause_s(0.0))
    assert seen == [120.0, 240.0, 300.0, 300.0, 300.0]
    # The pause is not 0, even if the failed push took this long.
    assert schedule.pause_s(400.0) == 150.0
    schedule.note(Outcome())
    assert schedule.pause_s(0.0) == 60.0


def test_a_long_interval_is_not_shortened_after_failures() -> None:
    schedule = Schedule("http://h", 3600.0)
    for _ in range(2000):
        schedule.note(FAILED)
    assert schedule.pause_s(0.0) == 3600.0


def test_only_changes_in_the_outcome_are_logged(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    schedule = Schedule("http://h", 1.0)
    partly = Outcome(None, 3, "too old")
    for outcome in (
        Outcome(),
        FAILED,
        FAILED,
        Outcome(),
        Outcome(),
        partly,
        partly,
        FAILED,
        partly,
        Outcome(),
    ):
        schedule.note(outcome)
    schedule.note(partly)
    assert [(record.levelname, record.getMessage().split(":")[0]) for record in caplog.records] == [
        ("WARNING", "Could not push metrics to http"),
        ("INFO", "Resumed pushing metrics to http"),
        ("WARNING", "The collector at http"),
        ("WARNING", "Could not push metrics to http"),
        ("INFO", "Resumed pushing metrics to http"),
        ("WARNING", "The collector at http"),
    ]
