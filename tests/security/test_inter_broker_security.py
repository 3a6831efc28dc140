"""Brokers of a ZooKeeper cluster that connect to each other over SASL_SSL, with each mechanism."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer
from confluent_kafka.admin import AdminClient, NewTopic
from kazoo.client import KazooClient

from kafka_compat.security import scram_credential as scram
from tests.security.authority import Authority
from tests.security.kdc import REALM, Kdc, missing
from tests.security.oauth.issuer import Issuer, SigningKey
from tests.support import campaign
from tests.support.ports import free_port
from tests.support.process import wait_until
from tests.support.servers import GenuineKafka, KafkaCompatBroker, Server, ZooKeeper

IDS = (1, 2, 3)
WITH_KERBEROS = pytest.mark.skipif(missing() is not None, reason=str(missing()))
CAMPAIGN = pytest.mark.skipif(not campaign.enabled(), reason="--campaign; otherwise see tests/faults")
_PASSWORD = 'broker, = "secret"'
_QUOTED = _PASSWORD.replace('"', '\\"')


def _login(mechanism: str, issuer: Issuer | None, key_table: Path | None) -> dict[str, str]:
    """The settings with which a broker logs in to the others, and PLAIN's users."""
    jaas = f"listener.name.inner.{mechanism.lower()}.sasl.jaas.config"
    package = "org.apache.kafka.common.security"
    if key_table is not None:
        module = "com.sun.security.auth.module.Krb5LoginModule required useKeyTab=true storeKey=true"
        return {
            jaas: f'{module} keyTab="{key_table}" principal="kafka/localhost@{REALM}";',
            "sasl.kerberos.service.name": "kafka",
        }
    if issuer is not None:
        package += ".oauthbearer"
        prefix = "listener.name.inner.oauthbearer."
        return {
            jaas: f'{package}.OAuthBearerLoginModule required clientId="broker" clientSecret="{_QUOTED}";',
            f"{prefix}sasl.server.callback.handler.class": f"{package}.OAuthBearerValidatorCallbackHandler",
            f"{prefix}sasl.login.callback.handler.class": f"{package}.OAuthBearerLoginCallbackHandler",
            "sasl.oauthbearer.jwks.endpoint.url": issuer.keys_url,
            "sasl.oauthbearer.token.endpoint.url": issuer.token_url,
        }
    module, users = "scram.ScramLoginModule", ""
    if mechanism == "PLAIN":
        module, users = "plain.PlainLoginModule", f' user_broker="{_QUOTED}"'
    return {jaas: f'{package}.{module} required username="broker" password="{_QUOTED}"{users};'}


def _settings(
    authority: Authority, mechanism: str, zookeeper: str, broker_id: int, port: int
) -> dict[str, str]:
    inner = free_port()
    certificate = authority.sign(f"broker-{broker_id}")
    return {
        "broker.id": str(broker_id),
        "listeners": f"CLIENT://127.0.0.1:{port},INNER://127.0.0.1:{inner}",
        "advertised.listeners": f"CLIENT://127.0.0.1:{port},INNER://localhost:{inner}",
        "listener.security.protocol.map": "CLIENT:PLAINTEXT,INNER:SASL_SSL",
        "inter.broker.listener.name": "INNER",
        "sasl.mechanism.inter.broker.protocol": mechanism,
        "sasl.enabled.mechanisms": mechanism,
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": str(certificate.store),
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": str(authority.file),
        "zookeeper.connect": zookeeper,
        "zookeeper.session.timeout.ms": "6000",
        "default.replication.factor": "3",
        "min.insync.replicas": "2",
        "connections.max.reauth.ms": "3000",
    }


