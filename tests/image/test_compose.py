"""Compose files written for other images, with this image in their place."""

from __future__ import annotations

import os
import secrets
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer
from confluent_kafka.admin import AdminClient

from tests.compose.docker import DockerFailed, compose_command, docker
from tests.support.ports import free_port
from tests.support.process import wait_until

HERE = Path(__file__).parent / "compose"


class Project:
    """The containers of one compose file."""

    def __init__(self, file: str, image: str, port: int | None = None) -> None:
        """`port` is the published port on this machine; the default is a free port."""
        self.name = f"kafka-compat-image-{secrets.token_hex(3)}"
        self.port = port or free_port()
        self.bootstrap = f"localhost:{self.port}"
        self._command = [*compose_command(), "-p", self.name, "-f", f"{file}.yml", "-f", "network.yml"]
        self._environment = {**os.environ, "KAFKA_IMAGE": image, "KAFKA_PORT": str(self.port)}

    def compose(self, *arguments: str) -> str:
        """Run `docker compose …`, and return its output. Raises DockerFailed."""
        done = subprocess.run(
            [*self._command, *arguments],
            cwd=HERE,
            env=self._environment,
            capture_output=True,
            text=True,
            timeout=120,
        )
        if done.returncode:
            raise DockerFailed(f"{arguments}: {done.stdout}{done.stderr}\n{self.logs()}")
        return done.stdout

    def logs(self) -> str:
        return subprocess.run(
            [*self._command, "logs", "--no-color"],
            cwd=HERE,
            env=self._environment,
            capture_output=True,
            text=True,
        ).stdout


@contextmanager
def up(file: str, image: str, port: int | None = None) -> Iterator[Project]:
    project = Project(file, image, port)
    try:
        project.compose("up", "--detach")
        yield project
    finally:
        project.compose("down", "--volumes", "--timeout", "10")


@pytest.mark.parametrize(
    ("file", "partitions"),
    [
        ("apache", 3),
        ("apache-bare", 1),
        ("confluent", 3),
        ("confluent-advertised", 1),
        ("confluent-zookeeper", 1),
        ("bitnami", 3),
    ],
)
def test_the_compose_file_creates_its_topic_and_serves_the_host(
    image: str, zookeeper_image: str, monkeypatch: pytest.MonkeyPatch, file: str, partitions: int
) -> None:
    monkeypatch.setenv("ZOOKEEPER_IMAGE", zookeeper_image)
    with up(file, image) as project:
        admin = AdminClient({"bootstrap.servers": project.bootstrap, "log_level": 0})

        def has_topic() -> bool:
            try:
                topics = admin.list_topics(timeout=2).topics
            except Exception:
                return False
            return "flights" in topics and len(topics["flights"].partitions) == partitions

        try:
            wait_until(has_topic, 60, "existence of the topic", 0.2)
        except AssertionError as error:
            raise AssertionError(f"{error}\n{project.logs()}") from error
        address = {"bootstrap.servers": project.bootstrap}
        producer = Producer(address)
        for number in range(100):
            producer.produce("flights", str(number))
        assert producer.flush(20) == 0
        consumer = Consumer({**address, "group.id": "readers", "auto.offset.reset": "earliest"})
        consumer.subscribe(["flights"])
        found = sorted(int(message.value() or b"-1") for message in consumer.consume(100, 30))
        consumer.close()
        assert found == list(range(100)), project.logs()


@pytest.mark.parametrize(("file", "partitions"), [("apache", 3), ("confluent", 3), ("bitnami", 3)])
def test_data_survives_the_removal_of_the_containers(image: str, file: str, partitions: int) -> None:
    """The data is in the volume that the file mounts at the other image's data directory."""
    with up(file, image) as project:
        address = {"bootstrap.servers": project.bootstrap}

        def has_topic() -> bool:
            try:
                return "flights" in AdminClient({**address, "log_level": 0}).list_topics(timeout=2).topics
            except Exception:
                return False

        wait_until(has_topic, 60, "existence of the topic", 0.2)
        producer = Producer(address)
        producer.produce("flights", "EWR", partition=0)
        assert producer.flush(20) == 0
        project.compose("rm", "--stop", "--force")
        project.compose("up", "--detach")
        wait_until(has_topic, 60, "existence of the topic", 0.2)
        consumer = Consumer({**address, "group.id": "readers", "auto.offset.reset": "earliest"})
        consumer.subscribe(["flights"])
        (message,) = consumer.consume(1, 30)
        assert message.value() == b"EWR"
        consumer.close()


@pytest.mark.parametrize("file", ["both-sides", "both-sides-other-port"])
def test_one_broker_serves_the_host_and_other_containers_at_once(image: str, file: str) -> None:
    """Without settings, the published port is the container's."""
    port = 9092 if file == "both-sides" else None
    if port is not None and not _is_free(port):
        pytest.skip(f"port {port} of this machine is in use")
    with up(file, image, port) as project:
        # The other container writes 50 records, and reads until it has read 100.
        producer = Producer({"bootstrap.servers": project.bootstrap})
        for number in range(50):
            producer.produce("flights", f"host {number}")
        assert producer.flush(60) == 0, project.logs()
        settings = {"bootstrap.servers": project.bootstrap, "group.id": "host"}
        consumer = Consumer({**settings, "auto.offset.reset": "earliest"})
        consumer.subscribe(["flights"])
        values = {(message.value() or b"").decode() for message in consumer.consume(100, 60)}
        consumer.close()
        assert values == {f"{side} {number}" for side in ("host", "container") for number in range(50)}
        client = project.compose("ps", "--all", "--quiet", "client").strip()
        assert docker("wait", client).strip() == "0", project.logs()
        assert set(docker("logs", client).split("\n")) >= values


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) != 0
