"""Published compose files in KRaft mode, as processes on this machine: the nodes form a quorum, and a topic
has three replicas.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer
from confluent_kafka.admin import AdminClient, NewTopic

from tests.compose import kraft_secrets
from tests.compose.kraft_file import ComposeFile
from tests.compose.kraft_files import CLUSTERS
from tests.support import campaign
from tests.support.ports import free_port
from tests.support.process import Process, wait_until
from tests.support.servers import PROJECT

OWN = PROJECT / "image" / "root" / "etc" / "kafka-compat" / "server.properties"
CHOSEN = (
    "apache-combined-plaintext",
    "apache-combined-sasl_plaintext",
    "apache-isolated-plaintext",
    "confluent-local-combined",
    "bitnami-combined",
    "testcontainers-java-with-kraft",
)
FILES = [each for each in CLUSTERS if each.name in CHOSEN]

pytestmark = pytest.mark.skipif(not campaign.enabled(), reason="starts up to six nodes: with --campaign")


class Nodes:
    """The processes of one compose file, with every host on 127.0.0.1 and a free port for every listener."""

    def __init__(self, file: ComposeFile, folder: Path) -> None:
        self.file = file
        self.folder = folder
        kraft_secrets.write(file, folder / "secrets")
        self._ports = {
            (service, listener.partition("://")[0]): free_port()
            for service in file.services
            for listener in self._given(service, "LISTENERS").split(",")
        }
        self.processes = [
            Process(
                [sys.executable, "-m", "kafka_compat", "serve", "--env", str(OWN)],
                folder / f"{service}.log",
                r"(?i) ready on",
                environment=self._environment(service),
                directory=PROJECT,
            )
            for service in file.services
        ]

    def _given(self, service: str, name: str) -> str:
        environment = self.file.services[service]
        return environment.get(f"KAFKA_CFG_{name}", environment.get(f"KAFKA_{name}", ""))

    def _environment(self, service: str) -> dict[str, str]:
        changed = {}
        for name, value in self.file.services[service].items():
            if name.endswith(("ADVERTISED_LISTENERS", "KAFKA_LISTENERS", "CFG_LISTENERS")):
                names = [each.partition("://")[0] for each in value.split(",")]
                value = ",".join(f"{each}://127.0.0.1:{self._ports[service, each]}" for each in names)
            elif name.endswith("QUORUM_VOTERS"):
                entries = [each.replace("@", ":").split(":") for each in value.split(",")]
                value = ",".join(
                    f"{node_id}@127.0.0.1:{self._ports[host, 'CONTROLLER']}" for node_id, host, _ in entries
                )
            changed[name] = value.replace("/etc/kafka/secrets", f"{self.folder}/secrets")
        changed["KAFKA_LOG_DIRS"] = f"{self.folder}/data/{service}"
        return changed

    def entrance(self) -> tuple[str, str]:
        """Return the addresses of the brokers, and the name of their listener."""
        inter_broker = self._given(self.file.brokers[0], "INTER_BROKER_LISTENER_NAME")
        ports = [self._ports[service, inter_broker] for service in self.file.brokers]
        return ",".join(f"127.0.0.1:{port}" for port in ports), inter_broker


@pytest.fixture(params=FILES, ids=lambda file: file.name)
def nodes(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Nodes]:
    nodes = Nodes(request.param, tmp_path)
    for process in nodes.processes:
        process.launch()
    for process in nodes.processes:
        process.wait_ready(60)
    yield nodes
    with ThreadPoolExecutor() as threads:
        list(threads.map(lambda process: process.stop(20), nodes.processes))


def test_the_nodes_form_a_quorum_and_replicate_a_topic(nodes: Nodes) -> None:
    bootstrap, listener = nodes.entrance()
    client: dict[str, str | int | float | bool] = {"bootstrap.servers": bootstrap, "log_level": 0}
    if listener.startswith("SASL"):
        user, password = kraft_secrets.USER
        client |= {
            "security.protocol": "SASL_PLAINTEXT",
            "sasl.mechanism": "PLAIN",
            "sasl.username": user,
            "sasl.password": password,
        }
    admin = AdminClient(client)
    wait_until(lambda: len(admin.list_topics(timeout=10).brokers) == 3, 30, "three brokers", 0.1)
    admin.create_topics([NewTopic("orders", 1, 3)])["orders"].result(30)
    producer = Producer({**client, "acks": "all"})
    producer.produce("orders", b"one")
    assert producer.flush(30) == 0
    wait_until(
        lambda: len(admin.list_topics("orders", timeout=10).topics["orders"].partitions[0].isrs) == 3,
        30,
        "three replicas in sync",
        0.1,
    )
    consumer = Consumer({**client, "group.id": "readers", "auto.offset.reset": "earliest"})
    consumer.subscribe(["orders"])
    assert [message.value() for message in consumer.consume(1, 30)] == [b"one"]
    consumer.close()
