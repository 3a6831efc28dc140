"""Rates and latencies of a quorum node."""

from __future__ import annotations

import pytest

from kafka_compat.quorum.statistics import WINDOW_MS, QuorumStatistics, Rate


def test_a_rate_covers_the_last_minute() -> None:
    rate = Rate()
    rate.record(600, 1000)
    assert rate.per_second(2000) == 10
    assert rate.per_second(2000 + WINDOW_MS + 5000) == 0


def test_the_commit_latency_is_the_time_until_the_high_watermark_passes_the_records() -> None:
    statistics = QuorumStatistics()
    statistics.appended(2, 10, 1000)
    statistics.appended(1, 11, 1010)
    statistics.committed(10, 1030)
    assert statistics.commits.average_ms(1040) == 30
    statistics.committed(11, 1060)
    assert statistics.commits.average_ms(1070) == pytest.approx(40)
    assert statistics.commits.max_ms(1070) == 50
    assert statistics.appended_records.per_second(1070) == pytest.approx(3 / 60)


def test_a_leader_that_resigns_forgets_uncommitted_records() -> None:
    statistics = QuorumStatistics()
    statistics.appended(2, 10, 1000)
    statistics.role_changed(is_leader=False, knows_leader=False, now_ms=1100)
    statistics.committed(10, 1200)
    assert statistics.commits.average_ms(1200) is None


def test_the_election_latency_is_the_time_without_a_leader() -> None:
    statistics = QuorumStatistics()
    statistics.role_changed(is_leader=False, knows_leader=True, now_ms=500)
    assert statistics.elections.max_ms(500) is None
    statistics.role_changed(is_leader=False, knows_leader=False, now_ms=1000)
    statistics.role_changed(is_leader=False, knows_leader=False, now_ms=1200)
    statistics.role_changed(is_leader=True, knows_leader=True, now_ms=1700)
    assert statistics.elections.average_ms(1800) == 700
    assert statistics.elections.max_ms(1800 + 2 * WINDOW_MS) is None
