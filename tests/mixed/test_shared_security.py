"""A secured cluster of our brokers and Apache Kafka's: changes of users, ACLs, delegation tokens and quotas
made on either kind apply on all brokers, including brokers that were down at the time.

Each change is sent to only one broker, and its effect is checked on every broker.
"""

from __future__ import annotations

import hashlib
import secrets
import select
import socket
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from kafka_compat.errors import ErrorCode
from kafka_compat.protocol.api_keys import ApiKey
from kafka_compat.security.sasl.client import ScramClient
from tests.conformance.wire import Plain
from tests.faults.cluster import BROKER_IDS
from tests.mixed.cluster import GENUINE, OURS, MixedCluster
from tests.security.logins import Login, Refused, TlsConnection, TokenClient
from tests.support import campaign, java
from tests.support.acl_requests import acl, taking
from tests.support.process import wait_until
from tests.support.secured import BROKER, CLIENT, MECHANISM, PASSWORDS

TOPIC = "events"
KINDS = {1: OURS, 2: GENUINE, 3: OURS}
SCRAM_SHA_512 = 2
ITERATIONS = 4096
DESCRIBE = 8
NEXT_TO_NOTHING = 0.000001
"""A request_percentage with which every request is throttled."""
CONNECTIONS = 40
_SOON_S = 30.0
_SESSION_TIMEOUT_MS = 12_000
"""If an Apache Kafka broker's session expires just when a token is created, the broker logs an error and
never reads that token. On a busy machine, this happens to sessions of 3 s."""

QUOTAS = ("a quota of the user", "a quota of a client", "a quota of a user's client")
ALL = ("a login", "an ACL", "a token", *QUOTAS)

pytestmark = [
    pytest.mark.timeout(600),
    pytest.mark.skipif(not campaign.enabled(), reason="takes a minute each: with --campaign"),
]


def enter(address: str, user: str, password: str, client_id: str = "test") -> Login:
    """Return a connection authenticated as the user. Raises Refused."""
    connection = TlsConnection(address, client_id=client_id)
    return Login(connection, MECHANISM, ScramClient(MECHANISM, user, password))


