"""Rates, precedence and throttle times, compared with Kafka's own quota managers and with brute force."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from itertools import product
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kafka_compat.quotas.client_rates import ClientRates, MutationRates
from kafka_compat.quotas.precedence import ANY, Name, Quotas
from kafka_compat.quotas.rates import SampledRate, TokenBucket, Windows, java_int
from tests.oracle.quota_oracle import MUTATION, PRODUCE, REQUEST, QuotaOracle
from tests.support.campaign import rounds

BEGIN_MS = 1_700_000_000_000
"""A time on the clock that Kafka uses."""

USERS: list[Name] = ["alice", "bob", None, ANY]
CLIENTS: list[Name] = ["c", "d", None, ANY]
ENTITIES = [(user, client) for user, client in product(USERS, CLIENTS) if (user, client) != (ANY, ANY)]

steps_ms = st.one_of(
    st.integers(0, 30),
    st.integers(300, 1_100),
    st.integers(0, 3_000),
    st.sampled_from([999, 1_000, 1_001, 9_999, 10_000, 10_999, 11_000, 11_001, 22_000, 60_000]),
)
few = st.tuples(st.sampled_from(["alice", "bob"]), st.sampled_from(["c", "d"]))
who = st.tuples(st.sampled_from(["alice", "bob", "eve"]), st.sampled_from(["c", "d", "e", ""]))
values = st.one_of(st.integers(0, 50_000), st.floats(0, 100, allow_nan=False))
a_rate = st.one_of(st.integers(1, 100_000).map(float), st.floats(0.01, 50), st.just(0.0))


@pytest.fixture(scope="module")
def oracle() -> Iterator[QuotaOracle]:
    with QuotaOracle("3.9.1") as found:
        yield found


def in_kafka(name: Name) -> str:
    return "<default>" if name is None else name


quota_steps = st.tuples(st.just("quota"), st.sampled_from(ENTITIES[:-1]), a_rate | st.none(), st.just(0))
record_steps = st.tuples(
    st.sampled_from(["record", "record", "count", "take back"]), few | who, values, steps_ms
)


@settings(max_examples=rounds(everyday=200, campaign=5_000))
@given(
    kind=st.sampled_from([PRODUCE, REQUEST]),
    samples=st.sampled_from([1, 2, 3, 11]),
    window_s=st.integers(1, 2),
    default=a_rate,
    script=st.lists(st.one_of(quota_steps, *[record_steps] * 9), min_size=20, max_size=60),
)
def test_throttle_times_match_kafkas(
    oracle: QuotaOracle, kind: bytes, samples: int, window_s: int, default: float, script: list[Any]
) -> None:
    """All clients with a client id have a quota from the start. Clients without any quota are only compared
    at the end, because Kafka would measure these, too.
    """
    oracle.begin(kind, samples, window_s)
    ours = ClientRates(Windows(samples, 1000 * window_s), 1000 * window_s if kind == REQUEST else None)
    oracle.put("", "<default>", default)
    ours.quotas.put(ANY, None, default)
    now_ms = BEGIN_MS
    for what, (user, client), value, step_ms in script:
        now_ms += step_ms
        if what == "quota":
            oracle.put(in_kafka(user), in_kafka(client), value)
            ours.quotas.put(user, client, value)
        elif ours.quotas.rate(ours.quotas.owner(user, client)) is None:
            assert ours.record(user, client, value, now_ms) == 0
        elif what == "record":
            assert ours.record(user, client, value, now_ms) == oracle.record(user, client, value, now_ms)
            if client:
                assert ours.window_max(user, client) == oracle.window_max(user, client, now_ms)
        else:
            signed = -value if what == "take back" else value
            oracle.count(user, client, signed, now_ms)
            ours.count(user, client, signed, now_ms)
    # Record these clients last, so that it does not matter what Kafka measures.
    for user in ("alice", "bob", "eve"):
        if ours.quotas.rate(ours.quotas.owner(user, "")) is None:
            assert ours.record(user, "", 1, now_ms) == oracle.record(user, "", 1, now_ms) == 0


@settings(max_examples=rounds(everyday=100, campaign=5_000))
@given(
    samples=st.integers(1, 4),
    steps=st.lists(st.tuples(st.sampled_from([0, 100, 300, 500, 900]), st.integers(0, 30)), min_size=25),
)
def test_rate_samples_match_kafkas(oracle: QuotaOracle, samples: int, steps: list[tuple[int, int]]) -> None:
    """The client runs for so long that its samples are reused."""
    oracle.begin(PRODUCE, samples, 1)
    ours = ClientRates(Windows(samples, 1000))
    oracle.put("alice", "", 10.0)
    ours.quotas.put("alice", ANY, 10.0)
    now_ms = BEGIN_MS
    for step_ms, value in steps:
        now_ms += step_ms
        assert ours.record("alice", "c", value, now_ms) == oracle.record("alice", "c", value, now_ms)


@given(
    samples=st.integers(1, 11),
    window_s=st.integers(1, 3),
    default=a_rate,
    script=st.lists(
        st.tuples(st.booleans(), who.filter(lambda one: one[1] != ""), st.integers(0, 300), steps_ms),
        max_size=40,
    ),
)
def test_controller_mutations_are_rejected_or_throttled_as_in_kafka(
    oracle: QuotaOracle,
    samples: int,
    window_s: int,
    default: float,
    script: list[tuple[bool, tuple[str, str], int, int]],
) -> None:
    oracle.begin(MUTATION, samples, window_s)
    ours = MutationRates(Windows(samples, 1000 * window_s))
    oracle.put("", "<default>", default)
    ours.quotas.put(ANY, None, default)
    now_ms = BEGIN_MS
    for strict, (user, client), count, step_ms in script:
        now_ms += step_ms
        asked = ours.refused_for_ms if strict else ours.record
        expected = oracle.mutate(user, client, count, now_ms, strict=strict)
        assert java_int(asked(user, client, count, now_ms)) == expected


@given(st.dictionaries(st.sampled_from(ENTITIES), st.floats(1, 9)), who)
def test_the_most_specific_quota_applies(
    stored: dict[tuple[Name, Name], float], client: tuple[str, str]
) -> None:
    quotas = Quotas()
    for entity, rate in stored.items():
        quotas.put(*entity, rate)
    user, client_id = client
    order: list[tuple[Name, Name]] = [
        (user, client_id),
        (user, None),
        (user, ANY),
        (None, client_id),
        (None, None),
        (None, ANY),
        (ANY, client_id),
        (ANY, None),
    ]
    if not client_id:
        # In Kafka, a client without an id has the user's quota, if there is one.
        order = [(user, ANY), (None, ANY)]
    expected = next((stored[entity] for entity in order if entity in stored), None)
    assert quotas.rate(quotas.owner(user, client_id)) == expected


@given(st.lists(st.tuples(steps_ms, st.integers(0, 1000)), min_size=1), st.integers(0, 30_000))
def test_an_idle_rate_is_equivalent_to_a_new_rate(recorded: list[tuple[int, int]], later_ms: int) -> None:
    windows = Windows(11, 1000)
    used, now_ms = SampledRate(windows), 0
    for step_ms, value in recorded:
        now_ms += step_ms
        used.record(value, now_ms)
    now_ms += later_ms
    if used.is_idle(now_ms):
        new = SampledRate(windows)
        for each in (used, new):
            each.record(500, now_ms)
        assert used.measure(now_ms) == new.measure(now_ms)
        assert used.measure(now_ms + 1500) == new.measure(now_ms + 1500)
    else:
        assert later_ms < 11_000


def test_a_full_token_bucket_is_equivalent_to_a_new_token_bucket() -> None:
    bucket = TokenBucket(Windows(11, 1000))
    assert bucket.is_idle(5.0, 0)
    bucket.record(60, 5.0, 1_000)
    assert not bucket.is_idle(5.0, 1_000)
    assert bucket.tokens(5.0, 1_000) == -5
    assert bucket.is_idle(5.0, 13_000)


def test_rates_of_idle_clients_are_dropped(monkeypatch: pytest.MonkeyPatch) -> None:
    rates, mutations = ClientRates(Windows(11, 1000)), MutationRates(Windows(11, 1000))
    for each in (rates, mutations):
        each.quotas.put(ANY, None, 10.0)
    for number in range(1000):
        for each in (rates, mutations):
            each.record("u", f"client-{number}", 1, 100 * number)
    assert len(rates) < 200, "only the clients of the last eleven seconds are kept"
    assert len(mutations) < 200

    monkeypatch.setattr("kafka_compat.quotas.rates.OWNERS_MAX", 50)
    for number in range(1000):
        for each in (rates, mutations):
            each.record("u", f"other-{number}", 1, 100_000)
    assert len(rates) <= 200 and len(mutations) <= 200
    assert sys.getsizeof(rates) < 1000
