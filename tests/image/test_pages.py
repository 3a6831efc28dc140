"""Examples in docs/image.md and docs/testing.md that need the image, run unchanged."""

from __future__ import annotations

import re
import socket
import subprocess
from pathlib import Path
from textwrap import dedent

import pytest
from confluent_kafka import Consumer

from tests.compose.docker import compose_command, docker
from tests.support.process import wait_until

DOCS = Path(__file__).parents[2] / "docs"
NETWORK = Path(__file__).parent / "compose" / "network.yml"
PROJECT = "kafka-compat-pages"


def blocks(page: str, language: str) -> list[str]:
    """Return the code blocks of the page in the given language."""
    return re.findall(rf"^```{language}\n(.*?)^```$", (DOCS / page).read_text(), re.DOTALL | re.MULTILINE)


@pytest.fixture(autouse=True)
def free(image: str) -> None:
    """Skip the test if Kafka's port, which the examples publish, is in use."""
    try:
        socket.create_server(("127.0.0.1", 9092)).close()
    except OSError:
        pytest.skip("127.0.0.1:9092 is in use")


@pytest.fixture
def compose(tmp_path: Path) -> list[str]:
    """The command for a compose.yml in a new directory."""
    files = ["-f", f"{tmp_path}/compose.yml", "-f", str(NETWORK)]
    return [*compose_command(), "-p", PROJECT, *files]


def run(*command: str) -> str:
    """Run the command, which must exit with 0, and return its output."""
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def container(service: str) -> str:
    """Return the container id of a service."""
    return run(
        "docker", "ps", "--all", "--quiet", "--filter", f"name={PROJECT}.{service}", "--no-trunc"
    ).strip()


@pytest.mark.parametrize("page", ["image.md", "testing.md"])
def test_the_commands_on_each_page_succeed(page: str) -> None:
    scripts = blocks(page, "bash")
    assert scripts
    try:
        for script in scripts:
            run("bash", "-euxo", "pipefail", "-c", script)
    finally:
        subprocess.run(["docker", "rm", "--force", "--volumes", "kafka", "seen"], capture_output=True)


def test_the_compose_file_on_the_image_page_creates_its_topic(tmp_path: Path, compose: list[str]) -> None:
    file = blocks("image.md", "yaml")[0]
    (tmp_path / "compose.yml").write_text(f'version: "3.8"\n{file}')
    try:
        run(*compose, "up", "--detach")

        def made() -> bool:
            return "Created topic flights." in docker("logs", container("topics"))

        wait_until(made, 60, "creation of the topic", 0.2)
    finally:
        run(*compose, "down", "--volumes")


def test_the_compose_file_on_the_image_page_serves_the_host_and_a_container(
    tmp_path: Path, compose: list[str]
) -> None:
    file = blocks("image.md", "yaml")[1]
    (tmp_path / "compose.yml").write_text(f'version: "3.8"\n{file}')
    try:
        run(*compose, "up", "--detach")
        settings = {
            "bootstrap.servers": "localhost:9092",
            "group.id": "host",
            "auto.offset.reset": "earliest",
        }
        consumer = Consumer(settings)
        consumer.subscribe(["flights"])
        (message,) = consumer.consume(1, 60)
        assert message.value() == b"EWR"
        consumer.close()
    finally:
        run(*compose, "down", "--volumes")


def test_the_github_actions_service_container_runs_the_steps(tmp_path: Path, compose: list[str]) -> None:
    """Like a GitHub Actions runner, the test starts the services, waits until they are healthy, and runs the
    steps.
    """
    (workflow,) = blocks("testing.md", "yaml")
    services = dedent(workflow.partition("    services:\n")[2].partition("    steps:\n")[0])
    steps = re.findall(r"^      - run: (.*)$", workflow, re.MULTILINE)
    services = "".join(f"  {line}" for line in services.replace("env:", "environment:").splitlines(True))
    (tmp_path / "compose.yml").write_text(f'version: "3.8"\nservices:\n{services}')
    try:
        run(*compose, "up", "--detach")
        kafka = container("kafka")

        def healthy() -> bool:
            return docker("inspect", "--format", "{{.State.Health.Status}}", kafka).strip() == "healthy"

        wait_until(healthy, 60, "health of the service", 0.2)
        told = [run("bash", "-ec", step.replace("${{ job.services.kafka.id }}", kafka)) for step in steps]
        assert "Topic: flights" in told[0]
        assert len(told) == 2
    finally:
        run(*compose, "down", "--volumes")


@pytest.mark.parametrize("number", [0, 1])
def test_the_compose_files_on_the_clusters_page_replicate_a_topic(
    tmp_path: Path, compose: list[str], number: int
) -> None:
    file = blocks("clusters.md", "yaml")[number]
    (tmp_path / "compose.yml").write_text(f'version: "3.8"\n{file}')
    inside = ("kafka1", "kafka4")[number]
    create = f"--bootstrap-server {inside}:9092 --create --topic flights --replication-factor 3".split()
    try:
        run(*compose, "up", "--detach")

        def created() -> bool:
            done = subprocess.run(["docker", "exec", container(inside), "kafka-topics", *create])
            return done.returncode == 0

        wait_until(created, 60, "creation of the topic", 0.5)
        described = docker(
            *("exec", container(inside), "kafka-topics", "--bootstrap-server", f"{inside}:9092"),
            *("--describe", "--topic", "flights"),
        )
        assert "ReplicationFactor: 3" in described
    finally:
        run(*compose, "down", "--volumes")
