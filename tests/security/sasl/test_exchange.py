"""The SASL state of one connection: order of requests, principal, session lifetime, and reauthentication."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from kafka_compat.security.principal import Principal
from kafka_compat.security.sasl.exchange import (
    Exchange,
    Offer,
    Stage,
    UnexpectedRequest,
    UnsupportedMechanism,
)
from kafka_compat.security.sasl.mechanism import Plain, Refused

ALICE = Principal("User", "alice")
GOOD, WRONG, OTHER = b"\0alice\0secret", b"\0alice\0wrong", b"\0bob\0b"


class World:
    """An exchange with PLAIN and with a mechanism whose credentials expire, and its clocks."""

    def __init__(self, session_max_ms: int = 0, expires_ms: int | None = None) -> None:
        self.now_ms = 1_000_000
        passwords = {"alice": "secret", "bob": "b"}

        def expiring() -> Plain:
            mechanism = Plain(passwords)
            mechanism.expires_ms = expires_ms
            return mechanism

        offer = Offer({"PLAIN": lambda: Plain(passwords), "EXPIRING": expiring}, {"PLAIN": session_max_ms})
        self.exchange = Exchange(offer, lambda: self.now_ms, lambda: float(self.now_ms))

    def log_in(self, mechanism: str = "PLAIN", token: bytes = GOOD) -> None:
        self.exchange.handshake(mechanism, tokens_are_bare=False)
        self.exchange.token(token)


def test_a_client_that_follows_the_protocol_is_authenticated() -> None:
    exchange = World().exchange
    exchange.versions_reported()
    assert exchange.stage.name == "HANDSHAKE"
    exchange.handshake("PLAIN", tokens_are_bare=True)
    assert exchange.stage.name == "TOKENS" and exchange.tokens_are_bare
    assert exchange.token(GOOD) == b""
    assert exchange.is_complete and exchange.principal == ALICE
    assert not exchange.ends and exchange.session_lifetime_ms == 0


def test_requests_out_of_order_are_rejected() -> None:
    exchange = World().exchange
    with pytest.raises(UnexpectedRequest):
        exchange.token(GOOD)
    exchange.handshake("PLAIN", tokens_are_bare=False)
    with pytest.raises(UnexpectedRequest):
        exchange.handshake("PLAIN", tokens_are_bare=False)


def test_a_rejected_client_cannot_retry_on_the_same_connection() -> None:
    exchange = World().exchange
    exchange.handshake("PLAIN", tokens_are_bare=False)
    with pytest.raises(Refused):
        exchange.token(WRONG)
    assert exchange.stage is Stage.FAILED and exchange.principal is None
    with pytest.raises(UnexpectedRequest):
        exchange.token(GOOD)
    with pytest.raises(UnexpectedRequest):
        exchange.handshake("PLAIN", tokens_are_bare=False)


def test_a_disabled_mechanism_is_rejected() -> None:
    exchange = World().exchange
    with pytest.raises(UnsupportedMechanism, match="PLAIN, EXPIRING"):
        exchange.handshake("SCRAM-SHA-256", tokens_are_bare=False)
    assert exchange.stage is Stage.FAILED


@pytest.mark.parametrize(
    ("session_max_ms", "expires_ms", "mechanism", "lifetime_ms"),
    [
        (0, None, "PLAIN", None),
        (5000, None, "PLAIN", 5000),
        (0, 1_003_000, "EXPIRING", 3000),
        (0, 999_000, "EXPIRING", 0),
    ],
)
def test_a_session_expires_with_the_credential_or_at_the_configured_maximum(
    session_max_ms: int, expires_ms: int | None, mechanism: str, lifetime_ms: int | None
) -> None:
    world = World(session_max_ms, expires_ms)
    world.log_in(mechanism)
    exchange = world.exchange
    assert exchange.ends is (lifetime_ms is not None)
    assert exchange.session_lifetime_ms == (lifetime_ms or 0)
    world.now_ms += (lifetime_ms or 0) + 1
    assert exchange.has_ended is (lifetime_ms is not None)


def test_reauthentication_starts_a_new_session() -> None:
    world = World(session_max_ms=5000)
    world.log_in()
    world.now_ms += 4000
    assert world.exchange.begin_again()
    world.log_in()
    assert world.exchange.is_complete and world.exchange.session_lifetime_ms == 5000
    world.now_ms += 4000
    assert not world.exchange.has_ended


def test_reauthentication_requires_a_session_and_is_limited_to_once_a_second() -> None:
    world = World(session_max_ms=5000)
    assert not world.exchange.begin_again(), "reauthentication began without a session"
    world.log_in()
    assert world.exchange.begin_again()
    world.log_in()
    world.now_ms += 999
    assert not world.exchange.begin_again()
    world.now_ms += 1
    assert world.exchange.begin_again()
    endless = World()
    endless.log_in()
    assert not endless.exchange.begin_again()


def test_reauthentication_cannot_change_the_principal() -> None:
    world = World(session_max_ms=5000)
    world.log_in()
    assert world.exchange.begin_again()
    with pytest.raises(Refused, match=r"from User\.alice: User\.bob") as refused:
        world.log_in(token=OTHER)
    assert refused.value.client_message == str(refused.value)
    assert world.exchange.stage is Stage.FAILED


def test_reauthentication_cannot_change_the_mechanism() -> None:
    world = World(session_max_ms=5000, expires_ms=9_000_000)
    world.log_in()
    assert world.exchange.begin_again()
    world.exchange.handshake("EXPIRING", tokens_are_bare=False)
    with pytest.raises(UnexpectedRequest, match="not supported for re-authentication"):
        world.exchange.token(GOOD)


def test_clients_get_the_reason_for_a_rejection() -> None:
    world = World(session_max_ms=5000)
    world.exchange.handshake("PLAIN", tokens_are_bare=False)
    untold, told = Refused("why"), Refused("why", "this")
    assert world.exchange.client_message(told) == "this"
    generic = "Authentication failed during {} due to invalid credentials with SASL mechanism PLAIN"
    assert world.exchange.client_message(untold) == generic.format("authentication")
    world.exchange.token(GOOD)
    assert world.exchange.client_message(untold) == generic.format("re-authentication")


@pytest.mark.parametrize(
    ("token", "told"),
    [
        (b"", "Invalid SASL/PLAIN response: expected 3 tokens, got 1"),
        (b"a\0b", "Invalid SASL/PLAIN response: expected 3 tokens, got 2"),
        (b"\0alice\0sec\0ret", "Invalid SASL/PLAIN response: expected 3 tokens, got 4"),
        (b"\0\0secret", "Authentication failed: username not specified"),
        (b"\0alice\0", "Authentication failed: password not specified"),
        (WRONG, "Authentication failed: Invalid username or password"),
        (b"\0mallory\0secret", "Authentication failed: Invalid username or password"),
        (b"\0alice\0secret\xff", "Authentication failed: Invalid username or password"),
        (
            b"bob\0alice\0secret",
            "Authentication failed: Client requested an authorization id that is different from username",
        ),
    ],
)
def test_plain_rejections_use_kafkas_messages(token: bytes, told: str) -> None:
    mechanism = Plain({"alice": "secret", "bob": "b"})
    with pytest.raises(Refused) as refused:
        mechanism.evaluate(token)
    assert refused.value.client_message == told and mechanism.principal is None
    assert "secret" not in str(refused.value)


@pytest.mark.parametrize("token", [GOOD, b"alice\0alice\0secret"])
def test_plain_authenticates_with_a_password(token: bytes) -> None:
    mechanism = Plain(SimpleNamespace(get={"alice": "secret"}.get))  # type: ignore[arg-type]
    assert mechanism.evaluate(token) == b"" and mechanism.principal == ALICE
