"""Delegation tokens on a standalone broker: restarts, keys, session lifetimes, expiry, and secrecy."""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from kafka_compat.errors import ErrorCode
from kafka_compat.protocol.api_keys import ApiKey
from tests.conformance.wire import Closed, Plain
from tests.logs.reading import wait_for
from tests.security.logins import Login, Refused, TokenClient, log_in_by_token
from tests.security.tokens.world import KEY, Place, create, described, expire, our_broker, renew
from tests.support.process import wait_until

Start = Callable[..., Place]
MECHANISM = "SCRAM-SHA-256"


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    started: list[Place] = []

    def begin(overrides: dict[str, str] | None = None, key: str | None = KEY) -> Place:
        place = our_broker(tmp_path / str(len(started)), overrides, key)
        started.append(place)
        place.server.start()
        place.make_users()
        wait_until(place.knows_users, 20, "users can log in")
        return place

    yield begin
    for place in started:
        place.server.stop()


def _serves(login: Login) -> bool:
    try:
        login.connection.ask(ApiKey.METADATA, 4, {"topics": []})
    except Closed:
        return False
    return True


def test_tokens_survive_a_kill(start: Start) -> None:
    place = start()
    alice = place.login("alice")
    kept, ended, renewed = (create(alice) for _ in range(3))
    assert expire(alice, ended["hmac"])["error_code"] == 0
    ends_ms = renew(alice, renewed["hmac"], 60_000)["expiry_timestamp_ms"]
    place.server.restart(kill=True)
    alice.connection.close()
    alice = place.login("alice")
    with alice.connection:
        found = {item["token_id"]: item for item in described(alice)}
        assert found.keys() == {kept["token_id"], renewed["token_id"]}
        assert found[kept["token_id"]]["hmac"] == kept["hmac"]
        assert found[renewed["token_id"]]["expiry_timestamp"] == ends_ms
        for token in (kept, renewed):
            with log_in_by_token(place.sasl, token["token_id"], token["hmac"], MECHANISM).connection:
                pass
        with pytest.raises(Refused):
            log_in_by_token(place.sasl, ended["token_id"], ended["hmac"])
        assert expire(alice, kept["hmac"])["error_code"] == 0


def test_the_deprecated_key_setting_works_and_a_new_key_invalidates_tokens(start: Start) -> None:
    """Secrets are derived from the key, so a different key invalidates all previous secrets."""
    place = start({"delegation.token.master.key": "old"}, key=None)
    alice = place.login("alice")
    with alice.connection:
        token = create(alice)
    for settings, same in (
        ({"delegation.token.secret.key": "old", "delegation.token.master.key": "x"}, True),
        ({"delegation.token.secret.key": "new"}, False),
    ):
        place.server.stop()
        place.server.overrides.update(settings)  # type: ignore[attr-defined]
        place.server.start()
        alice = place.login("alice")
        with alice.connection:
            (found,) = described(alice)
            assert (found["hmac"] == token["hmac"]) is same
            assert found["token_id"] == token["token_id"]
            code = ErrorCode.NONE if same else ErrorCode.DELEGATION_TOKEN_NOT_FOUND
            assert renew(alice, token["hmac"])["error_code"] == code


def test_a_session_expires_with_its_token_unless_the_token_is_renewed(start: Start) -> None:
    place = start({"delegation.token.expiry.time.ms": "3000"})
    alice = place.login("alice")
    with alice.connection:
        token = create(alice)
        logins = [log_in_by_token(place.sasl, token["token_id"], token["hmac"], MECHANISM) for _ in range(2)]
        assert all(0 < login.lifetime_ms <= 3000 for login in logins)
        assert renew(alice, token["hmac"], 60_000)["error_code"] == 0
        again, let_go = logins
        again.again(MECHANISM, TokenClient(MECHANISM, token["token_id"], token["hmac"]))
        assert 50_000 < again.lifetime_ms <= 60_000
        wait_until(lambda: not _serves(let_go), 10, "the session expires", 0.1)
        assert _serves(again)
        for login in logins:
            login.connection.close()


def test_a_client_authenticated_by_a_token_cannot_create_tokens(start: Start) -> None:
    """Otherwise a stolen token could be renewed indefinitely, or used to create more."""
    place = start()
    alice = place.login("alice")
    with alice.connection:
        token = create(alice)
    holder = log_in_by_token(place.sasl, token["token_id"], token["hmac"])
    with holder.connection:
        not_allowed = ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED
        assert create(holder)["error_code"] == not_allowed
        assert renew(holder, token["hmac"])["error_code"] == not_allowed
        assert expire(holder, token["hmac"])["error_code"] == not_allowed
        request: Plain = {"owners": None}
        answer = holder.connection.ask(ApiKey.DESCRIBE_DELEGATION_TOKEN, 3, request)
        assert (answer["error_code"], answer["tokens"]) == (not_allowed, [])


def test_expired_tokens_are_deleted(start: Start) -> None:
    place = start({"delegation.token.expiry.check.interval.ms": "200"})
    alice = place.login("alice")
    with alice.connection:
        short, long = create(alice, {"max_lifetime_ms": 500}), create(alice)
        assert len(described(alice)) == 2

        def is_removed() -> bool:
            return [item["token_id"] for item in described(alice)] == [long["token_id"]]

        wait_until(is_removed, 10, "the expired token is deleted", 0.05)
        code = renew(alice, short["hmac"])["error_code"]
        assert code == ErrorCode.DELEGATION_TOKEN_NOT_FOUND
        with pytest.raises(Refused):
            log_in_by_token(place.sasl, short["token_id"], short["hmac"])


def test_secrets_are_neither_logged_nor_described(start: Start) -> None:
    place = start({"delegation.token.master.key": "the former key"})
    alice = place.login("alice")
    with alice.connection:
        token = create(alice)
        for token_id in (token["token_id"], "unknown"):
            with pytest.raises(Refused):
                log_in_by_token(place.sasl, token_id, b"a wrong secret")
        resource = {"resource_type": 4, "resource_name": "1", "configuration_keys": None}
        request = {"resources": [resource], "include_synonyms": True}
        (answer,) = alice.connection.ask(ApiKey.DESCRIBE_CONFIGS, 4, request)["results"]
        shown = {item["name"]: item for item in answer["configs"]}
        for name in ("delegation.token.secret.key", "delegation.token.master.key"):
            assert shown[name]["is_sensitive"]
            assert shown[name]["value"] is None
            assert all(synonym["value"] is None for synonym in shown[name]["synonyms"])
        assert shown["delegation.token.expiry.time.ms"]["value"] == "86400000"
    for token_id in (token["token_id"], "unknown"):
        wait_for(place.server, f"'{token_id}'")
    log = place.server.log.read_text()
    assert KEY not in log
    assert "the former key" not in log
    assert token["hmac"].hex() not in log
    assert base64.b64encode(token["hmac"]).decode() not in log
    assert f"token '{token['token_id']}': the password is wrong" in log
    assert "token 'unknown': unknown to this broker" in log
    assert "delegation.token" not in log, "the log mentions a delegation token setting"