class Guest:
    """A new user with a change of each kind."""

    def __init__(self, cluster: MixedCluster) -> None:
        self.name = f"guest-{secrets.token_hex(4)}"
        self._password = "guest's secret"
        self._client_id = f"client of {self.name}"
        self._host = f"127.0.{secrets.randbelow(200) + 1}.{secrets.randbelow(200) + 1}"
        self._cluster = cluster
        self._token: Plain = {}

    # Changes

    def give(self, teller: int) -> None:
        """Create the user through the controller, and all other changes through broker `teller`."""
        self._change_user(upsertions=[self._credential()])
        self._ask(teller, ApiKey.CREATE_ACLS, 3, {"creations": [self._acl()]}, "results")
        self._alter_quotas(teller, NEXT_TO_NOTHING)
        wait_until(lambda: "a login" in self._shows(teller), _SOON_S, "authentication of the user", 0.05)
        owner = {"owner_principal_type": None, "owner_principal_name": None}
        request: Plain = {**owner, "max_lifetime_ms": -1, "renewers": []}
        login = self._enter(teller)
        with login.connection:
            self._token = login.connection.ask(ApiKey.CREATE_DELEGATION_TOKEN, 3, request)
        assert self._token["error_code"] == ErrorCode.NONE

    def give_by_tools(self, servers: str) -> None:
        """Make the same changes, except for the token and the address limit, with Kafka's own tools, which
        may contact any broker.
        """
        assert self._cluster.security is not None
        given = (
            "--bootstrap-server",
            servers,
            "--command-config",
            str(self._cluster.security.java_files[BROKER]),
        )
        percentage = f"request_percentage={NEXT_TO_NOTHING:f}"
        user, client = (
            ("--entity-type", "users", "--entity-name"),
            ("--entity-type", "clients", "--entity-name"),
        )
        entities: tuple[tuple[str, ...], ...] = (
            (*user, self.name),
            (*client, self._client_id),
            (*user, CLIENT, *client, self._client_id),
        )
        credential = f"{MECHANISM}=[iterations={ITERATIONS},password={self._password}]"
        java.run("kafka-configs", *given, "--alter", *entities[0], "--add-config", credential)
        for entity in entities:
            java.run("kafka-configs", *given, "--alter", *entity, "--add-config", percentage)
        allowed = ("--allow-principal", f"User:{self.name}", "--operation", "Describe", "--topic", TOPIC)
        java.run("kafka-acls", *given, "--add", *allowed)

    def take(self, teller: int) -> None:
        """Revert everything except the user through broker `teller`."""
        self._alter_quotas(teller, None)
        request = taking(principal_filter=f"User:{self.name}")
        answer = self._ask(teller, ApiKey.DELETE_ACLS, 3, {"filters": [request]}, "filter_results")
        assert len(answer["filter_results"][0]["matching_acls"]) == 1
        if self._token:
            login = self._enter(teller)
            with login.connection:
                ending = {"hmac": self._token["hmac"], "expiry_time_period_ms": -1}
                ended = login.connection.ask(ApiKey.EXPIRE_DELEGATION_TOKEN, 2, ending)
            assert ended["error_code"] == ErrorCode.NONE

    def dismiss(self) -> None:
        """Delete the user through the controller."""
        self._change_user(deletions=[{"name": self.name, "mechanism": SCRAM_SHA_512}])

    def _credential(self) -> Plain:
        salted = hashlib.pbkdf2_hmac("sha512", self._password.encode(), b"salt", ITERATIONS)
        return {
            "name": self.name,
            "mechanism": SCRAM_SHA_512,
            "iterations": ITERATIONS,
            "salt": b"salt",
            "salted_password": salted,
        }

    def _acl(self) -> Plain:
        return acl(TOPIC, principal=f"User:{self.name}", operation=DESCRIBE)

    def _change_user(self, **change: list[Plain]) -> None:
        request: Plain = {"deletions": [], "upsertions": [], **change}

        def done() -> bool:
            controller = self._cluster.controller()
            if controller is None:
                return False
            found = self._ask(controller, ApiKey.ALTER_USER_SCRAM_CREDENTIALS, 0, request)["results"]
            assert {item["error_code"] for item in found} <= {ErrorCode.NONE, ErrorCode.NOT_CONTROLLER}, found
            return all(item["error_code"] == ErrorCode.NONE for item in found)

        wait_until(done, _SOON_S, "storage of users by the controller", 0.1)

    def _alter_quotas(self, teller: int, percentage: float | None) -> None:
        """Set the quotas, or remove them if `percentage` is None."""
        own = {"key": "request_percentage", "value": percentage or 0.0, "remove": percentage is None}
        rate = {"key": "connection_creation_rate", "value": 1.0, "remove": percentage is None}
        entities: list[tuple[dict[str, str], Plain]] = [
            ({"user": self.name}, own),
            ({"client-id": self._client_id}, own),
            ({"user": CLIENT, "client-id": self._client_id}, own),
            ({"ip": self._host}, rate),
        ]
        entries = [
            {
                "entity": [{"entity_type": kind, "entity_name": name} for kind, name in entity.items()],
                "ops": [change],
            }
            for entity, change in entities
        ]
        request = {"entries": entries, "validate_only": False}
        self._ask(teller, ApiKey.ALTER_CLIENT_QUOTAS, 1, request, "entries")

    def _ask(
        self, broker_id: int, api_key: ApiKey, version: int, request: Plain, results: str | None = None
    ) -> Plain:
        """Send a request as the brokers' user, and check that all `results` succeeded."""
        login = enter(self._cluster.brokers[broker_id].address, BROKER, PASSWORDS[BROKER])
        with login.connection as connection:
            answer = connection.ask(api_key, version, request)
        if results is not None:
            assert {item["error_code"] for item in answer[results]} == {ErrorCode.NONE}, answer
        return answer

    def _enter(self, broker_id: int) -> Login:
        return enter(self._cluster.brokers[broker_id].address, self.name, self._password)

    # Effects

    def await_everywhere(self, *expected: str) -> None:
        """Wait until every broker applies exactly the expected changes."""
        for broker_id in BROKER_IDS:
            what = f"broker {broker_id} ({self._cluster.kinds[broker_id]}) applies the changes"
            wait_until(partial(self._shows_just, broker_id, expected), _SOON_S, what, 0.1)

    def await_address(self, *, limited: bool) -> None:
        """Wait until every broker limits the connection rate of the address, or no broker does."""
        for broker_id in BROKER_IDS:
            what = f"broker {broker_id} ({self._cluster.kinds[broker_id]}) limits an address: {limited}"
            wait_until(lambda: self._holds_back(broker_id) == limited, _SOON_S, what, 0.1)  # noqa: B023

    def _shows_just(self, broker_id: int, expected: Sequence[str]) -> bool:
        return self._shows(broker_id) == set(expected)

    def _shows(self, broker_id: int) -> set[str]:
        address = self._cluster.brokers[broker_id].address
        found = set()
        checks: dict[str, Callable[[], bool]] = {
            "a login": lambda: _asks(self._enter(broker_id)) is not None,
            "an ACL": lambda: _asks(self._enter(broker_id))["topics"][0]["error_code"] == ErrorCode.NONE,
            "a quota of the user": lambda: _asks(self._enter(broker_id))["throttle_time_ms"] > 0,
            "a quota of a client": lambda: _is_throttled(address, BROKER, self._client_id),
            "a quota of a user's client": lambda: _is_throttled(address, CLIENT, self._client_id),
            "a token": lambda: _asks(self._enter_by_token(address)) is not None,
        }
        for name, check in checks.items():
            try:
                if check():
                    found.add(name)
            except Refused:
                pass
        return found

    def _enter_by_token(self, address: str) -> Login:
        if not self._token:
            raise Refused("no token")
        client = TokenClient(MECHANISM, self._token["token_id"], self._token["hmac"])
        return Login(TlsConnection(address), MECHANISM, client)

    def _holds_back(self, broker_id: int) -> bool:
        """Return whether some of many connections from the address are closed without a response."""
        host, port = self._cluster.brokers[broker_id].address.split(":")
        with ExitStack() as stack:
            opened = [
                stack.enter_context(socket.create_connection((host, int(port)), 10, (self._host, 0)))
                for _ in range(CONNECTIONS)
            ]
            # Connections above the rate are closed after a second.
            return bool(select.select(opened, [], [], 2.5)[0])


