"""The two brokers that are compared, started the same way and asked the same things."""

from __future__ import annotations

import mmap
import shutil
import socket
import struct
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tests.support.process import wait_until
from tests.support.servers import GenuineKafka, KafkaCompatBroker

_PREWARM_BYTES = 1_500_000_000
_SETTINGS = {
    "log.segment.delete.delay.ms": "0",
    "auto.create.topics.enable": "false",
}
"""The same for both: a deleted topic's files go at once, so that every leg starts on an empty disk cache."""


class Side:
    """One broker under measurement. `label` is "ours" or "genuine"."""

    def __init__(self, label: str, server: KafkaCompatBroker | GenuineKafka) -> None:
        self.label = label
        self.server = server
        self.resident_bytes_loaded = 0

    @property
    def address(self) -> str:
        return self.server.address

    def cpu_seconds(self) -> float:
        """CPU time of the broker so far, with its ZooKeeper's when it has one."""
        zookeeper = getattr(self.server, "zookeeper", None)
        return self.server.cpu_seconds() + (zookeeper.cpu_seconds() if zookeeper is not None else 0.0)

    def resident_bytes(self) -> int:
        """Resident memory now, with its ZooKeeper's when it has one."""
        zookeeper = getattr(self.server, "zookeeper", None)
        return self.server.resident_bytes() + (zookeeper.resident_bytes() if zookeeper is not None else 0)

    def note_memory(self) -> None:
        """Remember the highest memory seen under load."""
        self.resident_bytes_loaded = max(self.resident_bytes_loaded, self.resident_bytes())

    def create_topic(self, name: str, partitions: int) -> None:
        from confluent_kafka.admin import NewTopic  # type: ignore[attr-defined]

        admin = self._admin()
        admin.create_topics([NewTopic(name, partitions, 1)], request_timeout=20)[name].result(30)

    def delete_topic(self, name: str) -> None:
        """Delete and wait until its folders are gone from the disk."""
        admin = self._admin()
        admin.delete_topics([name], request_timeout=20)[name].result(30)
        log_dir = self.server.log_dir
        wait_until(lambda: not list(log_dir.glob(f"{name}-*")), 60, f"deletion of {name}", 0.1)

    def _admin(self) -> Any:
        from confluent_kafka.admin import AdminClient

        return AdminClient({"bootstrap.servers": self.address, "log_level": 2})


def ours(directory: Path, overrides: Mapping[str, str] | None = None) -> Side:
    """This broker with its default settings."""
    return Side("ours", KafkaCompatBroker(directory, {**_SETTINGS, **(overrides or {})}))


def genuine(directory: Path, mode: str) -> Side:
    """Apache Kafka 3.9.1 with the heap and the collector of its own start script."""
    return Side("genuine", GenuineKafka(directory, _SETTINGS, mode=mode, heap="1G"))


def start_and_time(side: Side) -> float:
    """Start the broker; seconds from the start of its process to its first answer to ApiVersions.

    What comes before (formatting KRaft's folder, starting ZooKeeper) is not counted.
    """
    began = 0.0
    server = side.server
    server.prepare()
    began = time.perf_counter()
    server.launch()
    request = struct.pack(">ihhih", 10, 18, 0, 1, -1)
    deadline = began + 60
    while time.perf_counter() < deadline:
        try:
            with socket.create_connection(("127.0.0.1", server.port), timeout=10) as connection:
                connection.sendall(request)
                if connection.recv(4):
                    elapsed_s = time.perf_counter() - began
                    server.process.wait_ready()
                    return elapsed_s
        except OSError:
            time.sleep(0.002)
    raise RuntimeError(f"{side.label} did not answer ApiVersions within 60 s:\n{server.process.tail()}")


def prewarm_memory() -> None:
    """Touch and free 1.5 GB: on virtual machines, memory that was not used lately is much slower."""
    with mmap.mmap(-1, _PREWARM_BYTES) as memory:
        pages = len(range(0, _PREWARM_BYTES, mmap.PAGESIZE))
        memory[:: mmap.PAGESIZE] = b"\1" * pages


def remove(directory: Path) -> None:
    shutil.rmtree(directory, ignore_errors=True)


def idle(seconds: float) -> None:
    """Leave the machine alone for a while."""
    time.sleep(seconds)
