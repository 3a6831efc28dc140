"""Servers for tests: our broker, Apache Kafka with ZooKeeper or KRaft, and ZooKeeper itself.

Each keeps its port and its data directory over `stop`, `kill` and `start`, and writes one log file.
"""

from __future__ import annotations

import atexit
import contextlib
import json
import os
import socket
import struct
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

from kafka_compat.protocol import codec
from kafka_compat.protocol.api_keys import ApiKey
from kafka_compat.protocol.headers import RequestHeader, encode_request_header
from kafka_compat.protocol.messages.metadata import MetadataRequest, MetadataResponse
from tests.support import campaign, java
from tests.support.ports import free_port
from tests.support.process import Process, wait_until

PROJECT = Path(__file__).resolve().parent.parent.parent

_running: list[Server] = []
"""Every started server, so that a failing test can show its log."""

_KAFKA_JVM = (
    "-server",
    "-XX:+UseG1GC",
    "-XX:MaxGCPauseMillis=20",
    "-XX:InitiatingHeapOccupancyPercent=35",
    "-XX:+ExplicitGCInvokesConcurrent",
)
"""The garbage collection flags set by Kafka's start script, for comparisons of speed."""


class Server:
    """A server that can be stopped, killed and started again on the same port and directory."""

    name = "server"
    host = "127.0.0.1"
    """The host of the listener."""
    launcher: Sequence[str] = ()
    """A prefix of its command line, such as `ip netns exec NAME`."""

    def __init__(self, directory: Path, *, port: int | None = None) -> None:
        self.directory = directory
        self.port = port if port is not None else free_port()
        self.log = directory / f"{self.name}.log"
        self._process: Process | None = None
        self._prepared = False
        directory.mkdir(parents=True, exist_ok=True)

    @property
    def address(self) -> str:
        """The address as `host:port` for bootstrap.servers."""
        return f"{self.host}:{self.port}"

    bootstrap_servers = address

    @property
    def process(self) -> Process:
        """The process of the last start. Raises RuntimeError before the first."""
        if self._process is None:
            raise RuntimeError(f"{self.name} was not started")
        return self._process

    @property
    def pid(self) -> int:
        return self.process.pid

    @property
    def running(self) -> bool:
        return self._process is not None and self._process.running

    def prepare(self) -> None:
        """Prepare the start. `launch` calls this, unless it was called before."""
        self._prepared = True

    def launch(self) -> None:
        """Start without waiting. Use `wait_ready` to wait."""
        if not self._prepared:
            self.prepare()
        self._prepared = False
        self._process = self._new_process()
        self._process.launch()
        if self not in _running:
            _running.append(self)

    def start(self, timeout_s: float = 60) -> None:
        """Start the server, and wait until it serves. Raises ProcessFailed with its last output."""
        self.launch()
        self.wait_ready(timeout_s)

    def wait_ready(self, timeout_s: float = 60) -> None:
        """Wait until the launched server serves. Raises ProcessFailed with its last output."""
        self.process.wait_ready(timeout_s)

    def stop(self, timeout_s: float = 20) -> int:
        """Send SIGTERM and wait (SIGKILL after `timeout_s`). Return the exit code."""
        if self in _running:
            _running.remove(self)
        return self._process.stop(timeout_s) if self._process is not None else 0

    def kill(self) -> None:
        """Kill the server with kill -9, and wait until the process has exited."""
        self.process.kill()

    def restart(self, *, kill: bool = False) -> None:
        """Stop the server, or kill it with kill -9, and start it again on the same port and directory."""
        if kill:
            self.kill()
        else:
            self.process.stop()
        self.start()

    def cpu_seconds(self) -> float:
        return self.process.cpu_seconds()

    def user_cpu_seconds(self) -> float:
        return self.process.user_cpu_seconds()

    def resident_bytes(self) -> int:
        return self.process.resident_bytes()

    def _new_process(self) -> Process:
        raise NotImplementedError


class KafkaCompatBroker(Server):
    """`python -m kafka_compat serve` with a new data directory.

    `overrides` are Kafka settings. Unless given, the listener, the data directory and the initial group delay
    are set for tests.
    """

    name = "kafka-compat"

    def __init__(
        self,
        directory: Path,
        overrides: Mapping[str, str] | None = None,
        *,
        port: int | None = None,
        arguments: Sequence[str] = (),
        environment: Mapping[str, str] | None = None,
        checkout: Path = PROJECT,
    ) -> None:
        """`checkout` is the directory of the sources. Other checkouts run in their own .venv."""
        super().__init__(directory, port=port)
        self.checkout = checkout
        self.log_dir = directory / "logs"
        self.overrides = {
            "broker.id": "1",
            "listeners": f"PLAINTEXT://{self.address}",
            "log.dirs": str(self.log_dir),
            "group.initial.rebalance.delay.ms": "0",
            **(overrides or {}),
        }
        self.arguments = list(arguments)
        self.environment = dict(environment or {})

    def command(self) -> list[str]:
        """Return the command line that `start` runs."""
        given = [f"--override={name}={value}" for name, value in self.overrides.items()]
        python = sys.executable if self.checkout == PROJECT else str(self.checkout / ".venv/bin/python")
        return [python, "-m", "kafka_compat", "serve", *self.arguments, *given]

    def _new_process(self) -> Process:
        ready = rf"(?i)ready.*:{self.port}\b"
        line = [*self.launcher, *self.command()]
        return Process(line, self.log, ready, environment=self.environment, directory=self.checkout)


