"""Three brokers on ZooKeeper or on a quorum, each on a separate host of a network that can be partitioned."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import NamedTuple, TypeVar

from kafka_compat.protocol.api_keys import ApiKey
from kafka_compat.storage.records.batch import read_headers
from kafka_compat.storage.records.records import iter_records
from tests.conformance.wire import Closed, Connection, Plain
from tests.partitions.network import Network
from tests.support.controllers import elected_controller
from tests.support.process import wait_until
from tests.support.servers import KafkaCompatBroker, ZooKeeper

BROKER_IDS = (1, 2, 3)
ALL = frozenset(BROKER_IDS)
CLIENT = "client"
ZOOKEEPER = "zookeeper"
PORT = 9092
CONTROLLER_PORT = 9093
SESSION_TIMEOUT_MS = 2_000
REQUEST_TIMEOUT_MS = 2_000
LAG_TIME_MAX_MS = 3_000
NO_LEADER = -1

T = TypeVar("T")


class State(NamedTuple):
    """The state of a partition as reported by a broker."""

    leader: int
    isr: frozenset[int]


class Batch(NamedTuple):
    """A batch in a segment file."""

    base_offset: int
    content: bytes


def host_of(broker_id: int) -> str:
    return f"broker-{broker_id}"


class PartitionedCluster:
    """Call `start` first. The first broker in `order` becomes the controller, except with `quorum`."""

    def __init__(
        self,
        directory: Path,
        order: tuple[int, ...] = BROKER_IDS,
        settings: Mapping[str, str] | None = None,
        *,
        quorum: bool = False,
    ) -> None:
        self._quorum = quorum
        self.network = Network([ZOOKEEPER, CLIENT, *map(host_of, BROKER_IDS)])
        self._order = order
        self._settings = settings or {}
        self._directory = directory
        self._zookeeper = ZooKeeper(self._directory / "zookeeper", port=2181)
        self._zookeeper.host = self.network.address(ZOOKEEPER)
        self._zookeeper.launcher = self.network.launcher(ZOOKEEPER)
        self.brokers = {broker_id: self._broker(broker_id) for broker_id in BROKER_IDS}

    def start(self) -> None:
        self.network.create()
        if self._quorum:
            self.brokers[self._order[0]].launch()
        else:
            self._zookeeper.start()
            self.brokers[self._order[0]].start()
        for broker_id in self._order[1:]:
            self.brokers[broker_id].launch()
        for broker_id in self._order if self._quorum else self._order[1:]:
            self.brokers[broker_id].wait_ready()

    def _broker(self, broker_id: int) -> KafkaCompatBroker:
        host = host_of(broker_id)
        address = self.network.address(host)
        settings = {
            "broker.id": str(broker_id),
            "listeners": f"PLAINTEXT://{address}:{PORT}",
            **(self._quorum_settings(address) if self._quorum else self._zookeeper_settings()),
            "controller.socket.timeout.ms": str(REQUEST_TIMEOUT_MS),
            "replica.socket.timeout.ms": str(REQUEST_TIMEOUT_MS),
            "replica.lag.time.max.ms": str(LAG_TIME_MAX_MS),
            "auto.leader.rebalance.enable": "false",
            **self._settings,
        }
        broker = KafkaCompatBroker(self._directory / host, settings, port=PORT)
        broker.host = address
        broker.launcher = self.network.launcher(host)
        return broker

    def _zookeeper_settings(self) -> dict[str, str]:
        return {
            "zookeeper.connect": self._zookeeper.address,
            "zookeeper.session.timeout.ms": str(SESSION_TIMEOUT_MS),
        }

    def _quorum_settings(self, address: str) -> dict[str, str]:
        voters = {broker_id: self.network.address(host_of(broker_id)) for broker_id in BROKER_IDS}
        return {
            "process.roles": "broker,controller",
            "listeners": f"PLAINTEXT://{address}:{PORT},CONTROLLER://{address}:{CONTROLLER_PORT}",
            "controller.listener.names": "CONTROLLER",
            "controller.quorum.voters": ",".join(
                f"{broker_id}@{host}:{CONTROLLER_PORT}" for broker_id, host in voters.items()
            ),
            "broker.session.timeout.ms": str(SESSION_TIMEOUT_MS),
        }

    def stop(self) -> None:
        for broker in self.brokers.values():
            if broker.running:
                broker.kill()
        if self._zookeeper.running:
            self._zookeeper.kill()
        self.network.delete()

    # Requests

    def ask(self, broker_id: int, api_key: ApiKey, version: int, request: Plain) -> Plain:
        """Send a request from the broker's own host, which reaches it despite network faults, and return
        the response.
        """

        def asked() -> Plain:
            with Connection(self.brokers[broker_id].address) as connection:
                return connection.ask(api_key, version, request)

        return self.network.on(host_of(broker_id), asked)

    def states(self, broker_id: int) -> dict[tuple[str, int], State]:
        """Return all partitions of the tests as reported by the broker, or an empty dict if it does not
        respond.
        """
        try:
            answer = self.ask(broker_id, ApiKey.METADATA, 12, {"topics": None})
        except (OSError, Closed):
            return {}
        return {
            (topic["name"], item["partition_index"]): State(item["leader_id"], frozenset(item["isr_nodes"]))
            for topic in answer["topics"]
            for item in topic["partitions"]
        }

    def controller_id(self, broker_id: int) -> int:
        """Return the ID of the controller. On a quorum, brokers name themselves in responses."""
        if self._quorum:
            logs = {each: broker.log for each, broker in self.brokers.items()}
            elected = elected_controller(logs)
            assert elected is not None
            return elected
        answer = self.ask(broker_id, ApiKey.METADATA, 12, {"topics": []})
        found: int = answer["controller_id"]
        return found

    def create_topic(self, name: str, settings: Mapping[str, str], partitions: int = 3) -> None:
        """Create a topic whose partition 0 is led by broker 1, partition 1 by broker 2, and so on."""
        assignments = [
            {"partition_index": index, "broker_ids": [(index + step) % 3 + 1 for step in range(3)]}
            for index in range(partitions)
        ]
        topic = {
            "name": name,
            "num_partitions": -1,
            "replication_factor": -1,
            "assignments": assignments,
            "configs": [{"name": key, "value": value} for key, value in settings.items()],
        }
        controller_id = self.controller_id(self._order[0])
        request = {"topics": [topic], "timeout_ms": 10_000}
        answer = self.ask(controller_id, ApiKey.CREATE_TOPICS, 7, request)
        assert answer["topics"][0]["error_code"] == 0, answer

    def wait_for(
        self,
        broker_id: int,
        condition: Callable[[dict[tuple[str, int], State]], bool],
        what: str,
        timeout_s: float = 30,
    ) -> float:
        """Wait until the broker reports such partitions, and return the time (monotonic seconds)."""
        wait_until(lambda: condition(self.states(broker_id)), timeout_s, what, 0.1)
        return time.monotonic()

    def wait_all_in_sync(self, topics: int, timeout_s: float = 40) -> None:
        """Wait until all brokers report that all replicas are in sync."""

        def in_sync() -> bool:
            views = [self.states(broker_id) for broker_id in BROKER_IDS]
            return all(
                view == views[0]
                and len(view) == 3 * topics
                and all(state.isr == ALL and state.leader != NO_LEADER for state in view.values())
                for view in views
            )

        wait_until(in_sync, timeout_s, "all brokers report all replicas in sync", 0.1)

    # Log files

    def log(self, broker_id: int, topic: str, partition: int) -> list[Batch]:
        """Return the batches in a broker's segment files."""
        folder = self.brokers[broker_id].log_dir / f"{topic}-{partition}"
        content = b"".join(file.read_bytes() for file in sorted(folder.glob("*.log")))
        found, position = [], 0
        for header in read_headers(memoryview(content)):
            found.append(Batch(header.base_offset, content[position : position + header.size_bytes]))
            position += header.size_bytes
        return found

    def values(self, topic: str, partition: int) -> dict[int, bytes]:
        """Return the values in broker 1's segment files by offset."""
        return {
            record.offset: record.value or b""
            for batch in self.log(1, topic, partition)
            for record in iter_records(memoryview(batch.content))
        }

    def unequal(self, topics: tuple[str, ...]) -> list[str]:
        """Return the partitions whose files differ between brokers in any batch."""
        return [
            f"{topic}-{partition}"
            for topic in topics
            for partition in range(3)
            if any(
                self.log(other, topic, partition) != self.log(1, topic, partition) for other in BROKER_IDS[1:]
            )
        ]
