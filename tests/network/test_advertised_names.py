"""Host names in `listeners`: the broker advertises the name itself, as in Kafka. The address that it resolves
to locally may be a different machine elsewhere, and is not in the certificate.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Producer
from kazoo.client import KazooClient

from tests.support.certificates import Authority
from tests.support.servers import GenuineKafka, KafkaCompatBroker, ZooKeeper, metadata

_NAMES = ["localhost", "LocalHost", "127.0.0.1"]


def _told(port: int) -> list[tuple[str, int]]:
    found = metadata(port)
    assert found is not None
    return [(broker.host, broker.port) for broker in found.brokers]


@pytest.mark.parametrize("host", _NAMES)
def test_clients_get_the_advertised_name_as_configured(tmp_path: Path, host: str) -> None:
    broker = KafkaCompatBroker(tmp_path)
    broker.overrides["listeners"] = f"PLAINTEXT://{host}:{broker.port}"
    broker.start()
    try:
        assert _told(broker.port) == [(host, broker.port)]
        assert f"ready on PLAINTEXT://{host}:{broker.port}," in broker.log.read_text()
    finally:
        broker.stop()


def test_clients_verify_the_certificate_against_the_configured_name(tmp_path: Path) -> None:
    """The client bootstraps from the name, and then connects to the advertised address."""
    authority = Authority()
    identity = authority.issue("localhost", ["localhost"])
    (tmp_path / "broker.pem").write_text(identity.key_pem() + identity.chain_pem())
    (tmp_path / "ca.pem").write_text(authority.pem())
    broker = KafkaCompatBroker(tmp_path / "broker")
    broker.overrides |= {
        "listeners": f"SSL://localhost:{broker.port}",
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": str(tmp_path / "broker.pem"),
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": str(tmp_path / "ca.pem"),
        "security.inter.broker.protocol": "SSL",
    }
    broker.start()
    try:
        producer = Producer(
            {
                "bootstrap.servers": f"localhost:{broker.port}",
                "security.protocol": "SSL",
                "ssl.ca.location": str(tmp_path / "ca.pem"),
                "ssl.endpoint.identification.algorithm": "https",
                "message.timeout.ms": 10_000,
            }
        )
        producer.produce("flights", b"EWR")
        assert producer.flush(20) == 0
    finally:
        broker.stop()


@pytest.fixture
def zookeeper(tmp_path: Path) -> Iterator[ZooKeeper]:
    running = ZooKeeper(tmp_path / "zookeeper")
    running.start()
    yield running
    running.stop()


def test_the_host_name_in_zookeeper_matches_apache_kafkas(tmp_path: Path, zookeeper: ZooKeeper) -> None:
    ours = KafkaCompatBroker(tmp_path / "ours", {"zookeeper.connect": f"{zookeeper.address}/c"})
    genuine = GenuineKafka(tmp_path / "genuine", {"broker.id": "2"}, zookeeper=zookeeper)
    genuine.overrides["zookeeper.connect"] = f"{zookeeper.address}/c"
    for broker in (ours, genuine):
        broker.overrides["listeners"] = f"PLAINTEXT://LocalHost:{broker.port}"
        broker.start()
    client = KazooClient(f"{zookeeper.address}/c")
    try:
        client.start(20)
        nodes = [json.loads(client.get(f"/brokers/ids/{broker_id}")[0]) for broker_id in (1, 2)]
    finally:
        client.stop()
        client.close()
        for broker in (ours, genuine):
            broker.stop()
    ports = (ours.port, genuine.port)
    assert [node["endpoints"] for node in nodes] == [[f"PLAINTEXT://LocalHost:{port}"] for port in ports]
    assert [(node["host"], node["port"]) for node in nodes] == [("LocalHost", port) for port in ports]
