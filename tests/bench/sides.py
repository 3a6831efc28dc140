"""The two compared sides, each a broker or a cluster of three, started in the same way and with the same
requests.
"""

from __future__ import annotations

import mmap
import shutil
import socket
import struct
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from tests.bench.kfake_broker import Kfake
from tests.security.authority import Authority
from tests.support.ports import free_port
from tests.support.process import wait_until
from tests.support.servers import PROJECT, GenuineKafka, KafkaCompatBroker, ZooKeeper, metadata

_PREWARM_BYTES = 1_500_000_000
_HEAP = "1G"
_SETTINGS = {
    "log.segment.delete.delay.ms": "0",
    "auto.create.topics.enable": "false",
    "share.coordinator.state.topic.replication.factor": "1",
    "share.coordinator.state.topic.min.isr": "1",
}
"""Settings of both sides: a single broker serves share groups, and files of a deleted topic are removed at
once, so that every run starts with an empty disk cache.
"""


CLUSTER_SIZE = 3
_START_TIMEOUT_S = 60

Broker = KafkaCompatBroker | GenuineKafka | Kfake


class Side:
    """A measured broker or cluster. `label` is its name in the output."""

    def __init__(self, label: str, servers: Sequence[Broker], tls_address: str | None = None) -> None:
        """`tls_address` is the address for measured clients, if it differs from the address for tools."""
        self.tls_address = tls_address
        self.label = label
        self.servers = servers
        self.resident_bytes_loaded = 0

    @property
    def address(self) -> str:
        return ",".join(server.address for server in self.servers)

    @property
    def client_address(self) -> str:
        """The address for measured clients."""
        return self.tls_address or self.address

    def start(self) -> None:
        """Start all brokers, and wait until they serve requests and know each other and the controller."""
        for server in self.servers:
            server.launch()
        for server in self.servers:
            server.process.wait_ready(_START_TIMEOUT_S)
        self.await_complete()

    def await_complete(self, timeout_s: float = _START_TIMEOUT_S) -> None:
        """Wait until `complete`."""
        wait_until(self.complete, timeout_s, f"{self.label}: all brokers and a controller", 0.05)

    def complete(self) -> bool:
        """Return whether every broker knows all brokers and the controller."""
        for server in self.servers:
            known = metadata(server.port)
            if known is None or len(known.brokers) < len(self.servers):
                return False
            if all(broker.node_id != known.controller_id for broker in known.brokers):
                return False
        return True

    def stop(self) -> None:
        for server in self.servers:
            server.stop()

    def cpu_seconds(self) -> float:
        """Return the CPU time of the brokers so far, including their ZooKeeper if only they use it."""
        return sum(server.cpu_seconds() for server in self._processes())

    def user_cpu_seconds(self) -> float:
        """Return the part of `cpu_seconds` that was not spent in the kernel."""
        return sum(server.user_cpu_seconds() for server in self._processes())

    def resident_bytes(self) -> int:
        """Return the current resident memory of the same processes as in `cpu_seconds`."""
        return sum(server.resident_bytes() for server in self._processes())

    def _processes(self) -> list[Broker | ZooKeeper]:
        found: list[Broker | ZooKeeper] = [*self.servers]
        for server in self.servers:
            zookeeper = getattr(server, "zookeeper", None)
            if zookeeper is not None and len(self.servers) == 1:
                found.append(zookeeper)
        return found

    def note_memory(self) -> None:
        """Update the peak memory under load."""
        self.resident_bytes_loaded = max(self.resident_bytes_loaded, self.resident_bytes())

    def create_topic(self, name: str, partitions: int) -> None:
        from confluent_kafka.admin import NewTopic

        admin = self._admin()
        topic = NewTopic(name, partitions, len(self.servers))
        admin.create_topics([topic], request_timeout=20)[name].result(30)

    def delete_topic(self, name: str) -> None:
        """Delete a topic, and wait until its directories are deleted."""
        admin = self._admin()
        admin.delete_topics([name], request_timeout=20)[name].result(30)

        def gone() -> bool:
            return not any(list(server.log_dir.glob(f"{name}-*")) for server in self.servers)

        wait_until(gone, 60, f"deletion of {name}", 0.1)

    def _admin(self) -> Any:
        from confluent_kafka.admin import AdminClient

        return AdminClient({"bootstrap.servers": self.address, "log_level": 2})


def environment_of(compiled: bool, checkout: Path = PROJECT) -> dict[str, str]:
    """The environment of a process that runs the code compiled by scripts/compile, or the sources."""
    return {"PYTHONPATH": str(checkout / ".compiled"), "PYTHONSAFEPATH": "1"} if compiled else {}


def ours(directory: Path, overrides: Mapping[str, str] | None = None, *, compiled: bool = False) -> Side:
    """This broker with its default settings."""
    settings = {**_SETTINGS, **(overrides or {})}
    return Side("ours", [KafkaCompatBroker(directory, settings, environment=environment_of(compiled))])


def genuine(directory: Path, mode: str, version: str = "3.9.1") -> Side:
    """A broker of Apache Kafka with the heap size and garbage collector that its start script sets."""
    broker = GenuineKafka(directory, _SETTINGS, version=version, mode=mode, heap=_HEAP, quick_start=False)
    return Side("genuine", [broker])


def kfake(directory: Path) -> Side:
    """kfake with its default settings."""
    return Side("kfake", [Kfake(directory)])


