"""Our broker and Apache Kafka 3.9.1 on one ZooKeeper accept each other's delegation tokens."""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest
from kazoo.client import KazooClient

from kafka_compat.errors import ErrorCode
from kafka_compat.protocol.api_keys import ApiKey
from tests.conformance.wire import Plain
from tests.security.logins import Login, Refused, log_in_by_token
from tests.security.tokens.world import Place, World, create, described, expire, renew
from tests.support.process import wait_until

TOKENS = "/delegation_token/tokens"
MECHANISMS = ("SCRAM-SHA-256", "SCRAM-SHA-512")


@pytest.fixture
def client(world: World) -> Iterator[KazooClient]:
    found = KazooClient(world.zookeeper)
    found.start(20)
    yield found
    found.stop()
    found.close()


@pytest.fixture(params=["ours makes it", "genuine makes it"])
def makers(request: pytest.FixtureRequest, world: World) -> tuple[Place, Place]:
    """The broker that creates tokens, and the other broker."""
    pair = (world.beside, world.genuine)
    return pair if request.param.startswith("ours") else (pair[1], pair[0])


def _may_log_in(place: Place, token: Plain, mechanism: str) -> bool:
    try:
        login = log_in_by_token(place.sasl, token["token_id"], token["hmac"], mechanism)
    except Refused:
        return False
    with login.connection:
        return login.connection.ask(ApiKey.METADATA, 4, {"topics": []})["controller_id"] in (1, 2)


def test_a_token_is_valid_on_our_brokers_and_on_apache_kafkas(makers: tuple[Place, Place]) -> None:
    maker, other = makers
    alice, there = maker.login("alice"), other.login("alice")
    with alice.connection, there.connection:
        bob = {"principal_type": "User", "principal_name": "bob, = %"}
        owner = {"owner_principal_type": "User", "owner_principal_name": "x y"}
        token = create(alice, {"renewers": [bob], **owner})
        own = create(alice)
        for mechanism in MECHANISMS:
            for each in (token, own):
                known = partial(_may_log_in, other, each, mechanism)
                wait_until(known, 20, "the token is valid on the other broker", 0.05)
        mine = {item["token_id"]: item for item in described(alice)}
        assert mine[token["token_id"]]["hmac"] == token["hmac"]
        assert {item["token_id"]: item for item in described(there)} == mine
        # Renew and expire the token on the other broker.
        told = renew(there, own["hmac"], 60_000)
        assert told["error_code"] == 0
        ends_ms = told["expiry_timestamp_ms"]
        wait_until(lambda: _ends_ms(alice, own) == ends_ms, 20, "the renewal is received", 0.05)
        assert expire(there, own["hmac"])["error_code"] == 0
        wait_until(lambda: not _may_log_in(maker, own, MECHANISMS[0]), 20, "the token is deleted", 0.05)
        assert renew(alice, own["hmac"])["error_code"] == ErrorCode.DELEGATION_TOKEN_NOT_FOUND


def _ends_ms(login: Login, token: Plain) -> int:
    tokens = {item["token_id"]: item for item in described(login)}
    found: int = tokens[token["token_id"]]["expiry_timestamp"]
    return found


def _await_token(login: Login, token_id: str) -> None:
    def known() -> bool:
        return token_id in {item["token_id"] for item in described(login)}

    wait_until(known, 20, "the broker describes the token", 0.05)


def test_token_nodes_are_byte_identical_to_kafkas(world: World, client: KazooClient) -> None:
    """When one broker renews the other's token, it changes nothing but the expiry time in the node."""
    for maker, other in ((world.beside, world.genuine), (world.genuine, world.beside)):
        alice, there = maker.login("alice"), other.login("alice")
        with alice.connection, there.connection:
            names = ("a~*-_.b", "ü ,=%/", "")
            renewers = [{"principal_type": "User", "principal_name": name} for name in names]
            token = create(alice, {"renewers": renewers})
            path = f"{TOKENS}/{token['token_id']}"
            before: bytes = client.get(path)[0]
            _await_token(there, token["token_id"])
            ends_ms = renew(there, token["hmac"], 1_000)["expiry_timestamp_ms"]
            after: bytes = client.get(path)[0]
            assert after == before.replace(b"%d" % token["expiry_timestamp_ms"], b"%d" % ends_ms, 1)
            assert json.loads(after)["expiryTimestamp"] == ends_ms
    changes = client.get_children("/delegation_token/token_changes")
    assert all(name.startswith("token_change_0") for name in changes)


def test_nodes_of_older_brokers_are_read_and_malformed_nodes_are_ignored(
    world: World, client: KazooClient
) -> None:
    """Nodes before version 3 have no requester, so the owner is the requester."""
    owned = {"owner": "User%3Aalice", "renewers": [], "issueTimestamp": 1}
    times = {"maxTimestamp": 2**62, "expiryTimestamp": 2**62}
    old = {"version": 2, "tokenId": "old", **owned, **times}
    broken = {
        "newer": json.dumps({**old, "version": 4, "tokenId": "newer", "tokenRequester": "User%3Aalice"}),
        "empty": "",
        "text": "text",
        "ownerless": json.dumps({**old, "tokenId": "ownerless", "owner": "alice"}),
        "timeless": json.dumps({**old, "tokenId": "timeless", "maxTimestamp": "soon"}),
    }
    nodes = {"old": json.dumps(old), **broken}
    for name, text in nodes.items():
        client.create(f"{TOKENS}/{name}", text.encode())
        client.create("/delegation_token/token_changes/token_change_", name.encode(), sequence=True)
    for place in (world.beside, world.genuine):
        alice = place.login("alice")
        with alice.connection:
            _await_token(alice, "old")
            tokens = {item["token_id"]: item for item in described(alice)}
            assert not tokens.keys() & broken.keys()
            token = tokens["old"]
            assert token["token_requester_principal_name"] == "alice"
            assert create(alice)["error_code"] == 0, "creating a token fails because of a malformed node"
    # Delete the nodes only after the log lines: a node deleted before its notice is read is not logged.
    log = world.beside.server.log
    told = partial(_says_all, log, [f"{TOKENS}/{name}: " for name in broken])
    wait_until(told, 20, "each malformed node is logged", 0.05)
    for name in nodes:
        client.delete(f"{TOKENS}/{name}")


def _says_all(log: Path, texts: list[str]) -> bool:
    said = log.read_text()
    return all(text in said for text in texts)
