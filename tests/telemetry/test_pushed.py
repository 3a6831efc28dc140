"""Storage of pushed metrics: gauges are replaced, counters are added, and the number of series is bounded."""

from __future__ import annotations

import logging
from uuid import UUID

import pytest

from kafka_compat.telemetry.payload import Pairs, Pushed, Sample
from kafka_compat.telemetry.pushed import PushedBy, PushedMetrics

ID = UUID(int=7)
SHOWN_MS = 60_000


def _gauge(name: str, value: float) -> Sample:
    return Sample(name, (), value, grows=False, is_delta=False)


def _delta(name: str, value: float) -> Sample:
    return Sample(name, (), value, grows=True, is_delta=True)


def _take(
    pushed: PushedMetrics,
    *samples: Sample,
    number: int = 7,
    now_ms: int = 0,
    identity: Pairs = (),
    left_out: int = 0,
) -> None:
    told = Pushed(list(samples), left_out, (("group", "g"),))
    about = (("about", "x"),)
    pushed.take(UUID(int=number), identity or _client(number), about, told, SHOWN_MS, now_ms)


def _client(number: int) -> Pairs:
    return (("client_id", str(number)),)


def _only(pushed: PushedMetrics) -> PushedBy:
    (client,) = pushed.clients()
    return client


def test_gauges_are_replaced_and_counters_are_summed() -> None:
    pushed = PushedMetrics(100)
    _take(pushed, _gauge("a", 1), _gauge("b", 2), _delta("c_total", 7))
    _take(pushed, _gauge("a", 5), _delta("c_total", 3), Sample("d_total", (), 9, grows=True, is_delta=False))
    _take(pushed, _gauge("a", 5), _delta("c_total", 0), Sample("d_total", (), 11, grows=True, is_delta=False))
    client = _only(pushed)
    assert client.gauges == {("a", ()): 5}
    assert client.counters == {("c_total", ()): 10, ("d_total", ()): 11}
    assert pushed.series == len(client) == 3
    assert client.about == (("about", "x"), ("group", "g"))


def test_a_metric_name_can_have_only_one_type() -> None:
    pushed = PushedMetrics(100)
    _take(pushed, _gauge("a", 1))
    _take(pushed, _delta("a", 2), _gauge("a", 9))
    client = _only(pushed)
    assert (client.gauges, client.counters) == ({}, {("a", ()): 2})


def test_metrics_of_another_client_with_the_same_id_start_from_scratch() -> None:
    pushed = PushedMetrics(100)
    _take(pushed, _delta("c", 7))
    _take(pushed, _delta("c", 1), identity=(("client_id", "other"),))
    assert _only(pushed).counters == {("c", ()): 1}


def test_metrics_of_silent_clients_expire() -> None:
    pushed = PushedMetrics(100)
    _take(pushed, _gauge("a", 1), number=1)
    _take(pushed, _gauge("a", 1), number=2, now_ms=10)
    pushed.expire(SHOWN_MS)
    assert _only(pushed).identity == _client(2)
    pushed.expire(SHOWN_MS + 10)
    assert (pushed.clients(), pushed.series) == ([], 0)


def test_one_client_can_use_at_most_a_tenth_of_the_series(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING)
    pushed = PushedMetrics(100)
    for _ in range(3):
        _take(pushed, *(_gauge(f"g{number}", 1) for number in range(15)), left_out=2)
    assert (pushed.series, pushed.left_out) == (10, 3 * (5 + 2))
    # The message is logged once.
    (record,) = caplog.records
    assert "kafka.compat.client.metrics.series.max=100" in record.getMessage()


def test_the_least_recently_pushed_metrics_are_evicted() -> None:
    pushed = PushedMetrics(20)
    for number in range(10):
        _take(pushed, _gauge("a", 1), _gauge("b", 1), number=number)
    _take(pushed, _gauge("a", 2), number=0)
    _take(pushed, _gauge("a", 1), _gauge("b", 1), number=10)
    shown = [client.identity for client in pushed.clients()]
    assert pushed.series == 19 and shown[-2:] == [_client(0), _client(10)]
    assert _client(1) not in shown
