"""Docker commands, and the cluster of docker-compose.yml, for scripts/compose-test."""

from __future__ import annotations

import os
import secrets
import shutil
import subprocess
from collections.abc import Sequence

from tests.support.ports import free_port
from tests.support.process import wait_until
from tests.support.servers import PROJECT

BROKERS = ("kafka1", "kafka2", "kafka3")
INSIDE = ",".join(f"{name}:9092" for name in BROKERS)
"""Addresses of the brokers for containers on the network."""

TOPICS = {"orders": 6, "state": 3}
"""The topics of KAFKA_CREATE_TOPICS with their partition counts. Each has three replicas; `state` is
compacted."""

START_S = 120


class DockerFailed(AssertionError):
    """A Docker command failed. The message contains the command and its output."""


def docker(*arguments: str) -> str:
    """Run a docker command, and return its output. Raises DockerFailed."""
    return _run(["docker", *arguments], {})


def _run(command: Sequence[str], environment: dict[str, str]) -> str:
    done = subprocess.run(
        command, cwd=PROJECT, env=os.environ | environment, capture_output=True, text=True, timeout=300
    )
    if done.returncode:
        raise DockerFailed(f"{' '.join(command)}: exit code {done.returncode}\n{done.stdout}{done.stderr}")
    return done.stdout


class Cluster:
    """docker-compose.yml with a separate project name, ports and volumes."""

    def __init__(self, broker_image: str, zookeeper_image: str) -> None:
        self.project = f"kafka-compat-test-{secrets.token_hex(3)}"
        self.broker_image = broker_image
        self.ports = {name: free_port() for name in BROKERS}
        self.bootstrap = ",".join(f"127.0.0.1:{port}" for port in self.ports.values())
        self._environment = {
            "COMPOSE_PROJECT_NAME": self.project,
            "KAFKA_COMPAT_IMAGE": broker_image,
            "ZOOKEEPER_IMAGE": zookeeper_image,
            "KAFKA_CREATE_TOPICS": "orders:6:3,state:3:3:compact",
            **{f"{name.upper()}_PORT": str(port) for name, port in self.ports.items()},
        }

    def compose(self, *arguments: str) -> str:
        """Run `docker compose …`, and return its output. Raises DockerFailed."""
        files = ("-f", "docker-compose.yml", "-f", "tests/compose/override.yml")
        return _run([*compose_command(), *files, *arguments], self._environment)

    def up(self) -> None:
        """Start all services, and wait until they are healthy."""
        self.compose("up", "--detach", "--no-build")
        for service in ("zookeeper", *BROKERS):
            self.wait_healthy(service)

    def wait_healthy(self, service: str) -> None:
        def healthy() -> bool:
            return self.inspect(service, "{{.State.Health.Status}}") == "healthy"

        wait_until(healthy, START_S, f"{service} is healthy", 0.2)

    def inspect(self, service: str, template: str) -> str:
        """Return the result of `docker inspect` for a service's container, formatted with `template`."""
        return docker("inspect", "--format", template, self.id(service)).strip()

    def id(self, service: str) -> str:
        """Return the container id of a service, even if the container is stopped."""
        labels = {"project": self.project, "service": service}
        filters = [f"--filter=label=com.docker.compose.{name}={value}" for name, value in labels.items()]
        (found,) = docker("ps", "--all", "--quiet", *filters).split()
        return found

    def logs(self, lines: int = 60) -> str:
        return self.compose("logs", "--no-color", "--tail", str(lines))

    def down(self, *, volumes: bool) -> None:
        """Stop and remove the containers and the network. With `volumes`, delete the data too."""
        self.compose("down", "--timeout", "20", *(["--volumes"] if volumes else []))


def compose_command() -> list[str]:
    """Return the command of Compose: the Docker plugin, or the older docker-compose."""
    has_plugin = subprocess.run(["docker", "compose", "version"], capture_output=True).returncode == 0
    if not has_plugin and shutil.which("docker-compose") is None:
        raise DockerFailed("neither `docker compose` nor docker-compose is there")
    return ["docker", "compose"] if has_plugin else ["docker-compose"]
