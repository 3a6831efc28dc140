"""Quota metrics: usage of clients with quotas, and their throttle times."""

from __future__ import annotations

import math
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from kafka_compat.protocol.api_keys import ApiKey
from kafka_compat.quotas.client_quota_manager import Enforcement, Used
from kafka_compat.quotas.rates import SampledAverage, SampledRate, Windows
from kafka_compat.testing import KafkaBroker
from tests.conformance.wire import Connection
from tests.metrics.scraping import Scrape
from tests.quotas.clients import fetch_request, produce_request, quotas

QUOTA = "kafka_server_quota_"
WINDOWS = Windows(11, 1000)
SECOND_MS = 1000


@pytest.fixture(scope="module")
def broker() -> Iterator[KafkaBroker]:
    with KafkaBroker() as running:
        yield running


def test_throttled_clients_are_exported(broker: KafkaBroker) -> None:
    address = broker.bootstrap_servers
    broker.create_topic("limited")
    fast = {"resource": "Produce", "clientId": "fast"}
    assert Scrape(broker.control.url).value(f"{QUOTA}byte_rate", **fast) is None
    with (
        quotas(address, ("", "fast"), producer_byte_rate=10_000, consumer_byte_rate=1_000_000),
        Connection(address, client_id="fast") as connection,
    ):
        request = produce_request("limited", 5_000)
        assert connection.ask(ApiKey.PRODUCE, 9, request)["throttle_time_ms"] == 0
        seen = Scrape(broker.control.url)
        rate = seen.value(f"{QUOTA}byte_rate", **fast)
        # The rate covers ten seconds before the first request, in which nothing was sent.
        assert rate is not None and 0 < rate <= 600
        assert math.isnan(seen.value(f"{QUOTA}throttle_time", **fast) or 0)
        waited_ms = connection.ask(ApiKey.PRODUCE, 9, produce_request("limited", 200_000))["throttle_time_ms"]
        assert waited_ms > 0
        seen = Scrape(broker.control.url)
        assert seen.value(f"{QUOTA}throttle_time", **fast) == waited_ms
        assert (seen.value(f"{QUOTA}byte_rate", **fast) or 0) > 10_000
    seen = Scrape(broker.control.url)
    assert seen.value(f"{QUOTA}byte_rate", **fast) is None


def test_quotas_of_consumers_users_and_mutations_are_exported(broker: KafkaBroker) -> None:
    address = broker.bootstrap_servers
    broker.create_topic("read")
    with (
        quotas(address, (None, "reader"), consumer_byte_rate=10_000_000, request_percentage=1_000),
        quotas(address, (None, ""), controller_mutation_rate=100),
        Connection(address, client_id="reader") as connection,
    ):
        connection.ask(ApiKey.PRODUCE, 9, produce_request("read", 50_000))
        connection.ask(ApiKey.FETCH, 12, fetch_request("read", 0, 1 << 20))
        connection.ask(ApiKey.CREATE_TOPICS, 6, {"topics": [_topic("made", 7)], "timeout_ms": 10_000})
        seen = Scrape(broker.control.url)
        of_client = {"user": "ANONYMOUS", "clientId": "reader"}
        rate = seen.value(f"{QUOTA}byte_rate", resource="Fetch", **of_client)
        assert rate is not None and rate > 0
        assert (seen.value(f"{QUOTA}request_time", resource="Request", **of_client) or 0) > 0
        of_user = {"resource": "ControllerMutation", "user": "ANONYMOUS"}
        assert (seen.value(f"{QUOTA}mutation_rate", **of_user) or 0) > 0
        tokens = seen.value(f"{QUOTA}tokens", **of_user)
        assert tokens is not None and 1_000 <= tokens <= 1_100
        assert seen.value(f"{QUOTA}byte_rate", resource="Produce", **of_client) is None


def _topic(name: str, partitions: int) -> dict[str, Any]:
    return {"name": name, "num_partitions": partitions, "replication_factor": 1}


class Clock:
    now_ms = 1_000_000

    def __call__(self) -> int:
        return self.now_ms


def asking(key: ApiKey, size_bytes: int, busy_s: float = 0.0) -> Any:
    client = {"principal": SimpleNamespace(name="alice"), "client_id": "c"}
    return SimpleNamespace(api_key=key, api_version=9, request_bytes=size_bytes, busy_s=busy_s, **client)


def test_a_throttled_request_counts_toward_the_quota_with_the_longest_delay() -> None:
    clock = Clock()
    counted = Enforcement(clock, WINDOWS, WINDOWS)
    counted.put("alice", "c", {"producer_byte_rate": "1000", "request_percentage": "1"})
    request = SimpleNamespace(acks=1)

    def used() -> dict[str, Used]:
        return {each.resource: each for each in counted.used()}

    first_ms = counted.throttle(asking(ApiKey.PRODUCE, 100_000, busy_s=0.001), request, object())
    assert first_ms > 0 and used()["Produce"].throttle_ms == first_ms
    assert math.isnan(used()["Request"].throttle_ms)
    # Exceed the window of the byte rate, so that the earlier bytes do not count.
    clock.now_ms += 60 * SECOND_MS
    second_ms = counted.throttle(asking(ApiKey.PRODUCE, 100, busy_s=10.0), request, object())
    assert second_ms > 0 and used()["Request"].throttle_ms == second_ms
    assert used()["Request"].owner == ("alice", "c")
    clock.now_ms += 61 * SECOND_MS
    assert math.isnan(used()["Produce"].throttle_ms) and math.isnan(used()["Request"].throttle_ms)
    assert used()["Produce"].rate == 0


def test_a_throttled_fetch_is_counted_when_its_response_is_built() -> None:
    clock = Clock()
    counted = Enforcement(clock, WINDOWS, WINDOWS)
    counted.put("", "c", {"consumer_byte_rate": "1000"})
    ctx = asking(ApiKey.FETCH, 100)
    waits_ms = counted.fetched(ctx, 100_000)
    assert waits_ms > 0
    request = SimpleNamespace(replica_id=-1, replica_state=SimpleNamespace(replica_id=-1))
    response = SimpleNamespace(error_code=0, throttle_time_ms=waits_ms)
    assert counted.throttle(ctx, request, response) == waits_ms
    (used,) = counted.used()
    assert (used.resource, used.owner, used.throttle_ms) == ("Fetch", ("", "c"), waits_ms)


def test_a_scrape_does_not_change_rates() -> None:
    looked_at, left_alone = SampledRate(WINDOWS), SampledRate(WINDOWS)
    now_ms = 1_000_000
    for second in range(40):
        now_ms += SECOND_MS // 3
        for rate in (looked_at, left_alone):
            if second % 7 < 5:
                rate.record(second, now_ms)
        told = looked_at.value(now_ms)
        assert told == pytest.approx(SampledRate.measure(looked_at, now_ms)[0])
        assert looked_at.measure(now_ms) == left_alone.measure(now_ms)
    now_ms += 30 * SECOND_MS
    assert looked_at.value(now_ms) == 0 and looked_at.is_idle(now_ms)


def test_an_average_expires_with_its_samples() -> None:
    average = SampledAverage(Windows(2, 30_000))
    assert math.isnan(average.value(0))
    average.record(10, 1_000)
    average.record(30, 2_000)
    assert average.value(3_000) == 20
    assert math.isnan(average.value(100_000))
