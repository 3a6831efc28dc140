"""Delegation token requests get the same responses from our broker and from Apache Kafka 3.9.1."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from kafka_compat.errors import ErrorCode
from kafka_compat.protocol.api_keys import ApiKey
from tests.conformance.comparison import differences, in_order
from tests.conformance.wire import Closed, Connection, Plain
from tests.security.logins import Refused, TlsConnection, TokenClient, log_in_by_token
from tests.security.tokens.world import PASSWORDS, Place, World, create, genuine_broker, our_broker
from tests.support.process import wait_until

VERSIONS = {
    ApiKey.CREATE_DELEGATION_TOKEN: range(1, 4),
    ApiKey.RENEW_DELEGATION_TOKEN: range(1, 3),
    ApiKey.EXPIRE_DELEGATION_TOKEN: range(1, 3),
    ApiKey.DESCRIBE_DELEGATION_TOKEN: range(1, 4),
}
MINUTE_MS = 60_000
LONG_MAX = 2**63 - 1

Request = Plain | Callable[[str], Plain]
"""A request, or a function that creates it for a side: "ours" or "genuine"."""


def user(name: str) -> Plain:
    return {"principal_type": "User", "principal_name": name}


def neutral(answer: Any, api_key: ApiKey, issued_ms: int = 0, field: str = "") -> Any:
    """Replace ids and secrets with their lengths, and times with minutes since the issue time."""
    if isinstance(answer, list):
        return in_order([neutral(item, api_key, issued_ms) for item in answer], api_key, field)
    if not isinstance(answer, dict):
        return answer
    for name in ("issue_timestamp", "issue_timestamp_ms"):
        issued_ms = answer.get(name, issued_ms)
    found = {}
    for name, value in answer.items():
        if name in ("token_id", "hmac"):
            found[name] = len(value)
        elif "timestamp" in name and value >= 0:
            found[name] = round((value - issued_ms) / MINUTE_MS)
        else:
            found[name] = neutral(value, api_key, issued_ms, name)
    return found


class Both:
    """A client of each broker, both authenticated as the user `who`, or unauthenticated if `who` is None."""

    def __init__(self, ours: Place, genuine: Place, who: str | None) -> None:
        self.sides: dict[str, Connection] = {}
        for side, place in (("ours", ours), ("genuine", genuine)):
            self.sides[side] = Connection(place.plain) if who is None else place.login(who).connection

    def close(self) -> None:
        for connection in self.sides.values():
            connection.close()

    def same(self, api_key: ApiKey, request: Request, version: int | None = None) -> dict[str, Plain]:
        """Check that both responses match in every version, and return those of the last version."""
        versions = VERSIONS[api_key] if version is None else (version,)
        answers: dict[str, Plain] = {}
        for each in versions:
            for side, connection in self.sides.items():
                given = request(side) if callable(request) else request
                answers[side] = connection.ask(api_key, each, given)
            # Compare responses with only an expiry time relative to that of Apache Kafka.
            base = answers["genuine"].get("expiry_timestamp_ms", 0) if "hmac" not in answers["ours"] else 0
            ours, genuine = (neutral(answers[side], api_key, base) for side in ("ours", "genuine"))
            found = list(differences(ours, genuine, api_key))
            assert not found, f"{api_key.name} v{each} {found}"
        return answers

    def create(self, version: int | None = None, **given: Any) -> dict[str, Plain]:
        whole = {"owner_principal_type": None, "owner_principal_name": None, "max_lifetime_ms": -1}
        request = whole | {"renewers": []} | given
        return self.same(ApiKey.CREATE_DELEGATION_TOKEN, request, version)

    def renew(self, tokens: dict[str, Plain], period_ms: int) -> int:
        """Check that both responses match, and return their error code."""
        request = lambda side: {"hmac": tokens[side]["hmac"], "renew_period_ms": period_ms}  # noqa: E731
        code: int = self.same(ApiKey.RENEW_DELEGATION_TOKEN, request)["ours"]["error_code"]
        return code

    def expire(self, tokens: dict[str, Plain], period_ms: int, version: int | None = None) -> int:
        """Check that both responses match, and return their error code."""
        request = lambda side: {"hmac": tokens[side]["hmac"], "expiry_time_period_ms": period_ms}  # noqa: E731
        code: int = self.same(ApiKey.EXPIRE_DELEGATION_TOKEN, request, version)["ours"]["error_code"]
        return code

    def describe(self, *owners: str, everybody: bool = False) -> list[Plain]:
        request = {"owners": None if everybody else [user(name) for name in owners]}
        tokens: list[Plain] = self.same(ApiKey.DESCRIBE_DELEGATION_TOKEN, request)["ours"]["tokens"]
        return tokens


Open = Callable[[str | None], Both]


@pytest.fixture
def both(world: World) -> Iterator[Open]:
    opened: list[Both] = []

    def open_for(who: str | None) -> Both:
        found = Both(world.ours, world.genuine, who)
        opened.append(found)
        return found

    yield open_for
    for each in opened:
        each.close()


def test_tokens_are_created_renewed_and_expired_as_in_apache_kafka(both: Open) -> None:
    alice, bob, carol = both("alice"), both("bob"), both("carol")
    tokens = alice.create(3, renewers=[user("bob"), user("x, y=*~ü")], max_lifetime_ms=30 * MINUTE_MS)
    assert tokens["ours"]["error_code"] == 0
    (found,) = [item for item in alice.describe("alice") if item["token_id"] == tokens["ours"]["token_id"]]
    assert found["hmac"] == tokens["ours"]["hmac"]
    assert found["expiry_timestamp"] - found["issue_timestamp"] == 30 * MINUTE_MS
    assert alice.renew(tokens, 5 * MINUTE_MS) == 0
    assert bob.renew(tokens, 20 * MINUTE_MS) == 0
    assert bob.expire(tokens, 10 * MINUTE_MS) == 0
    assert alice.renew(tokens, -1) == 0
    assert alice.expire(tokens, 100 * MINUTE_MS) == 0
    assert carol.renew(tokens, 1) == ErrorCode.DELEGATION_TOKEN_OWNER_MISMATCH
    assert carol.expire(tokens, -1) == ErrorCode.DELEGATION_TOKEN_OWNER_MISMATCH
    carol.describe("bob")
    bob.describe("bob", "nobody")
    carol.describe(everybody=True)
    assert alice.describe() == []
    assert bob.expire(tokens, -1, 2) == 0
    assert alice.renew(tokens, 1) == ErrorCode.DELEGATION_TOKEN_NOT_FOUND
    assert alice.expire(tokens, -1) == ErrorCode.DELEGATION_TOKEN_NOT_FOUND


@pytest.mark.parametrize("lifetime_ms", [-5, 0, 1000, 2 * 86_400_000, 8 * 86_400_000, LONG_MAX])
def test_token_lifetimes_match_apache_kafkas(both: Open, lifetime_ms: int) -> None:
    tokens = both("alice").create(max_lifetime_ms=lifetime_ms)
    assert tokens["ours"]["error_code"] == 0


def test_an_expired_token_is_listed_but_unusable(both: Open, world: World) -> None:
    alice = both("alice")
    tokens = alice.create(3)
    assert alice.expire(tokens, 0, 2) == 0
    assert alice.create(2, max_lifetime_ms=1)["ours"]["error_code"] == 0
    expired = ErrorCode.DELEGATION_TOKEN_EXPIRED
    wait_until(lambda: alice.renew(tokens, -1) == expired, 10, "the token expires", 0.01)
    assert alice.expire(tokens, 1000) == expired
    assert len(alice.describe("alice")) >= 2
    for side, place in (("ours", world.ours), ("genuine", world.genuine)):
        login = log_in_by_token(place.sasl, tokens[side]["token_id"], tokens[side]["hmac"])
        with login.connection, pytest.raises(Closed):
            login.connection.ask(ApiKey.METADATA, 4, {"topics": []})
    assert alice.expire(tokens, -1, 2) == 0


def test_requests_to_create_tokens_for_other_users_get_kafkas_responses(both: Open) -> None:
    alice, bob, carol = both("alice"), both("bob"), both("carol")
    for_bob = {"owner_principal_type": "User", "owner_principal_name": "bob", "renewers": [user("carol")]}
    tokens = alice.create(3, **for_bob)
    assert tokens["ours"]["principal_name"] == "bob"
    alice.describe("bob")
    bob.describe("alice")
    # The requester may not change the token.
    assert alice.renew(tokens, 1000) == ErrorCode.DELEGATION_TOKEN_OWNER_MISMATCH
    assert carol.renew(tokens, 1000) == 0
    assert bob.expire(tokens, -1, 2) == 0
    for kind, name in (("Group", "g"), ("", "nobody"), ("User", ""), (None, ""), (None, "x")):
        alice.create(3, owner_principal_type=kind, owner_principal_name=name)


def test_invalid_requests_get_kafkas_errors(both: Open) -> None:
    alice = both("alice")
    no_user = {"principal_type": "Group", "principal_name": "g"}
    refused = alice.create(renewers=[user("bob"), no_user])["ours"]["error_code"]
    assert refused == ErrorCode.INVALID_PRINCIPAL_TYPE
    for secret in (b"", b"x" * 64):
        nothing = {side: {"hmac": secret} for side in ("ours", "genuine")}
        assert alice.renew(nothing, 1) == ErrorCode.DELEGATION_TOKEN_NOT_FOUND
        assert alice.expire(nothing, 1) == ErrorCode.DELEGATION_TOKEN_NOT_FOUND


def ask_everything(client: Both, tokens: dict[str, Plain]) -> set[int]:
    """Send every delegation token request, and return the error codes."""
    no_user = {"principal_type": "Group", "principal_name": "g"}
    codes = {
        client.create()["ours"]["error_code"],
        client.create(owner_principal_type="User", owner_principal_name="bob")["ours"]["error_code"],
        client.renew(tokens, 1),
        client.expire(tokens, -1),
    }
    client.create(renewers=[no_user])
    for owners in (None, [], [user("alice")]):
        answers = client.same(ApiKey.DESCRIBE_DELEGATION_TOKEN, {"owners": owners})
        codes.add(answers["ours"]["error_code"])
    return codes


def test_anonymous_clients_and_token_holders_cannot_create_tokens(both: Open, world: World) -> None:
    tokens = both("alice").create(3)
    not_allowed = {ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED}
    assert ask_everything(both(None), tokens) == not_allowed
    holder = both("alice")
    for side, place in (("ours", world.ours), ("genuine", world.genuine)):
        holder.sides[side].close()
        token = tokens[side]
        login = log_in_by_token(place.sasl, token["token_id"], token["hmac"], "SCRAM-SHA-512")
        assert 23 * 3_600_000 < login.lifetime_ms <= 24 * 3_600_000
        holder.sides[side] = login.connection
    assert ask_everything(holder, tokens) == not_allowed


def test_over_tls_only_clients_with_a_certificate_can_create_tokens(both: Open, world: World) -> None:
    tokens = both("alice").create(3)
    certificate = world.authority.sign("dave")
    for shown in (None, certificate):
        client = both(None)
        for side, place in (("ours", world.ours), ("genuine", world.genuine)):
            client.sides[side].close()
            client.sides[side] = TlsConnection(place.tls, shown)
        if shown is None:
            assert ask_everything(client, tokens) == {ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED}
            continue
        own = client.create(3)
        assert own["ours"]["principal_name"] == "CN=dave"
        for side, place in (("ours", world.ours), ("genuine", world.genuine)):
            log_in_by_token(place.sasl, own[side]["token_id"], own[side]["hmac"]).connection.close()
        assert client.expire(tokens, -1) == ErrorCode.DELEGATION_TOKEN_OWNER_MISMATCH
        assert client.expire(own, -1, 2) == 0


def test_unusable_tokens_are_rejected_at_login(world: World) -> None:
    """Cases: a wrong secret, an unknown id, and a user's name and password as a token."""
    for place in (world.ours, world.genuine):
        alice = place.login("alice")
        with alice.connection:
            token = create(alice)
        for token_id, secret in (
            (token["token_id"], b"x" * 64),
            ("nothing", token["hmac"]),
            ("alice", PASSWORDS["alice"].encode()),
        ):
            with pytest.raises((Refused, Closed)) as refused:
                log_in_by_token(place.sasl, token_id, secret)
            assert "due to invalid credentials with SASL mechanism SCRAM-SHA-256" in str(refused.value)


