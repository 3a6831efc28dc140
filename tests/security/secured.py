"""A broker with a listener for each security protocol, and with users."""

from __future__ import annotations

from typing import NamedTuple

from confluent_kafka.admin import (
    AdminClient,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialAlteration,
    UserScramCredentialUpsertion,
)

from tests.security.authority import Authority
from tests.support.offsets_topic import make_offsets_topic
from tests.support.ports import free_port
from tests.support.servers import Server

PROTOCOLS = {
    "PLAINTEXT": "PLAINTEXT",
    "SSL": "SSL",
    "SASL": "SASL_PLAINTEXT",
    "SAFE": "SASL_SSL",
    "AGAIN": "SASL_PLAINTEXT",
}
"""Security protocols by listener name. SSL requires client certificates. AGAIN limits session lifetimes."""

USERS = {"alice": "alice's secret", "bob": 'b"o,b='}
SESSION_MAX_MS = 600_000
_PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule"
_SCRAM = "org.apache.kafka.common.security.scram.ScramLoginModule"


class Secured(NamedTuple):
    """A broker, its addresses by listener name, and the authority that issued its certificate."""

    server: Server
    addresses: dict[str, str]
    authority: Authority


def listeners(authority: Authority, name: str) -> tuple[dict[str, str], dict[str, int]]:
    """The settings of all listeners, and the ports by listener name."""
    ports = {listener: free_port() for listener in PROTOCOLS}
    certificate = authority.sign(name)
    users = " ".join(f'user_{user}="{_quoted(password)}"' for user, password in USERS.items())
    settings = {
        "listeners": ",".join(f"{listener}://127.0.0.1:{port}" for listener, port in ports.items()),
        "listener.security.protocol.map": ",".join(f"{name}:{is_}" for name, is_ in PROTOCOLS.items()),
        "inter.broker.listener.name": "PLAINTEXT",
        "group.min.session.timeout.ms": "1000",
        "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256,SCRAM-SHA-512",
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": str(certificate.store),
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": str(authority.file),
        "listener.name.ssl.ssl.client.auth": "required",
        "listener.name.again.connections.max.reauth.ms": str(SESSION_MAX_MS),
    }
    for listener, protocol in PROTOCOLS.items():
        if protocol.startswith("SASL"):
            prefix = f"listener.name.{listener.lower()}"
            settings[f"{prefix}.plain.sasl.jaas.config"] = f"{_PLAIN} required {users};"
            for mechanism in ("scram-sha-256", "scram-sha-512"):
                settings[f"{prefix}.{mechanism}.sasl.jaas.config"] = f"{_SCRAM} required;"
    return settings, ports


def _quoted(value: str) -> str:
    return value.replace('"', '\\"')


def store_users(address: str) -> None:
    """Store credentials of every user for both SCRAM mechanisms."""
    admin = AdminClient({"bootstrap.servers": address})
    for mechanism in (ScramMechanism.SCRAM_SHA_256, ScramMechanism.SCRAM_SHA_512):
        information = ScramCredentialInfo(mechanism, 4096)
        wanted: list[UserScramCredentialAlteration] = [
            UserScramCredentialUpsertion(user, information, password.encode())
            for user, password in USERS.items()
        ]
        for stored in admin.alter_user_scram_credentials(wanted).values():
            stored.result(30)


def up(server: Server, ports: dict[str, int], authority: Authority) -> Secured:
    """Start the broker, store its users, and create the offsets topic."""
    server.start(120)
    addresses = {name: f"127.0.0.1:{port}" for name, port in ports.items()}
    store_users(addresses["PLAINTEXT"])
    make_offsets_topic(addresses["PLAINTEXT"])
    return Secured(server, addresses, authority)