@contextlib.contextmanager
def _cluster(directory: Path, mechanism: str, genuine: int | None) -> Iterator[list[Server]]:
    """Run a cluster. `genuine` is the id of the broker that runs Apache Kafka, if any."""
    authority = Authority(directory / "ca")
    with contextlib.ExitStack() as stack:
        zookeeper = ZooKeeper(directory / "zookeeper")
        stack.callback(zookeeper.stop)
        zookeeper.start()
        issuer, kdc, key_table = None, None, None
        if mechanism == "GSSAPI":
            kdc = Kdc(directory / "kdc")
            stack.callback(kdc.stop)
            kdc.start()
            key_table = kdc.key_table("kafka/localhost")
        elif mechanism == "OAUTHBEARER":
            issuer = stack.enter_context(Issuer(SigningKey("k")))
            issuer.lifetime_s = 4
        elif mechanism != "PLAIN":
            _store_credential(zookeeper.address, mechanism)
        brokers: list[Server] = []
        for broker_id in IDS:
            port = free_port()
            settings = _settings(authority, mechanism, zookeeper.address, broker_id, port)
            settings |= _login(mechanism, issuer, key_table)
            folder = directory / str(broker_id)
            broker: Server
            if broker_id == genuine:
                options = [f"-Djava.security.krb5.conf={kdc.configuration}"] if kdc is not None else []
                broker = GenuineKafka(folder, settings, port=port, zookeeper=zookeeper, jvm_options=options)
            else:
                environment = kdc.environment_of(f"broker-{broker_id}") if kdc is not None else {}
                broker = KafkaCompatBroker(folder, settings, port=port, environment=environment)
            stack.callback(broker.stop)
            broker.launch()
            brokers.append(broker)
        for broker in brokers:
            broker.wait_ready()
        yield brokers


def _store_credential(zookeeper: str, mechanism: str) -> None:
    """Store the brokers' credential, as kafka-configs does before the first broker starts."""
    credential = scram.from_password(_PASSWORD, b"salt", 4096, mechanism)
    client = KazooClient(zookeeper)
    client.start(20)
    data = json.dumps({"version": 1, "config": {mechanism: scram.encode(credential)}})
    client.create("/config/users/broker", data.encode(), makepath=True)
    client.stop()
    client.close()


WAYS = [
    pytest.param("PLAIN", None, marks=CAMPAIGN),
    pytest.param("SCRAM-SHA-512", None, marks=CAMPAIGN),
    pytest.param("OAUTHBEARER", None, marks=CAMPAIGN),
    pytest.param("GSSAPI", None, marks=[WITH_KERBEROS, CAMPAIGN]),
    pytest.param("GSSAPI", 3, marks=[WITH_KERBEROS, CAMPAIGN]),
]


@pytest.mark.parametrize(("mechanism", "genuine"), WAYS)
def test_mutually_authenticated_brokers_replicate_and_fail_over(
    tmp_path: Path, mechanism: str, genuine: int | None
) -> None:
    with _cluster(tmp_path, mechanism, genuine) as brokers:
        servers = ",".join(broker.address for broker in brokers)
        admin = AdminClient({"bootstrap.servers": servers})
        wait_until(lambda: len(admin.list_topics(timeout=10).brokers) == 3, 30, "three brokers registered")
        admin.create_topics([NewTopic("t", 6, 3)])["t"].result(30)
        failed: list[object] = []
        producer = Producer({"bootstrap.servers": servers, "acks": "all", "linger.ms": 5})

        def send(first: int, last: int) -> None:
            for number in range(first, last):
                producer.produce(
                    "t", str(number), on_delivery=lambda error, _: failed.append(error) if error else None
                )
                producer.poll(0)
            assert producer.flush(60) == 0

        send(0, 1000)
        brokers[0].kill()
        send(1000, 2000)
        brokers[0].start()
        send(2000, 3000)
        # Every connection between brokers has been reauthenticated by now.
        wait_until(lambda: _all_in_sync(admin), 60, "all replicas are in sync")
        assert not failed
        group = {"group.id": "g", "auto.offset.reset": "earliest"}
        consumer = Consumer({"bootstrap.servers": servers, **group})
        consumer.subscribe(["t"])
        seen: set[int] = set()

        def read() -> bool:
            seen.update(int(message.value() or b"-1") for message in consumer.consume(500, 1.0))
            return len(seen) == 3000

        wait_until(read, 60, "all records are consumed", 0)
        consumer.close()
        logs = "".join(broker.log.read_text() for broker in brokers)
        assert "session expired" not in logs, "a connection was not reauthenticated in time"
        assert _PASSWORD not in logs


def _all_in_sync(admin: AdminClient) -> bool:
    partitions = admin.list_topics("t", timeout=10).topics["t"].partitions.values()
    return all(len(partition.isrs) == 3 for partition in partitions)
