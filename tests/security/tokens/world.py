"""Brokers for the delegation token tests: with a SCRAM listener, users, and a secret key."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from kafka_compat.protocol.api_keys import ApiKey
from kafka_compat.security import scram_credential as scram
from tests.conformance.wire import Connection, Plain
from tests.security.authority import Authority
from tests.security.logins import Login, Refused, log_in
from tests.support.ports import free_port
from tests.support.servers import GenuineKafka, KafkaCompatBroker, Server, ZooKeeper

KEY = "the secret key"
PASSWORDS = {"alice": "alice's", "bob": "bob's", "carol": "carol's"}
_SCRAM_MODULE = "org.apache.kafka.common.security.scram.ScramLoginModule required;"
_SALT = b"salt"


class Place:
    """One broker, and the addresses of its listeners: `plain` without authentication, `sasl` with SCRAM, and
    `tls` with an optional client certificate.
    """

    def __init__(self, server: Server, sasl_port: int, tls_port: int = 0) -> None:
        self.server = server
        self.plain = server.address
        self.sasl = f"127.0.0.1:{sasl_port}"
        self.tls = f"127.0.0.1:{tls_port}"

    def login(self, user: str) -> Login:
        return log_in(self.sasl, user, PASSWORDS[user])

    def knows_users(self) -> bool:
        """Whether all users can log in."""
        try:
            for user in PASSWORDS:
                self.login(user).connection.close()
        except Refused:
            return False
        return True

    def make_users(self) -> None:
        """Store the credentials of all users. Brokers receive them asynchronously; see `knows_users`."""
        upsertions: list[Plain] = []
        for name, password in PASSWORDS.items():
            for number, digest in ((1, "sha256"), (2, "sha512")):
                salted = hashlib.pbkdf2_hmac(digest, password.encode(), _SALT, scram.ITERATIONS_MIN)
                upsertions.append(
                    {
                        "name": name,
                        "mechanism": number,
                        "iterations": scram.ITERATIONS_MIN,
                        "salt": _SALT,
                        "salted_password": salted,
                    }
                )
        with Connection(self.plain) as connection:
            request = {"deletions": [], "upsertions": upsertions}
            answer = connection.ask(ApiKey.ALTER_USER_SCRAM_CREDENTIALS, 0, request)
        assert not any(result["error_code"] for result in answer["results"])


def settings(port: int, sasl_port: int, key: str | None = KEY) -> dict[str, str]:
    """Settings for both kinds of broker."""
    found = {
        "listeners": f"PLAINTEXT://127.0.0.1:{port},CLIENT://127.0.0.1:{sasl_port}",
        "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CLIENT:SASL_PLAINTEXT",
        "inter.broker.listener.name": "PLAINTEXT",
        "sasl.enabled.mechanisms": "SCRAM-SHA-256,SCRAM-SHA-512",
        "listener.name.client.scram-sha-256.sasl.jaas.config": _SCRAM_MODULE,
        "listener.name.client.scram-sha-512.sasl.jaas.config": _SCRAM_MODULE,
    }
    if key is not None:
        found["delegation.token.secret.key"] = key
    return found


def our_broker(
    directory: Path,
    overrides: Mapping[str, str] | None = None,
    key: str | None = KEY,
    authority: Authority | None = None,
) -> Place:
    """Create our broker without starting it. It is standalone unless `overrides` contains zookeeper.connect,
    and has a TLS listener only if `authority` is given.
    """
    port, sasl_port, tls_port = free_port(), free_port(), free_port()
    known = _with_tls(settings(port, sasl_port, key), tls_port, authority) | dict(overrides or {})
    return Place(KafkaCompatBroker(directory, known, port=port), sasl_port, tls_port)


def genuine_broker(
    directory: Path,
    zookeeper: ZooKeeper | None = None,
    overrides: Mapping[str, str] | None = None,
    authority: Authority | None = None,
) -> Place:
    """Create an Apache Kafka 3.9.1 broker without starting it. By default it runs its own ZooKeeper."""
    port, sasl_port, tls_port = free_port(), free_port(), free_port()
    known = _with_tls(settings(port, sasl_port), tls_port, authority) | dict(overrides or {})
    return Place(GenuineKafka(directory, known, port=port, zookeeper=zookeeper), sasl_port, tls_port)


def _with_tls(known: dict[str, str], port: int, authority: Authority | None) -> dict[str, str]:
    if authority is None:
        return known
    return known | {
        "listeners": f"{known['listeners']},TLS://127.0.0.1:{port}",
        "listener.security.protocol.map": f"{known['listener.security.protocol.map']},TLS:SSL",
        "ssl.client.auth": "requested",
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": str(authority.sign("broker").store),
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": str(authority.file),
    }


def create(login: Login, request: Plain | None = None, version: int = 3) -> Plain:
    """Send CreateDelegationToken. By default, the client owns the token, and no others may renew it."""
    given = {"owner_principal_type": None, "owner_principal_name": None, "max_lifetime_ms": -1}
    return login.connection.ask(
        ApiKey.CREATE_DELEGATION_TOKEN, version, given | {"renewers": []} | (request or {})
    )


def renew(login: Login, secret: bytes, period_ms: int = -1) -> Plain:
    request = {"hmac": secret, "renew_period_ms": period_ms}
    return login.connection.ask(ApiKey.RENEW_DELEGATION_TOKEN, 2, request)


def expire(login: Login, secret: bytes, period_ms: int = -1) -> Plain:
    request = {"hmac": secret, "expiry_time_period_ms": period_ms}
    return login.connection.ask(ApiKey.EXPIRE_DELEGATION_TOKEN, 2, request)


def described(login: Login, *owners: str) -> list[Plain]:
    """The visible tokens of `owners`, or of all users without `owners`."""
    wanted = [{"principal_type": "User", "principal_name": name} for name in owners]
    answer = login.connection.ask(ApiKey.DESCRIBE_DELEGATION_TOKEN, 3, {"owners": wanted or None})
    assert answer["error_code"] == 0
    tokens: list[Plain] = answer["tokens"]
    return tokens


class World(NamedTuple):
    """`ours` is standalone. `genuine` is Apache Kafka. `beside` is our broker in the cluster of `genuine`.

    `zookeeper` is the address of that cluster's ZooKeeper. `authority` issued the TLS certificates.
    """

    ours: Place
    genuine: Place
    beside: Place
    zookeeper: str
    authority: Authority
