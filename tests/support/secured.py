"""Fully secured clusters: SASL_SSL between brokers and for clients, SCRAM-SHA-512 users, AclAuthorizer, and
ZooKeeper with TLS and authentication, whose nodes only brokers may change.

Tests with a `secured` parameter run in both forms (FORMS).
"""

from __future__ import annotations

import json
from contextlib import AbstractContextManager
from pathlib import Path

import pytest
from kazoo.security import make_acl

from kafka_compat.security import scram_credential as scram
from tests.support import client_security
from tests.support.certificates import authority
from tests.support.secure_zookeeper import SecureZooKeeper, jaas_file, pem_store

FORMS = pytest.mark.parametrize("secured", [False, True], ids=["plain", "secured"])

MECHANISM = "SCRAM-SHA-512"
BROKER = "broker"
CLIENT = "client"
PASSWORDS = {BROKER: "broker's secret", CLIENT: "client's secret"}
"""BROKER is the user of the brokers, and a super user. CLIENT is the user of all other clients."""
_ITERATIONS = 4096
_SESSION_MAX_MS = 10_000
"""With this maximum, many sessions expire during long runs (KIP-368)."""
_ALLOWED = {
    "Topic/*": ("All",),
    "Group/*": ("All",),
    "TransactionalId/*": ("All",),
    "Cluster/kafka-cluster": ("Create", "IdempotentWrite"),
}
"""Operations that clients are allowed by ACLs."""
_DIGEST_USER, _DIGEST_PASSWORD = "kafka", "zookeeper's secret"
_CERTIFICATE_NAME = "kafka"


def login_module(user: str) -> str:
    """Return a value for the setting sasl.jaas.config."""
    module = "org.apache.kafka.common.security.scram.ScramLoginModule"
    return f'{module} required username="{user}" password="{PASSWORDS[user]}";'


class Secured:
    """Files and settings of one cluster."""

    def __init__(self, directory: Path) -> None:
        directory.mkdir(parents=True, exist_ok=True)
        self._trusted = directory / "trusted.pem"
        self._trusted.write_text(authority().pem())
        self._keys = pem_store(directory / "keys.pem", authority().issue(_CERTIFICATE_NAME))
        self.java_files = {user: directory / f"{user}.properties" for user in PASSWORDS}
        """Properties files for Java clients, by user."""
        for user, file in self.java_files.items():
            file.write_text(
                "security.protocol=SASL_SSL\n"
                "ssl.truststore.type=PEM\n"
                f"ssl.truststore.location={self._trusted}\n"
                f"sasl.mechanism={MECHANISM}\n"
                f"sasl.jaas.config={login_module(user)}\n"
            )

    def settings(self, address: str) -> dict[str, str]:
        """Return the settings of a broker of either kind with one listener at `address` (host:port)."""
        return {
            "listeners": f"SASL_SSL://{address}",
            "security.inter.broker.protocol": "SASL_SSL",
            "sasl.mechanism.inter.broker.protocol": MECHANISM,
            "sasl.enabled.mechanisms": MECHANISM,
            f"listener.name.sasl_ssl.{MECHANISM.lower()}.sasl.jaas.config": login_module(BROKER),
            "ssl.keystore.type": "PEM",
            "ssl.keystore.location": str(self._keys),
            "ssl.truststore.type": "PEM",
            "ssl.truststore.location": str(self._trusted),
            "connections.max.reauth.ms": str(_SESSION_MAX_MS),
            "authorizer.class.name": "kafka.security.authorizer.AclAuthorizer",
            "super.users": f"User:{BROKER}",
        }

    def clients(self) -> AbstractContextManager[None]:
        """Within the block, started clients authenticate as CLIENT."""
        given = {
            "protocol": "SASL_SSL",
            "ca": str(self._trusted),
            "mechanism": MECHANISM,
            "user": CLIENT,
            "password": PASSWORDS[CLIENT],
        }
        return client_security.told(given, self.java_files[CLIENT])


def first_nodes() -> dict[str, bytes]:
    """Return the users and ACLs that exist before the first broker starts, as Kafka's tools write them."""
    nodes = {}
    for user, password in PASSWORDS.items():
        credential = scram.from_password(password, user.encode(), _ITERATIONS, MECHANISM)
        config = {MECHANISM: scram.encode(credential)}
        nodes[f"/config/users/{user}"] = json.dumps({"version": 1, "config": config}).encode()
    for resource, operations in _ALLOWED.items():
        acls = [
            {"principal": f"User:{CLIENT}", "permissionType": "Allow", "operation": operation, "host": "*"}
            for operation in operations
        ]
        nodes[f"/kafka-acl/{resource}"] = json.dumps({"version": 1, "acls": acls}).encode()
    return nodes


class SecuredOnZooKeeper(Secured):
    """Files and settings of a cluster on a ZooKeeper that requires certificates and authentication."""

    def __init__(self, directory: Path) -> None:
        super().__init__(directory)
        users = {_DIGEST_USER: _DIGEST_PASSWORD}
        self.zookeeper = SecureZooKeeper(directory / "zookeeper", users, authority(), demands_login=True)
        jaas = jaas_file(directory / "client-jaas.conf", _DIGEST_USER, _DIGEST_PASSWORD)
        self.java_option = f"-Djava.security.auth.login.config={jaas}"
        """An option for the JVM of a broker. Our broker reads it from KAFKA_OPTS."""

    def settings(self, address: str) -> dict[str, str]:
        """Return the settings except zookeeper.connect, which the cluster sets (`zookeeper.secure_port`)."""
        return super().settings(address) | {
            "zookeeper.set.acl": "true",
            "zookeeper.ssl.client.enable": "true",
            "zookeeper.clientCnxnSocket": "org.apache.zookeeper.ClientCnxnSocketNetty",
            "zookeeper.ssl.keystore.location": str(self._keys),
            "zookeeper.ssl.truststore.location": str(self._trusted),
        }

    def prepare(self, chroot: str) -> None:
        """Create `first_nodes` with the same ACLs that brokers set."""
        own = [
            make_acl("sasl", _DIGEST_USER, all=True),
            make_acl("x509", f"CN={_CERTIFICATE_NAME}", all=True),
        ]
        shown = [*own, make_acl("world", "anyone", read=True)]
        client = self.zookeeper.all_powerful()
        client.start(20)
        try:
            for folder in ("/config", "/kafka-acl"):
                client.create(chroot + folder, acl=shown, makepath=True)
            for path, data in first_nodes().items():
                secret = path.startswith("/config/users")
                client.create(chroot + path, data, acl=own if secret else shown, makepath=True)
        finally:
            client.stop()
            client.close()