class ZooKeeper(Server):
    """The ZooKeeper bundled with Kafka 3.9.1."""

    name = "zookeeper"

    def __init__(self, directory: Path, *, port: int | None = None) -> None:
        super().__init__(directory, port=port)
        self.jvm_options: list[str] = []
        self._archive = java.ClassArchive(java.DEFAULT_VERSION, "zookeeper-alone")

    def stop(self, timeout_s: float = 20) -> int:
        code = super().stop(timeout_s)
        self._archive.keep()
        return code

    def settings(self) -> dict[str, str]:
        """Return the content of zoo.cfg."""
        return {
            "dataDir": str(self.directory / "zookeeper-data"),
            "clientPort": str(self.port),
            "clientPortAddress": self.host,
            "admin.enableServer": "false",
            "maxClientCnxns": "0",
            "tickTime": "500",
            "maxSessionTimeout": "60000",
            # Tests kill only processes, after which files are complete without syncs. Where a sync takes a
            # second, as on build machines, sessions of two seconds would expire.
            "forceSync": "no",
        }

    def _new_process(self) -> Process:
        file = self.directory / "zoo.cfg"
        file.write_text(_properties(self.settings()))
        jvm_options = (*java.QUICK_START, *self._archive.options(), *self.jvm_options)
        command = java.command(
            "org.apache.zookeeper.server.quorum.QuorumPeerMain", str(file), jvm_options=jvm_options
        )
        return Process([*self.launcher, *command], self.log, "PrepRequestProcessor.*started")


class GenuineKafka(Server):
    """Apache Kafka as published. `mode` is "zookeeper" (only 3.9.1; includes ZooKeeper) or "kraft".

    Without `quick_start`, as in campaigns, the JVM has the flags set by Kafka's start script.
    """

    name = "kafka"
    format_options: tuple[str, ...] = ()
    """Further arguments of `kafka-storage format`, in KRaft mode."""

    def __init__(
        self,
        directory: Path,
        overrides: Mapping[str, str] | None = None,
        *,
        version: str = "3.9.1",
        mode: str = "zookeeper",
        port: int | None = None,
        heap: str = "512M",
        zookeeper: ZooKeeper | None = None,
        jvm_options: Sequence[str] = (),
        quick_start: bool | None = None,
    ) -> None:
        super().__init__(directory, port=port)
        quick = not campaign.enabled() if quick_start is None else quick_start
        self._jvm_options = (*(java.QUICK_START if quick else _KAFKA_JVM), *jvm_options)
        # A JVM with an agent neither reads nor writes an archive.
        has_agent = any(option.startswith("-javaagent") for option in jvm_options)
        self._archive = java.ClassArchive(version, mode) if quick and not has_agent else None
        self.version = version
        self.mode = mode
        self.heap = heap
        self.log_dir = directory / "logs"
        self.properties_file = directory / "server.properties"
        self._owns_zookeeper = mode == "zookeeper" and zookeeper is None
        self.zookeeper = ZooKeeper(directory / "zookeeper") if self._owns_zookeeper else zookeeper
        self._controller_port = free_port()
        self._was_started = False
        self.overrides = dict(overrides or {})

    def wait_ready(self, timeout_s: float = 60) -> None:
        """Wait until the broker knows its controller. Before that, admin requests get no response."""
        super().wait_ready(timeout_s)
        wait_until(self._knows_controller, timeout_s, "Apache Kafka's controller", 0.05)

    def _knows_controller(self) -> bool:
        known = metadata(self.port)
        return known is not None and any(broker.node_id == known.controller_id for broker in known.brokers)

    def prepare(self) -> None:
        super().prepare()
        if self._owns_zookeeper and self.zookeeper is not None and not self.zookeeper.running:
            self.zookeeper.start()
        self.properties_file.write_text(_properties(self.properties()))
        if self.mode == "kraft":
            arguments = ("format", "--ignore-formatted", "-t", "MkU3OEVBNTcwNTJENDM2Qg", *self.format_options)
            java.run("kafka-storage", *arguments, "-c", str(self.properties_file), version=self.version)
        elif self._was_started:
            self._forget_session()
        self._was_started = True

    def stop(self, timeout_s: float = 20) -> int:
        code = super().stop(timeout_s)
        if self._archive is not None:
            self._archive.keep()
        if self._owns_zookeeper and self.zookeeper is not None:
            self.zookeeper.stop()
        return code

    def properties(self) -> dict[str, str]:
        """Return the settings of server.properties, with small internal topics and no initial group delay."""
        settings = {
            "log.dirs": str(self.log_dir),
            "listeners": f"PLAINTEXT://{self.address}",
            "offsets.topic.replication.factor": "1",
            "transaction.state.log.replication.factor": "1",
            "transaction.state.log.min.isr": "1",
            "group.initial.rebalance.delay.ms": "0",
        }
        if self.mode == "kraft":
            settings["process.roles"] = "broker,controller"
            settings["node.id"] = "1"
            settings["listeners"] += f",CONTROLLER://127.0.0.1:{self._controller_port}"
            settings["controller.listener.names"] = "CONTROLLER"
            settings["controller.quorum.voters"] = f"1@127.0.0.1:{self._controller_port}"
        else:
            assert self.zookeeper is not None
            settings["broker.id"] = "1"
            settings["zookeeper.connect"] = self.zookeeper.address
            settings["zookeeper.session.timeout.ms"] = "6000"
        return settings | self.overrides

    def _forget_session(self) -> None:
        """Delete the ephemeral nodes of a broker that was killed or that took too long to stop.

        This avoids waiting for ZooKeeper's session timeout.
        """
        from kazoo.client import KazooClient
        from kazoo.exceptions import NoNodeError

        properties = self.properties()
        client = KazooClient(properties["zookeeper.connect"])
        client.start(20)
        with contextlib.suppress(NoNodeError):
            client.delete(f"/brokers/ids/{properties['broker.id']}")
        with contextlib.suppress(NoNodeError):
            data, _ = client.get("/controller")
            if json.loads(data)["brokerid"] == int(properties["broker.id"]):
                client.delete("/controller")
        client.stop()
        client.close()

    def _new_process(self) -> Process:
        line = java.command(
            "kafka.Kafka",
            str(self.properties_file),
            version=self.version,
            heap=self.heap,
            jvm_options=(*self._jvm_options, *(self._archive.options() if self._archive else ())),
        )
        return Process(line, self.log, r"\[KafkaServer id=\d+\] started|Kafka Server started")


