"""The containers of a published compose file with this image, and a client in their network."""

from __future__ import annotations

import json
import secrets
import subprocess
import time
from pathlib import Path
from typing import Any, Final

import kafka

from kafka_compat.config import load
from tests.compose import kraft_secrets
from tests.compose.docker import DockerFailed, compose_command, docker
from tests.compose.kraft_file import ComposeFile
from tests.support.process import wait_until
from tests.support.servers import PROJECT

SUBNET: Final = "198.51.100.128/25"
SECRETS: Final = "/etc/kafka/secrets"
PATIENCE_S: Final = 120


class KraftCluster:
    """One compose file's containers. `close` removes them."""

    def __init__(self, file: ComposeFile, image: str, folder: Path) -> None:
        self.file = file
        self.image = image
        self.folder = folder
        self.project = f"kraft{secrets.token_hex(3)}"
        folder.mkdir(parents=True, exist_ok=True)
        kraft_secrets.write(file, folder / "secrets")
        if file.properties is not None:
            (folder / "config").mkdir()
            (folder / "config" / "server.properties").write_text(file.properties)
        (folder / "compose.yml").write_text(json.dumps(self._content()))
        self._client: subprocess.Popen[str] | None = None

    def _content(self) -> dict[str, Any]:
        volumes = [f"{self.folder}/secrets:{SECRETS}:ro"]
        if self.file.properties is not None:
            volumes.append(f"{self.folder}/config:/mnt/shared/config:ro")
        services = {}
        for name, environment in self.file.services.items():
            # Compose replaces $NAME in values.
            given = {each: value.replace("$", "$$") for each, value in environment.items()}
            service: dict[str, Any] = {"image": self.image, "environment": given, "volumes": volumes}
            if self.file.uses_host_network:
                service["network_mode"] = "host"
            if self.file.command is not None:
                service["command"] = ["bash", "-c", self.file.command.replace("$", "$$")]
            services[name] = service
        content: dict[str, Any] = {"version": "3.5", "services": services}
        if not self.file.uses_host_network:
            content["networks"] = {"default": {"ipam": {"config": [{"subnet": SUBNET}]}}}
        return content

    def compose(self, *arguments: str) -> str:
        """Run `docker compose …`, and return its output. Raises DockerFailed."""
        command = [*compose_command(), "-p", self.project, "-f", str(self.folder / "compose.yml"), *arguments]
        done = subprocess.run(command, capture_output=True, text=True, timeout=180)
        if done.returncode:
            raise DockerFailed(f"{arguments}: {done.stdout}{done.stderr}")
        return done.stdout

    def up(self) -> None:
        self.compose("up", "--detach")

    def id(self, service: str) -> str:
        """Return the container ID of a service."""
        labels = (f"project={self.project}", f"service={service}")
        filters = [f"--filter=label=com.docker.compose.{label}" for label in labels]
        (found,) = docker("ps", "--all", "--quiet", *filters).split()
        return found

    def kill(self, service: str) -> None:
        docker("kill", self.id(service))

    def start(self, service: str) -> None:
        docker("start", self.id(service))

    def service_of(self, node_id: int) -> str:
        """Return the service with a node ID."""
        names = ("KAFKA_NODE_ID", "KAFKA_CFG_NODE_ID")
        return next(
            service
            for service, each in self.file.services.items()
            if str(node_id) in [each[name] for name in names if name in each]
        )

    def logs(self) -> str:
        return self.compose("logs", "--no-color", "--tail", "40")

    # --- the client

    def connect(self) -> None:
        """Start the client, which creates a topic and begins to write. The topic has three replicas, if there
        are as many brokers.
        """
        port, settings = self._entrance()
        hosts = ["localhost"] if self.file.uses_host_network else self.file.brokers
        bootstrap = ",".join(f"{host}:{port(host)}" for host in hosts)
        network = "host" if self.file.uses_host_network else f"{self.project}_default"
        library = Path(kafka.__file__).parent
        command = [
            *("docker", "run", "--rm", "--interactive", f"--name={self.project}-client"),
            f"--network={network}",
            f"--volume={library}:/client/kafka:ro",
            f"--volume={PROJECT / 'tests/compose/kraft_load.py'}:/client/load.py:ro",
            f"--volume={self.folder}/secrets:{SECRETS}:ro",
            *("--env=PYTHONPATH=/client", "--entrypoint=python", self.image, "/client/load.py"),
            *(bootstrap, str(min(3, len(self.file.brokers))), json.dumps(settings)),
        ]
        log = (self.folder / "client.log").open("w")
        self._client = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, text=True
        )
        assert self._client.stdout is not None
        assert self._client.stdout.readline() == '"ready"\n', (self.folder / "client.log").read_text()[-3000:]

    def _entrance(self) -> tuple[Any, dict[str, Any]]:
        """Return the port of each broker for other brokers, and a client's settings for it."""
        ports = {}
        protocol = "PLAINTEXT"
        for service in self.file.brokers:
            paths = [str(PROJECT / "image/root/etc/kafka-compat/server.properties")]
            if self.file.properties is not None:
                paths.append(str(self.folder / "config" / "server.properties"))
            given = self.file.services[service].items()
            plain = {name: value for name, value in given if "_SSL_" not in name}
            config = load(paths, (), plain)
            name = config.str("inter.broker.listener.name") or "PLAINTEXT"
            listener = next(each for each in config.listeners if each.name == name)
            ports[service] = listener.port
            protocol = listener.security_protocol
        settings: dict[str, Any] = {"security_protocol": protocol}
        if protocol.startswith("SASL"):
            user, password = kraft_secrets.USER
            settings |= {
                "sasl_mechanism": "PLAIN",
                "sasl_plain_username": user,
                "sasl_plain_password": password,
            }
        if protocol.endswith("SSL"):
            pem = f"{SECRETS}/{kraft_secrets.CLIENT_FILE}"
            settings |= {
                "ssl_cafile": f"{SECRETS}/{kraft_secrets.CA_FILE}",
                "ssl_certfile": pem,
                "ssl_keyfile": pem,
            }
        return lambda host: ports.get(host, next(iter(ports.values()))), settings

    def ask(self, word: str) -> Any:
        """Return the client's answer to a word that kraft_load.py lists."""
        assert self._client is not None and self._client.stdin is not None
        assert self._client.stdout is not None
        self._client.stdin.write(f"{word}\n")
        self._client.stdin.flush()
        line = self._client.stdout.readline()
        assert line, (self.folder / "client.log").read_text()[-3000:]
        return json.loads(line)

    def wait_for_records(self, count: int) -> None:
        """Wait until `count` more records are acknowledged."""
        before = self.ask("count")
        wait_until(lambda: self.ask("count") >= before + count, PATIENCE_S, f"{count} records", 0.1)

    def wait_in_sync(self) -> None:
        """Wait until all replicas are in sync."""
        replicas = min(3, len(self.file.brokers))
        wait_until(lambda: self.ask("isr") == [replicas] * 3, PATIENCE_S, f"{replicas} replicas in sync", 0.2)

    def close(self) -> None:
        """Remove the containers."""
        if self._client is not None:
            subprocess.run(["docker", "rm", "--force", f"{self.project}-client"], capture_output=True)
            self._client.wait(20)
        self.compose("down", "--volumes", "--timeout", "5")


def lose_a_container(cluster: KraftCluster) -> str:
    """Start the containers, and write records while a broker and, if there are any, a node that is only a
    controller are killed and started again. Return a summary. Raises AssertionError if a record was lost.
    """
    began = time.monotonic()
    cluster.up()
    cluster.connect()
    cluster.wait_for_records(1)
    ready_s = time.monotonic() - began
    cluster.wait_for_records(200)
    brokers = cluster.file.brokers
    controllers = [each for each in cluster.file.services if each not in brokers]
    victims = [cluster.service_of(cluster.ask("leader")), *controllers[:1]]
    for victim in victims:
        cluster.kill(victim)
        if victim in controllers or len(brokers) >= 3:
            cluster.wait_for_records(300)
        cluster.start(victim)
        cluster.wait_for_records(200)
        cluster.wait_in_sync()
    found = cluster.ask("end")
    assert found["lost"] == 0, found
    assert found["duplicated"] == 0, found
    return (
        f"first record after {ready_s:.1f} s, killed {' and '.join(victims)}: {found['acknowledged']} "
        f"records acknowledged, 0 lost, 0 duplicated, {time.monotonic() - began:.0f} s"
    )
