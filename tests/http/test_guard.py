"""Access to the HTTP listener: requests from other sites' pages are rejected, and remote clients need the
token.
"""

from __future__ import annotations

import pytest

from kafka_compat.http.guard import Guard, is_loopback

OPEN = Guard("127.0.0.1", None)
CLOSED = Guard("0.0.0.0", "a token")


@pytest.mark.parametrize("host", ["127.0.0.1:8080", "localhost:8080", "localhost", "127.0.0.2", "[::1]:8080"])
def test_requests_with_a_loopback_host_header_are_allowed(host: str) -> None:
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
def test_a_request_from_another_sites_page_is_rejected(headers: dict[str, str]) -> None:
    refusal = OPEN.refusal(headers)
    assert refusal is not None and refusal.status == 403


@pytest.mark.parametrize("scheme", ["Bearer", "bearer"])
def test_the_token_allows_requests_from_anywhere(scheme: str) -> None:
    given = {"Host": "broker.example", "Origin": "x", "Authorization": f"{scheme} a token"}
    assert CLOSED.refusal(given) is None


@pytest.mark.parametrize("given", ["", "Bearer", "Bearer ", "Bearer a token ", "Basic a token", "Bearer ä"])
def test_a_wrong_token_is_rejected(given: str) -> None:
    refusal = CLOSED.refusal({"Host": "127.0.0.1", "Authorization": given})
    assert refusal is not None and refusal.status == 401
    assert "kafka.compat.http.token" in refusal.text and "a token" not in refusal.text


def test_public_paths_do_not_need_a_token_but_reject_requests_from_other_sites() -> None:
    assert CLOSED.refusal({"Host": "10.0.0.1:8080"}, for_anybody=True) is None
    assert OPEN.refusal({"Host": "127.0.0.1:8080"}, for_anybody=True) is None
    for headers in ({"Host": "rebound.example"}, {"Host": "127.0.0.1", "Origin": "https://example.com"}):
        assert OPEN.refusal(headers, for_anybody=True) is not None


def test_loopback_addresses_are_recognized() -> None:
    assert all(map(is_loopback, ["localhost", "127.0.0.1", "127.1.2.3", "::1"]))
    assert not any(map(is_loopback, ["0.0.0.0", "::", "10.0.0.1", "example.com", ""]))


@pytest.mark.parametrize("guard", [OPEN, CLOSED])
@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": "https://example.com"},
        {"Origin": "http://127.0.0.1:8081"},
        {"Origin": "null"},
        {"Origin": "http://[::1"},
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site", "Sec-Fetch-Mode": "cors"},
        {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate", "Origin": "https://example.com"},
    ],
)
def test_paths_for_browsers_reject_requests_from_other_sites(guard: Guard, headers: dict[str, str]) -> None:
    given = {"Host": "127.0.0.1:8080", **headers}
    refusal = guard.refusal(given, for_anybody=True, for_browsers=True, has_session=True)
    assert refusal is not None and refusal.status == 403


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"Origin": "http://127.0.0.1:8080", "Sec-Fetch-Site": "same-origin"},
        {"Sec-Fetch-Site": "none", "Sec-Fetch-Mode": "navigate"},
        {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate"},
    ],
)
def test_requests_from_the_web_console_itself_are_allowed(headers: dict[str, str]) -> None:
    given = {"Host": "127.0.0.1:8080", **headers}
    assert OPEN.refusal(given, for_browsers=True) is None
    assert CLOSED.refusal(given, for_browsers=True, has_session=True) is None
    without = CLOSED.refusal(given, for_browsers=True)
    assert without is not None and without.status == 401
    # A session does not replace the token outside of the web console.
    elsewhere = CLOSED.refusal(given, has_session=True)
    assert elsewhere is not None and elsewhere.status == 401


def test_a_host_name_that_dns_rebinding_would_use_is_rejected() -> None:
    refusal = OPEN.refusal({"Host": "rebound.example", "Origin": "http://rebound.example"}, for_browsers=True)
    assert refusal is not None and refusal.status == 403
