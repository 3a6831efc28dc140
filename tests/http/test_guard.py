"""Who may ask over HTTP: nobody by way of a browser, nobody on another machine without the token."""

from __future__ import annotations

import pytest

from kafka_compat.http.guard import Guard, is_loopback

OPEN = Guard("127.0.0.1", None)
CLOSED = Guard("0.0.0.0", "a token")


@pytest.mark.parametrize("host", ["127.0.0.1:8080", "localhost:8080", "localhost", "127.0.0.2", "[::1]:8080"])
def test_a_program_on_this_machine_may(host: str) -> None:
    assert OPEN.refusal({"Host": host}) is None


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"Host": ""},
        {"Host": "rebound.example:8080"},
        {"Host": "10.0.0.1:8080"},
        {"Host": "127.0.0.1.example"},
        {"Host": "[::1"},
        {"Host": "127.0.0.1:8080", "Origin": "https://example.com"},
        {"Host": "127.0.0.1:8080", "Origin": "null"},
        {"Host": "127.0.0.1:8080", "Origin": "http://127.0.0.1:8080"},
    ],
)
def test_a_page_may_not(headers: dict[str, str]) -> None:
    refusal = OPEN.refusal(headers)
    assert refusal is not None and refusal.status == 403


@pytest.mark.parametrize("scheme", ["Bearer", "bearer"])
def test_with_the_token_from_anywhere(scheme: str) -> None:
    given = {"Host": "broker.example", "Origin": "x", "Authorization": f"{scheme} a token"}
    assert CLOSED.refusal(given) is None


@pytest.mark.parametrize("given", ["", "Bearer", "Bearer ", "Bearer a token ", "Basic a token", "Bearer ä"])
def test_with_another_from_nowhere(given: str) -> None:
    refusal = CLOSED.refusal({"Host": "127.0.0.1", "Authorization": given})
    assert refusal is not None and refusal.status == 401
    assert "kafka.compat.http.token" in refusal.text and "a token" not in refusal.text


def test_what_is_for_anybody_needs_no_token_and_yet_no_page_may() -> None:
    assert CLOSED.refusal({"Host": "10.0.0.1:8080"}, for_anybody=True) is None
    assert OPEN.refusal({"Host": "127.0.0.1:8080"}, for_anybody=True) is None
    for headers in ({"Host": "rebound.example"}, {"Host": "127.0.0.1", "Origin": "https://example.com"}):
        assert OPEN.refusal(headers, for_anybody=True) is not None


def test_what_is_loopback() -> None:
    assert all(map(is_loopback, ["localhost", "127.0.0.1", "127.1.2.3", "::1"]))
    assert not any(map(is_loopback, ["0.0.0.0", "::", "10.0.0.1", "example.com", ""]))
