"""The image's scripts, run in a directory in place of `/`, with a stub of kafka-compat that prints its
arguments.
"""

from __future__ import annotations

import os
import re
import shutil
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from kafka_compat.tools.registry import TOOLS
from tests.support.ports import free_port

PROJECT = Path(__file__).parents[2]
BROKER = """\
#!/usr/bin/env bash
echo "called: $*"
echo "log.dirs=${KAFKA_LOG_DIRS-}"
echo "zookeeper.connect=${KAFKA_ZOOKEEPER_CONNECT-}"
echo "advertised=${KAFKA_ADVERTISED_LISTENERS-}"
echo "cluster.id=${CLUSTER_ID-}"
[ "$1" = serve ] && [ -n "${WAITS-}" ] || exit 0
trap 'echo "stopped in order"; exit 0' TERM
echo serves
while :; do sleep 0.01; done
"""


class Root:
    """A directory with the image's files."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.environment = {
            "PATH": f"{folder}/programs:{folder}/opt/kafka/bin:{os.environ['PATH']}",
            "KAFKA_COMPAT_ROOT": str(folder),
            "KAFKA_COMPAT_PYTHON": sys.executable,
            "PYTHONPATH": str(PROJECT),
        }

    def install(self) -> None:
        """Install the files like the image's build."""
        (self.folder / "programs").mkdir()
        (self.folder / "proc" / "self").mkdir(parents=True)
        broker = self.folder / "programs" / "kafka-compat"
        broker.write_text(BROKER)
        broker.chmod(0o755)
        subprocess.run([PROJECT / "image" / "install"], env=self.environment, check=True)

    def start(self, *command: str, **environment: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            command,
            cwd=self.folder,
            env=self.environment | environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    def run(self, *command: str, **environment: str) -> str:
        """Run a command, and return its output."""
        return self.start(*command, **environment).communicate(timeout=20)[0]

    def container(self, *command: str, **environment: str) -> str:
        """Return the output of a container started with this command."""
        return self.run(f"{self.folder}/etc/kafka-compat/entrypoint", *command, **environment)


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("root")
    Root(folder).install()
    return folder


@pytest.fixture
def root(installed: Path, tmp_path: Path) -> Root:
    shutil.copytree(installed, tmp_path, symlinks=True, dirs_exist_ok=True)
    return Root(tmp_path)


def called(told: str) -> str:
    """Return the arguments passed to kafka-compat."""
    found = re.search(r"^called: (.*)$", told, re.MULTILINE)
    assert found, told
    return found[1]


def test_a_container_without_arguments_runs_a_broker(root: Root) -> None:
    own = f"{root.folder}/etc/kafka-compat/server.properties"
    assert called(root.container()) == f"serve --env --kafka-lines {own}"
    assert called(root.container("--brokers", "3")) == f"serve --env --kafka-lines --brokers 3 {own}"


def test_a_container_can_run_other_programs(root: Root) -> None:
    assert root.container("echo", "kafka") == "kafka\n"
    assert root.container("sh", "-c", "echo $0 kafka", "in") == "in kafka\n"
    assert called(root.container("kafka-compat", "doctor")) == "doctor"


@pytest.mark.parametrize(
    "script",
    [
        "export KAFKA_ADVERTISED_LISTENERS=here; {root}/etc/kafka/docker/run",
        ". {root}/etc/confluent/docker/bash-config; export KAFKA_ADVERTISED_LISTENERS=here; "
        "{root}/etc/confluent/docker/configure; {root}/etc/confluent/docker/launch",
        "echo '' > {root}/etc/confluent/docker/ensure; export KAFKA_ADVERTISED_LISTENERS=here; "
        "{root}/etc/confluent/docker/run",
    ],
)
def test_scripts_for_other_images_start_the_broker_with_their_exported_variables(
    root: Root, script: str
) -> None:
    (root.folder / "etc" / "kafka" / "docker").resolve(strict=True)
    told = root.container("sh", "-c", script.format(root=root.folder))
    assert called(told).startswith("serve --env")
    assert "advertised=here\n" in told


def test_scripts_for_other_images_can_run_commands_before_startup(root: Root) -> None:
    folder = f"{root.folder}/etc/confluent/docker"
    script = (
        f"sed -i '/KAFKA_ZOOKEEPER_CONNECT/d' {folder}/configure; "
        f"echo 'kafka-storage format -t x -c /etc/kafka/kafka.properties' >> {folder}/configure; {folder}/run"
    )
    told = root.container("sh", "-c", script)
    assert told.index("Nothing to format") < told.index("called: serve")


def test_a_signal_reaches_the_broker_through_a_shell_that_waits_for_it(root: Root) -> None:
    script = f"{root.folder}/etc/kafka/docker/run; true"
    container = root.start(f"{root.folder}/etc/kafka-compat/entrypoint", "sh", "-c", script, WAITS="yes")
    assert container.stdout is not None
    while container.stdout.readline() != "serves\n":
        assert container.poll() is None
    container.send_signal(signal.SIGTERM)
    told, _ = container.communicate(timeout=20)
    assert told == "stopped in order\n"
    assert container.returncode == 0


def test_after_a_restart_a_signal_reaches_the_shell_before_there_is_a_broker(root: Root) -> None:
    (root.folder / "tmp" / "kafka-compat.pid").write_text(f"{2**22 + 1}\n")
    script = "echo waits; exec sleep 60"
    container = root.start(f"{root.folder}/etc/kafka-compat/entrypoint", "sh", "-c", script)
    assert container.stdout is not None
    assert container.stdout.readline() == "waits\n"
    container.send_signal(signal.SIGTERM)
    assert container.wait(20) == 128 + signal.SIGTERM


def test_a_zookeeper_started_by_a_script_is_not_used(root: Root) -> None:
    port = free_port()
    (root.folder / "zookeeper.properties").write_text(f"dataDir=/nowhere\nclientPort={port}\n")
    script = (
        f"{root.folder}/opt/kafka/bin/zookeeper-server-start.sh zookeeper.properties > /dev/null & "
        f"KAFKA_ZOOKEEPER_CONNECT=localhost:{port} {root.folder}/etc/confluent/docker/launch; kill $!"
    )
    assert "zookeeper.connect=\n" in root.run("bash", "-c", script)


def test_an_external_zookeeper_is_used(root: Root) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        here = f"localhost:{server.getsockname()[1]}"
        assert f"zookeeper.connect={here}\n" in root.container(KAFKA_ZOOKEEPER_CONNECT=here)
    assert "zookeeper.connect=zookeeper:2181\n" in root.container(KAFKA_ZOOKEEPER_CONNECT="zookeeper:2181")


@pytest.mark.parametrize(
    ("mounted", "folder"),
    [
        ("/var/lib/kafka/data", "/var/lib/kafka/data"),
        ("/tmp/kraft-combined-logs", "/tmp/kraft-combined-logs"),
        ("/bitnami", "/bitnami/kafka/data"),
        ("/bitnami/kafka", "/bitnami/kafka/data"),
        ("/elsewhere", ""),
    ],
)
def test_data_is_stored_in_a_mounted_volume(root: Root, mounted: str, folder: str) -> None:
    (root.folder / "proc" / "self" / "mounts").write_text(
        f"proc /proc proc\n/dev/sda {mounted} ext4 rw 0 0\n"
    )
    assert f"log.dirs={folder}\n" in root.container()
    assert "log.dirs=/mine\n" in root.container(KAFKA_LOG_DIRS="/mine")


def test_a_mounted_settings_file_overrides_the_images_file(root: Root) -> None:
    mounted = root.folder / "mnt" / "shared" / "config" / "server.properties"
    mounted.write_text("num.partitions=3\n")
    own = f"{root.folder}/etc/kafka-compat/server.properties"
    assert called(root.container()) == f"serve --env --kafka-lines {own} {mounted}"
    health = root.run(f"{root.folder}/etc/kafka-compat/health")
    assert called(health) == f"health --env {own} {mounted}"


def test_the_start_script_passes_on_the_settings_file_and_overrides(root: Root) -> None:
    given = root.folder / "given.properties"
    given.touch()
    start = f"{root.folder}/opt/kafka/bin/kafka-server-start.sh"
    told = root.run(start, str(given), "--override", "broker.id=4")
    assert called(told).startswith("serve --env --kafka-lines --override broker.id=4 ")
    assert called(told).endswith(str(given))


def test_the_health_check_uses_the_settings_that_the_broker_was_started_with(root: Root) -> None:
    own = f"{root.folder}/etc/kafka-compat/server.properties"
    given = root.folder / "given.properties"
    given.touch()
    start = f"{root.folder}/opt/kafka/bin/kafka-server-start.sh"
    root.run(start, str(given), "--override", "listeners=INSIDE://:9095", "--override=broker.id=4")
    health = root.run(f"{root.folder}/etc/kafka-compat/health")
    overrides = "--override listeners=INSIDE://:9095 --override=broker.id=4"
    assert called(health) == f"health --env {overrides} {own} {given}"
    root.container("--port", "9096")
    health = root.run(f"{root.folder}/etc/kafka-compat/health")
    assert called(health) == f"health --env --override listeners=PLAINTEXT://127.0.0.1:9096 {own}"


def test_a_node_that_is_only_a_controller_runs_and_is_checked_like_a_broker(root: Root) -> None:
    own = f"{root.folder}/etc/kafka-compat/server.properties"
    assert called(root.container(KAFKA_PROCESS_ROLES="controller")) == f"serve --env --kafka-lines {own}"
    health = root.run(f"{root.folder}/etc/kafka-compat/health", KAFKA_CFG_PROCESS_ROLES="controller")
    assert called(health) == f"health --env {own}"


def test_only_the_settings_of_a_quorum_node_are_formatted(root: Root) -> None:
    arguments = ("kafka-storage", "format", "-t", "MkU3OEVBNTcwNTJENDM2Qk", "-c")
    assert "Nothing to format" in root.run(*arguments, "/etc/kafka/kafka.properties")
    node = root.folder / "node.properties"
    node.write_text("node.id=1\nprocess.roles=broker,controller\n")
    assert called(root.run(*arguments, str(node))) == f"storage {' '.join(arguments[1:])} {node}"


def test_the_cluster_id_of_a_format_command_is_used_unless_the_environment_has_one(root: Root) -> None:
    folder = f"{root.folder}/etc/confluent/docker"
    script = (
        "echo 'kafka-storage format -g -t MkU3OEVBNTcwNTJENDM2Qk -c /etc/kafka/kafka.properties' "
        f">> {folder}/configure; {folder}/run"
    )
    assert "cluster.id=MkU3OEVBNTcwNTJENDM2Qk\n" in root.container("sh", "-c", script)
    assert "cluster.id=own\n" in root.container(CLUSTER_ID="own")
    (root.folder / "data").mkdir()
    (root.folder / "data" / "meta.properties").touch()
    assert "cluster.id=\n" in root.container(KAFKA_LOG_DIRS=f"{root.folder}/data")


def test_other_storage_commands_are_those_of_kafka_compat(root: Root) -> None:
    assert called(root.run("kafka-storage", "version-mapping")) == "storage version-mapping"


def test_the_metadata_shell_lists_the_brokers_that_the_broker_for_brokers_names(root: Root) -> None:
    stub = root.folder / "opt" / "kafka" / "bin" / "kafka-broker-api-versions"
    stub.write_text(
        '#!/bin/sh\necho asked $* >&2\nfor id in 2 1 10; do echo "h:1 (id: $id rack: null) -> ("; done\n'
    )
    told = root.run(
        *("kafka-metadata-shell", "--snapshot", "/nowhere.log", "ls", "/brokers"),
        KAFKA_LISTENERS="PLAINTEXT://:9092,BROKER://:9093",
        KAFKA_LISTENER_SECURITY_PROTOCOL_MAP="PLAINTEXT:PLAINTEXT,BROKER:PLAINTEXT",
        KAFKA_INTER_BROKER_LISTENER_NAME="BROKER",
    )
    assert told == "asked --bootstrap-server 127.0.0.1:9093\n1\n2\n10\n"
    assert "only 'ls /brokers'" in root.run("kafka-metadata-shell", "ls", "/topics")


def test_generated_cluster_ids_have_kafkas_format(root: Root) -> None:
    found = {root.run("kafka-storage", "random-uuid").strip() for _ in range(20)}
    assert len(found) == 20
    assert all(re.fullmatch(r"[A-Za-z0-9_][A-Za-z0-9_-]{21}", each) for each in found)


def test_each_command_is_available_under_all_its_names(root: Root) -> None:
    assert (root.folder / "opt" / "bitnami" / "kafka" / "bin").readlink() == Path("/opt/kafka/bin")
    folder = root.folder / "opt" / "kafka" / "bin"
    for tool in TOOLS.keys() - {"storage"}:
        assert f"main('{tool}')" in (folder / f"kafka-{tool}.sh").read_text()
    for name in (*(f"kafka-{tool}" for tool in TOOLS), "kafka-metadata-shell", "kafka-server-start", "cub"):
        assert os.access(folder / name, os.X_OK)
        assert (root.folder / "usr" / "bin" / name).readlink() == Path(f"/opt/kafka/bin/{name}")