def _asks(login: Login) -> Any:
    with login.connection as connection:
        request = {"topics": [{"name": TOPIC}], "allow_auto_topic_creation": False}
        return connection.ask(ApiKey.METADATA, 9, request)


def _is_throttled(address: str, user: str, client_id: str) -> bool:
    return bool(_asks(enter(address, user, PASSWORDS[user], client_id))["throttle_time_ms"] > 0)


def _cluster(directory: Path) -> MixedCluster:
    overrides = {"delegation.token.secret.key": "the secret key"}
    return MixedCluster(
        directory, KINDS, session_timeout_ms=_SESSION_TIMEOUT_MS, secured=True, overrides=overrides
    )


def test_changes_on_our_and_apache_kafkas_brokers_apply_on_all_brokers(tmp_path: Path) -> None:
    with _cluster(tmp_path) as cluster:
        cluster.create_topic(TOPIC, 1)
        for kind, other in ((GENUINE, OURS), (OURS, GENUINE)):
            teller = cluster.elect_controller(kind)
            guest = Guest(cluster)
            guest.give(teller)
            guest.await_everywhere(*ALL)
            guest.await_address(limited=True)
            guest.take(cluster.of_kind(other)[0])
            guest.await_everywhere("a login")
            guest.await_address(limited=False)
            guest.dismiss()
            guest.await_everywhere()


def test_changes_made_by_kafkas_tools_apply_on_all_brokers(tmp_path: Path) -> None:
    with _cluster(tmp_path) as cluster:
        cluster.create_topic(TOPIC, 1)
        for kind in (GENUINE, OURS):
            controller = cluster.elect_controller(kind)
            guest = Guest(cluster)
            guest.give_by_tools(cluster.brokers[controller].address)
            guest.await_everywhere("a login", "an ACL", *QUOTAS)
            guest.take(controller)
            guest.dismiss()
            guest.await_everywhere()


def test_a_restarted_broker_applies_the_changes_made_while_it_was_down(tmp_path: Path) -> None:
    with _cluster(tmp_path) as cluster:
        cluster.create_topic(TOPIC, 1)
        for kind, other in ((OURS, GENUINE), (GENUINE, OURS)):
            away, teller = cluster.of_kind(kind)[0], cluster.of_kind(other)[0]
            before, after = Guest(cluster), Guest(cluster)
            before.give(away)
            before.await_everywhere(*ALL)
            cluster.brokers[away].kill()
            cluster.wait_without(away, TOPIC)
            before.take(teller)
            before.dismiss()
            after.give(teller)
            cluster.start(away)
            cluster.wait_in_sync(TOPIC)
            after.await_everywhere(*ALL)
            after.await_address(limited=True)
            before.await_everywhere()
            before.await_address(limited=False)
