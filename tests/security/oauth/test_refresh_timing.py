"""Refresh times of keys and tokens, and the responses of token endpoints, without I/O."""

from __future__ import annotations

import base64
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafka_compat.http_client import Unreachable
from kafka_compat.security.oauth.key_set import (
    ID_CHARACTERS_MAX,
    IDS_MAX,
    INTERVAL_MS,
    RETRY_MS,
    EarlyRefresh,
)
from kafka_compat.security.oauth.login import RefreshWindow, token_of
from kafka_compat.security.oauth.unsecured import AccessTokenText


def test_a_missing_key_is_requested_at_most_once_a_minute() -> None:
    early = EarlyRefresh()
    assert early.missed("k", 0)
    assert not early.missed("k", RETRY_MS - 1)
    assert early.missed("k", RETRY_MS)
    assert early.missed("other", RETRY_MS)
    early.fetched(["k", None])
    assert early.missed("k", RETRY_MS + 1)


def test_unknown_key_ids_use_bounded_memory() -> None:
    early = EarlyRefresh()
    assert not early.missed("k" * (ID_CHARACTERS_MAX + 1), 0)
    for number in range(IDS_MAX + 1):
        assert early.missed(str(number), 0)
    assert early.missed("0", 1), "the oldest id is still remembered"
    assert not early.missed(str(IDS_MAX), 1)


def test_unscheduled_key_fetches_have_a_minimum_interval() -> None:
    early = EarlyRefresh()
    assert early.wait_ms(0) == 0
    early.fetching(100)
    assert early.wait_ms(100) == INTERVAL_MS
    assert early.wait_ms(100 + INTERVAL_MS) == 0


_WINDOW = RefreshWindow(factor=0.8, jitter=0.05, min_period_s=60, buffer_s=300)


@pytest.mark.parametrize(
    ("lifetime_s", "chance", "after_s"),
    [
        (100, 0.0, 80),  # Shorter than the period and buffer together: a share of the remaining time.
        (3600, 0.0, 2880),
        (3600, 1.0, 3060),
        (1000, 0.0, 700),  # The buffer before expiry starts first.
        (361, 0.0, 61),
    ],
)
def test_a_token_is_refreshed_when_kafka_would_refresh_it(
    lifetime_s: int, chance: float, after_s: int
) -> None:
    token = AccessTokenText("t", 5_000, 5_000 + lifetime_s * 1000)
    assert _WINDOW.refresh_ms(token, 5_000, chance) == 5_000 + after_s * 1000


@given(st.integers(0, 10**7), st.integers(-(10**6), 10**6), st.floats(0, 1))
def test_a_token_is_refreshed_before_it_expires(lifetime_ms: int, age_ms: int, chance: float) -> None:
    token = AccessTokenText("t", 10**9 - age_ms, 10**9 + lifetime_ms)
    assert 10**9 <= _WINDOW.refresh_ms(token, 10**9, chance) <= 10**9 + lifetime_ms


def _answer(claims: object) -> bytes:
    part = base64.urlsafe_b64encode(json.dumps(claims).encode()).decode().rstrip("=")
    return json.dumps({"access_token": f"e30.{part}.x"}).encode()


def test_the_response_of_a_token_endpoint_is_parsed() -> None:
    token = token_of(_answer({"iat": 1, "exp": 2.5}))
    assert (token.begins_ms, token.expires_ms) == (1000, 2500)
    assert "e30" not in repr(token)


@pytest.mark.parametrize(
    "answer",
    [
        b"",
        b"x",
        b"[]",
        b"{}",
        b'{"access_token": 5}',
        b'{"access_token": "opaque"}',
        b"[" * 100_000,
        _answer([]),
        _answer({}),
        _answer({"exp": "5"}),
        _answer({"exp": None}),
    ],
)
def test_all_invalid_responses_raise_the_same_error(answer: bytes) -> None:
    with pytest.raises(Unreachable):
        token_of(answer)