def tls_sides(
    authority: Authority, mode: str, *, compiled: bool
) -> tuple[Callable[[Path], Side], Callable[[Path], Side]]:
    """Makers of both brokers with an additional TLS listener and the same certificate."""
    signed = authority.sign("bench")

    def with_tls(port: int, tls_address: str, *others: str) -> dict[str, str]:
        plain = f"PLAINTEXT://127.0.0.1:{port}"
        return {
            **_SETTINGS,
            "listeners": ",".join([plain, f"SSL://{tls_address}", *others]),
            "advertised.listeners": f"{plain},SSL://{tls_address}",
            "inter.broker.listener.name": "PLAINTEXT",
            "ssl.keystore.type": "PEM",
            "ssl.keystore.location": str(signed.store),
        }

    def ours(folder: Path) -> Side:
        port, tls_address = free_port(), f"127.0.0.1:{free_port()}"
        settings = with_tls(port, tls_address)
        broker = KafkaCompatBroker(folder, settings, port=port, environment=environment_of(compiled))
        return Side("ours", [broker], tls_address)

    def genuine(folder: Path) -> Side:
        port, tls_address = free_port(), f"127.0.0.1:{free_port()}"
        broker = GenuineKafka(folder, mode=mode, port=port, heap=_HEAP, quick_start=False)
        controllers = [item for item in broker.properties()["listeners"].split(",") if "CONTROLLER" in item]
        broker.overrides = with_tls(port, tls_address, *controllers)
        protocols = "PLAINTEXT:PLAINTEXT,SSL:SSL,CONTROLLER:PLAINTEXT"
        broker.overrides["listener.security.protocol.map"] = protocols
        return Side("genuine", [broker], tls_address)

    return ours, genuine


def before(directory: Path, checkout: Path, *, compiled: bool = False) -> Side:
    """This broker from a different checkout."""
    environment = environment_of(compiled, checkout)
    return Side(
        "before", [KafkaCompatBroker(directory, _SETTINGS, checkout=checkout, environment=environment)]
    )


def our_cluster(
    directory: Path,
    zookeeper: ZooKeeper,
    label: str = "ours",
    checkout: Path = PROJECT,
    *,
    compiled: bool = False,
) -> Side:
    """Three processes of this broker, or of a different checkout's, on this ZooKeeper."""
    return Side(
        label,
        [
            KafkaCompatBroker(
                directory / f"{number}",
                _cluster_settings(number, zookeeper, label),
                checkout=checkout,
                environment=environment_of(compiled, checkout),
            )
            for number in range(1, CLUSTER_SIZE + 1)
        ],
    )


def genuine_cluster(directory: Path, zookeeper: ZooKeeper) -> Side:
    """Three processes of Apache Kafka 3.9.1 on this ZooKeeper."""
    return Side(
        "genuine",
        [
            GenuineKafka(
                directory / f"{number}",
                _cluster_settings(number, zookeeper, "genuine"),
                heap=_HEAP,
                zookeeper=zookeeper,
                quick_start=False,
            )
            for number in range(1, CLUSTER_SIZE + 1)
        ],
    )


def _cluster_settings(broker_id: int, zookeeper: ZooKeeper, name: str) -> dict[str, str]:
    """Settings with a long session timeout, so that sessions do not expire on a busy machine."""
    return {
        **_SETTINGS,
        "broker.id": str(broker_id),
        "zookeeper.connect": f"{zookeeper.address}/{name}",
        "zookeeper.session.timeout.ms": "18000",
    }


def start_and_time(side: Side) -> float:
    """Start the side, and return the seconds from the start of its process to its first ApiVersions response.
    For a cluster: until every broker lists all brokers and the controller.

    Preparations (formatting KRaft's directory, starting ZooKeeper) are not included.
    """
    for server in side.servers:
        server.prepare()
    began = time.perf_counter()
    for server in side.servers:
        server.launch()
    served = side.complete if len(side.servers) > 1 else lambda: answers(side.servers[0].port)
    while not served():
        if time.perf_counter() > began + _START_TIMEOUT_S:
            tail = side.servers[0].process.tail()
            raise RuntimeError(f"{side.label} did not serve within {_START_TIMEOUT_S} s:\n{tail}")
        time.sleep(0.002)  # interval of polling
    elapsed_s = time.perf_counter() - began
    for server in side.servers:
        server.process.wait_ready()
    return elapsed_s


def answers(port: int) -> bool:
    """Return whether a broker responds to ApiVersions on this port."""
    try:
        with socket.create_connection(("127.0.0.1", port), timeout=10) as connection:
            connection.sendall(struct.pack(">ihhih", 10, 18, 0, 1, -1))
            return bool(connection.recv(4))
    except OSError:
        return False


def compile_sources(checkout: Path) -> None:
    """Compile the sources of a checkout to bytecode, as an installation does. With PYTHONDONTWRITEBYTECODE,
    each start would otherwise compile changed files again.
    """
    line = [str(checkout / ".venv" / "bin" / "python"), "-m", "compileall", "-q"]
    folders = [name for name in ("kafka_compat", "storage", "coordination") if (checkout / name).is_dir()]
    subprocess.run([*line, *folders], cwd=checkout, check=False)


def prewarm_memory() -> None:
    """Touch and free 1.5 GB: on virtual machines, memory that was not used recently is much slower."""
    with mmap.mmap(-1, _PREWARM_BYTES) as memory:
        pages = len(range(0, _PREWARM_BYTES, mmap.PAGESIZE))
        memory[:: mmap.PAGESIZE] = b"\1" * pages


def remove(directory: Path) -> None:
    shutil.rmtree(directory, ignore_errors=True)


def idle(seconds: float) -> None:
    """Leave the machine idle."""
    time.sleep(seconds)  # nothing runs during this time
