"""Warnings about rejected peers: the first of each reason, and the number of repetitions."""

from __future__ import annotations

import logging

import pytest

from kafka_compat.network.strangers import QUIET_S, REASONS_MAX, Strangers


@pytest.fixture(autouse=True)
def at_warning(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING, logger="kafka_compat.network.strangers")


def test_the_first_rejection_of_each_reason_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    strangers = Strangers()
    reasons = [f"reason {chr(ord('a') + number)}" for number in range(20)]
    for second in range(2):
        for reason in reasons:
            strangers.tell("10.0.0.7", reason, second)
    assert caplog.messages == reasons


def test_repetitions_are_counted_and_reported_after_a_minute(caplog: pytest.LogCaptureFixture) -> None:
    strangers = Strangers()
    for number in range(1000):
        strangers.tell("10.0.0.7", f"user 'u{number}': the user does not exist", number / 100)
        strangers.tell("10.0.0.7", "wrong password", number / 100)
    assert caplog.messages == ["user 'u0': the user does not exist", "wrong password"]
    caplog.clear()
    strangers.summarize(QUIET_S - 1)
    assert not caplog.messages
    strangers.summarize(QUIET_S)
    assert caplog.messages == [
        "Rejected 10.0.0.7 repeatedly within 60 s: 999 more: wrong password; "
        "999 more: user 'u0': the user does not exist"
    ]
    caplog.clear()
    strangers.tell("10.0.0.7", "wrong password", QUIET_S + 1)
    assert caplog.messages == ["wrong password"]


def test_a_single_rejection_is_not_summarized(caplog: pytest.LogCaptureFixture) -> None:
    strangers = Strangers()
    strangers.tell("10.0.0.7", "wrong password", 0)
    strangers.summarize(2 * QUIET_S)
    assert caplog.messages == ["wrong password"]


def test_the_log_and_memory_are_bounded(caplog: pytest.LogCaptureFixture) -> None:
    strangers = Strangers()
    for number in range(10 * REASONS_MAX):
        strangers.tell("10.0.0.7", "reason " + "x" * number, 0)
    assert len(caplog.messages) == REASONS_MAX
    caplog.clear()
    for number in range(3000):
        strangers.tell(f"10.1.{number // 250}.{number % 250}", "wrong password", 1)
    assert f"{9 * REASONS_MAX} more: other reasons" in caplog.text
    assert len(strangers._recent) <= 1000