@contextlib.contextmanager
def kafka_39(directory: Path) -> Iterator[GenuineKafka]:
    """Run Apache Kafka 3.9.1 with ZooKeeper, with the settings IMPATIENT."""
    server = GenuineKafka(directory, IMPATIENT)
    server.start()
    yield server
    server.stop()


@contextlib.contextmanager
def kafka_41(directory: Path) -> Iterator[GenuineKafka]:
    """Run Apache Kafka 4.1.0 (KRaft), with the settings IMPATIENT."""
    server = GenuineKafka(directory, IMPATIENT, version="4.1.0", mode="kraft")
    server.start()
    yield server
    server.stop()


def metadata(port: int) -> MetadataResponse | None:
    """Return the metadata, without topics, from the broker at that port, or None if it does not respond."""
    request = MetadataRequest(topics=[], allow_auto_topic_creation=False)
    header = encode_request_header(RequestHeader(ApiKey.METADATA, 4, 1, "tests"))
    body = codec.encode(request, 4)
    try:
        with socket.create_connection(("127.0.0.1", port), 5) as connection:
            connection.sendall(struct.pack(">i", len(header) + len(body)) + header + body)
            with connection.makefile("rb") as stream:
                (size,) = struct.unpack(">i", stream.read(4))
                return codec.decode(MetadataResponse, 4, stream.read(size), 4)
    except (OSError, struct.error):
        return None


def running_logs(lines: int = 40) -> Iterator[tuple[str, str]]:
    """Yield the name, log file and last lines of every server that is running or exited unexpectedly."""
    for server in _running:
        yield f"{server.name} {server.log}", server.process.tail(lines)


@atexit.register
def stop_all() -> None:
    """Stop all running servers when this process exits."""
    for server in _running.copy():
        server.stop(5)


def _properties(settings: Mapping[str, str]) -> str:
    return "".join(f"{name}={value}{os.linesep}" for name, value in settings.items())


def run_kafka_compat(
    *arguments: str, timeout_s: float = 60, stdin: str = ""
) -> subprocess.CompletedProcess[str]:
    """Run `kafka-compat ARGUMENTS`, and capture its output."""
    line = [sys.executable, "-m", "kafka_compat", *arguments]
    return subprocess.run(line, capture_output=True, text=True, timeout=timeout_s, input=stdin, cwd=PROJECT)


StartBroker = Callable[..., KafkaCompatBroker]

IMPATIENT = {
    "group.min.session.timeout.ms": "1000",
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": "500",
}
"""Settings with which groups detect dead members, and coordinators expired transactions, within a second or
two.
"""