def test_a_session_authenticated_with_a_token_has_the_token_owners_principal(world: World) -> None:
    """It can reauthenticate with a different token of the same owner, but not of another owner (KIP-368)."""
    mechanism = "SCRAM-SHA-256"
    for place in (world.ours, world.genuine):
        alice, bob = place.login("alice"), place.login("bob")
        with alice.connection, bob.connection:
            first, second, other = create(alice), create(alice), create(bob)
        login = log_in_by_token(place.sasl, first["token_id"], first["hmac"])
        with login.connection:
            login.again(mechanism, TokenClient(mechanism, second["token_id"], second["hmac"]))
            assert login.lifetime_ms > 0
            refused = create(login)["error_code"]
            assert refused == ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED
        login = log_in_by_token(place.sasl, first["token_id"], first["hmac"])
        with login.connection, pytest.raises(Refused, match="Cannot change principals"):
            login.again(mechanism, TokenClient(mechanism, other["token_id"], other["hmac"]))


def test_tokens_are_disabled_without_a_secret_key(tmp_path: Path, campaign: bool) -> None:
    """Compared with Apache Kafka only in campaigns, because starting another one is slow."""
    ours = our_broker(tmp_path / "ours", key=None)
    no_key = {"delegation.token.secret.key": ""}
    other = (
        genuine_broker(tmp_path / "other", overrides=no_key)
        if campaign
        else our_broker(tmp_path / "other", no_key)
    )
    try:
        ours.server.launch()
        other.server.start()
        ours.server.wait_ready()
        for place in (ours, other):
            place.make_users()
            wait_until(place.knows_users, 20, "users can log in")
        client, stranger = Both(ours, other, "alice"), Both(ours, other, None)
        nothing = {side: {"hmac": b"x"} for side in ("ours", "genuine")}
        assert ask_everything(client, nothing) == {ErrorCode.DELEGATION_TOKEN_AUTH_DISABLED}
        assert ask_everything(stranger, nothing) == {ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED}
        client.close()
        stranger.close()
    finally:
        ours.server.stop()
        other.server.stop()
