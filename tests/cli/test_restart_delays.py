"""Delays before broker processes that died are restarted."""

from __future__ import annotations

from kafka_compat.cli.processes import CALM_S, WAIT_S_MAX, RestartWaits


def test_the_first_restart_is_immediate_and_later_restarts_are_delayed_up_to_a_limit() -> None:
    waits = RestartWaits()
    assert [waits.after(1.0) for _ in range(9)] == [0, 0.5, 1, 2, 4, 8, WAIT_S_MAX, WAIT_S_MAX, WAIT_S_MAX]


def test_the_delay_is_reset_after_a_minute_of_service() -> None:
    waits = RestartWaits()
    for _ in range(5):
        waits.after(CALM_S - 0.1)
    assert [waits.after(CALM_S), waits.after(0), waits.after(0)] == [0, 0.5, 1]
