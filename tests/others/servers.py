"""The servers that suites run against, of either side, with the same settings on both."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from confluent_kafka.admin import (
    AdminClient,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialAlteration,
    UserScramCredentialUpsertion,
)

from tests.faults.cluster import BROKER_IDS, FaultCluster
from tests.others.suite import Side
from tests.support.kafka_jars import NEWEST_VERSION
from tests.support.ports import free_port
from tests.support.servers import GenuineKafka, KafkaCompatBroker, Server

START_TIMEOUT_S = 180.0
SMALL = {"offsets.topic.num.partitions": "5", "transaction.state.log.num.partitions": "5"}
"""Settings with which a broker starts quickly after a kill."""

_PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule"
_SCRAM = "org.apache.kafka.common.security.scram.ScramLoginModule"
_OAUTH = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule"
_UNSECURED = (
    "org.apache.kafka.common.security.oauthbearer.internals.unsecured."
    "OAuthBearerUnsecuredValidatorCallbackHandler"
)
_LISTENER = "listener.name.sasl_plaintext"


@dataclass(frozen=True)
class Login:
    """A second listener, on which clients authenticate."""

    port: int
    mechanisms: Sequence[str]
    plain_users: Mapping[str, str]
    """The passwords of the users of PLAIN."""
    scram_users: Sequence[tuple[ScramMechanism, str, str]]
    """The mechanisms, names and passwords of the users of SCRAM."""

    def settings(self) -> dict[str, str]:
        """Return the broker's settings, except its listeners."""
        users = " ".join(f'user_{user}="{password}"' for user, password in self.plain_users.items())
        every = {
            "PLAIN": f"{_PLAIN} required {users};",
            "SCRAM-SHA-256": f"{_SCRAM} required;",
            "SCRAM-SHA-512": f"{_SCRAM} required;",
            "OAUTHBEARER": f'{_OAUTH} required unsecuredLoginStringClaim_sub="admin";',
        }
        found = {f"{_LISTENER}.{name.lower()}.sasl.jaas.config": every[name] for name in self.mechanisms}
        if "OAUTHBEARER" in self.mechanisms:
            found[f"{_LISTENER}.oauthbearer.sasl.server.callback.handler.class"] = _UNSECURED
        return {"sasl.enabled.mechanisms": ",".join(self.mechanisms), **found}

    def listener(self, host: str) -> str:
        """Return the listener as in `listeners`."""
        return f"SASL_PLAINTEXT://{host}:{self.port}"

    def store_users(self, address: str) -> None:
        """Store the users of SCRAM."""
        admin = AdminClient({"bootstrap.servers": address})
        for mechanism, user, password in self.scram_users:
            wanted: list[UserScramCredentialAlteration] = [
                UserScramCredentialUpsertion(user, ScramCredentialInfo(mechanism, 4096), password.encode())
            ]
            for stored in admin.alter_user_scram_credentials(wanted).values():
                stored.result(30)


class _Genuine(GenuineKafka):
    """Apache Kafka with one more listener."""

    login: Login | None = None

    def properties(self) -> dict[str, str]:
        found = super().properties()
        if self.mode == "kraft":
            voter = found["controller.quorum.voters"].partition("@")[2]
            found["controller.quorum.voters"] = f"{found['node.id']}@{voter}"
        if self.login is not None:
            found["listeners"] += f",{self.login.listener(self.host)}"
            protocols = ("PLAINTEXT:PLAINTEXT", "SASL_PLAINTEXT:SASL_PLAINTEXT", "CONTROLLER:PLAINTEXT")
            found["listener.security.protocol.map"] = ",".join(protocols)
        return found


@contextmanager
def one_broker(
    side: Side,
    directory: Path,
    overrides: Mapping[str, str] | None = None,
    *,
    genuine_only: Mapping[str, str] | None = None,
    kraft: bool = False,
    port: int | None = None,
    login: Login | None = None,
) -> Iterator[Server]:
    """Start one broker of a side, which stops at the end of the block.

    Apache Kafka is 3.9.1 with ZooKeeper or, with `kraft`, the newest version. `genuine_only` are settings
    that ours does not need.
    """
    settings = {**(login.settings() if login else {}), **(overrides or {})}
    port = port or free_port()
    server: Server
    if side == "ours":
        listeners = [f"PLAINTEXT://127.0.0.1:{port}", *([login.listener("127.0.0.1")] if login else [])]
        server = KafkaCompatBroker(directory, {"listeners": ",".join(listeners), **settings}, port=port)
    else:
        version, mode = (NEWEST_VERSION, "kraft") if kraft else ("3.9.1", "zookeeper")
        settings |= genuine_only or {}
        genuine = _Genuine(directory, settings, version=version, mode=mode, port=port, heap="1G")
        genuine.login = login
        server = genuine
    server.start(START_TIMEOUT_S)
    try:
        if login is not None:
            login.store_users(server.address)
        yield server
    finally:
        server.stop()


def kill_and_start(server: Server) -> None:
    """Kill a server with kill -9, and start it again."""
    server.kill()
    server.start(START_TIMEOUT_S)


class _Three(FaultCluster):
    """Three brokers on ZooKeeper, each of which may have one more listener."""

    login: Login | None = None
    """The listener of the first broker. Those of the others have other ports."""
    in_racks = False
    """Whether each broker is in a rack of its own, and consumers are sent to the replica in their rack."""

    def _settings(self, broker_id: int, address: str) -> dict[str, str]:
        found = super()._settings(broker_id, address)
        if self.in_racks:
            found["broker.rack"] = f"RACK{broker_id}"
            found["replica.selector.class"] = "org.apache.kafka.common.replica.RackAwareReplicaSelector"
        if self.login is None:
            return found
        login = self.login if broker_id == BROKER_IDS[0] else replace(self.login, port=free_port())
        listeners = f"PLAINTEXT://{address},{login.listener('127.0.0.1')}"
        return {"listeners": listeners, **login.settings(), **found}


@contextmanager
def three_brokers(
    side: Side,
    directory: Path,
    overrides: Mapping[str, str] | None = None,
    *,
    login: Login | None = None,
    in_racks: bool = False,
) -> Iterator[str]:
    """Start three brokers of a side on ZooKeeper, which stop at the end of the block. Yield the addresses."""
    cluster = _Three(directory, genuine=side == "genuine", overrides=overrides)
    cluster.login = login
    cluster.in_racks = in_racks
    with cluster:
        if login is not None:
            login.store_users(cluster.bootstrap_servers)
        yield cluster.bootstrap_servers
