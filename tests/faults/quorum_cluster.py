"""Three brokers of a cluster with a metadata quorum, as processes. The voters may be separate processes."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from kafka_compat.protocol.api_keys import ApiKey
from tests.conformance.wire import Closed, Connection, Plain
from tests.faults.cluster import BROKER_IDS, FaultCluster, PartitionState
from tests.support.controllers import elected_controller
from tests.support.ports import free_port
from tests.support.process import wait_until
from tests.support.servers import KafkaCompatBroker, Server

_ASK_S = 5.0
"""How long to wait for a response of a broker that may just have been paused."""
_SEPARATE_IDS = (101, 102, 103)


class QuorumFaultCluster(FaultCluster):
    """The state of partitions is what the elected controller reports, or another broker while it is away."""

    def __init__(
        self,
        directory: Path,
        *,
        session_timeout_ms: int = 6000,
        overrides: Mapping[str, str] | None = None,
        separate: bool = False,
    ) -> None:
        """With `separate`, the voters are processes of their own."""
        super().__init__(directory, session_timeout_ms=session_timeout_ms, overrides=overrides)
        self.separate = separate
        self._controller_ports = {
            node_id: free_port() for node_id in (_SEPARATE_IDS if separate else BROKER_IDS)
        }
        self._voters: dict[int, Server] = {}

    @property
    def voters(self) -> dict[int, Server]:
        """The voters by node ID: the brokers, unless the voters are separate."""
        return self._voters if self.separate else self.brokers

    @property
    def nodes(self) -> dict[int, Server]:
        return self.brokers | self._voters

    def _start_store(self) -> None:
        if self.separate:
            self._voters = {node_id: self._broker(node_id) for node_id in _SEPARATE_IDS}
            for voter in self._voters.values():
                voter.launch()
            for voter in self._voters.values():
                voter.wait_ready()

    def _stop_store(self) -> None:
        for voter in self._voters.values():
            if voter.running:
                voter.process.kill()
            voter.stop()

    def _broker(self, broker_id: int) -> Server:
        """Return a node that is not started."""
        if broker_id not in _SEPARATE_IDS:
            return super()._broker(broker_id)
        port = self._controller_ports[broker_id]
        settings = self._settings(broker_id, "")
        return KafkaCompatBroker(
            self._directory / f"broker-{broker_id}", settings, port=port, arguments=["--verbose"]
        )

    def _settings(self, broker_id: int, address: str) -> dict[str, str]:
        listeners = [f"PLAINTEXT://{address}"] if address else []
        roles = ["broker"] if address else []
        if broker_id in self._controller_ports:
            listeners.append(f"CONTROLLER://127.0.0.1:{self._controller_ports[broker_id]}")
            roles.append("controller")
        ports = self._controller_ports.items()
        return {
            "broker.id": str(broker_id),
            "node.id": str(broker_id),
            "process.roles": ",".join(roles),
            "controller.quorum.voters": ",".join(f"{node_id}@127.0.0.1:{port}" for node_id, port in ports),
            "controller.listener.names": "CONTROLLER",
            "listeners": ",".join(listeners),
            "broker.session.timeout.ms": str(self.session_timeout_ms),
            "default.replication.factor": "3",
            "min.insync.replicas": "2",
            "offsets.topic.replication.factor": "3",
            "offsets.topic.num.partitions": "4",
            **self._overrides,
        }

    def _connect(self) -> Any:
        return None

    # --- state

    def _ask_one(self, broker_id: int, api_key: ApiKey, version: int, request: Plain) -> Plain | None:
        """Return the response of a broker, or None if it is paused or not running."""
        if broker_id in self._paused or not self.brokers[broker_id].running:
            return None
        try:
            with Connection(self.brokers[broker_id].address, _ASK_S) as connection:
                return connection.ask(api_key, version, request)
        except (OSError, Closed):
            return None

    def _metadata(self, topics: list[str]) -> Plain:
        """Return the controller's metadata, or that of another broker while the controller is away."""
        request = {"topics": [{"name": name} for name in topics]}
        found: list[Plain] = []

        def is_found() -> bool:
            answers = {
                broker_id: answer
                for broker_id in BROKER_IDS
                if (answer := self._ask_one(broker_id, ApiKey.METADATA, 9, request)) is not None
            }
            elected = self.controller()
            found.extend(answer for broker_id, answer in answers.items() if broker_id == elected)
            found.extend(answers.values())
            return bool(found)

        wait_until(is_found, 60, "the metadata of a broker", 0.1)
        return found[0]

    def registered(self) -> set[int]:
        return {broker["node_id"] for broker in self._metadata([])["brokers"]}

    def controller(self) -> int | None:
        return elected_controller({broker_id: broker.log for broker_id, broker in self.brokers.items()})

    def states(self, topic: str) -> dict[int, PartitionState]:
        (found,) = self._metadata([topic])["topics"]
        return {
            item["partition_index"]: PartitionState(
                item["leader_id"], item["leader_epoch"], tuple(item["isr_nodes"])
            )
            for item in found["partitions"]
        }

    def has_topic(self, topic: str) -> bool:
        return bool(self.states(topic))

    def quorum_leader(self) -> int:
        """Return the ID of the voter that leads the quorum, and wait until there is one."""
        topic = {"topic_name": "__cluster_metadata", "partitions": [{"partition_index": 0}]}
        found: list[int] = []

        def is_known() -> bool:
            for broker_id in BROKER_IDS:
                answer = self._ask_one(broker_id, ApiKey.DESCRIBE_QUORUM, 1, {"topics": [topic]})
                if answer is not None and answer["topics"]:
                    leader_id = answer["topics"][0]["partitions"][0]["leader_id"]
                    if leader_id >= 0:
                        found.append(leader_id)
                        return True
            return False

        wait_until(is_known, 60, "a leader of the quorum", 0.1)
        return found[0]

    # --- faults

    def start(self, broker_id: int, launched: Callable[[int], None] = lambda pid: None) -> None:
        node = self.nodes[broker_id]
        node.launch()
        launched(node.pid)
        node.wait_ready(180)

    def wipe(self, node_id: int) -> None:
        """Delete everything on the disk of a node that is not running."""
        node = self.nodes[node_id]
        assert isinstance(node, KafkaCompatBroker) and not node.running
        shutil.rmtree(node.log_dir)


def cluster_of(form: str, directory: Path, **options: Any) -> FaultCluster:
    """Return a cluster on ZooKeeper ("plain" or "secured"), or on a quorum of its brokers ("combined") or of
    other nodes ("separate").
    """
    if form in ("combined", "separate"):
        return QuorumFaultCluster(directory, separate=form == "separate", **options)
    return FaultCluster(directory, secured=form == "secured", **options)
