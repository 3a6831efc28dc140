"""The compared sides of a cluster with a metadata quorum: this broker and Apache Kafka 4.4.0, with the same
layout and the same timeouts.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tests.bench.quorum_client import ClusterClient, until
from tests.bench.sides import Side, environment_of
from tests.support.controllers import elected_controller
from tests.support.kafka_jars import NEWEST_VERSION
from tests.support.ports import free_port
from tests.support.servers import PROJECT, GenuineKafka, KafkaCompatBroker, metadata

HEAP = "1G"
"""The heap that Kafka's start script sets."""
START_TIMEOUT_S = 600.0
_COMMON = {
    "auto.create.topics.enable": "false",
    "offsets.topic.replication.factor": "3",
    "transaction.state.log.replication.factor": "3",
    "transaction.state.log.min.isr": "2",
}

Node = KafkaCompatBroker | GenuineKafka


class GenuineNode(GenuineKafka):
    """A node of Apache Kafka, which waits for no other node: its cluster may have no majority yet."""

    def _knows_controller(self) -> bool:
        return True


@dataclass(frozen=True)
class Layout:
    """Node IDs by role: combined nodes, brokers without a vote, and controllers that are no brokers."""

    combined: Sequence[int] = (1, 2, 3)
    brokers: Sequence[int] = ()
    controllers: Sequence[int] = ()
    overrides: Mapping[str, str] = field(default_factory=dict)

    @property
    def voters(self) -> tuple[int, ...]:
        return (*self.combined, *self.controllers)


COMBINED = Layout()
SEPARATE = Layout(combined=(), brokers=(1, 2, 3), controllers=(101, 102, 103))


class QuorumSide(Side):
    """A cluster with a quorum. `servers` are its brokers."""

    def __init__(self, label: str, nodes: Mapping[int, Node], voters: Sequence[int]) -> None:
        self.nodes = nodes
        self.voters = tuple(voters)
        self.brokers = {
            node_id: node
            for node_id, node in nodes.items()
            if "broker" in node.overrides["process.roles"].split(",")
        }
        super().__init__(label, list(self.brokers.values()))

    def prepare(self) -> None:
        """Format all directories, which is not measured."""
        for node in self.nodes.values():
            node.prepare()

    def launch(self) -> None:
        for node in self.nodes.values():
            node.launch()

    def start(self) -> None:
        """Start all nodes, and wait until every broker knows all brokers."""
        self.prepare()
        self.launch()
        for node in self.nodes.values():
            node.wait_ready(START_TIMEOUT_S)
        self.await_complete()

    def knows_all(self, broker_id: int) -> bool:
        """Return whether a broker lists all brokers."""
        known = metadata(self.brokers[broker_id].port)
        return known is not None and {each.node_id for each in known.brokers} == set(self.brokers)

    def controller_id(self, client: ClusterClient) -> int:
        """Return the broker that Metadata names as the controller or, on this broker's side, where brokers
        name themselves, the one that was elected. Waits until there is one.
        """
        if self.label == "genuine":
            return until(client.controller_id, "a controller")
        logs = {broker_id: node.log for broker_id, node in self.brokers.items()}
        return until(lambda: elected_controller(logs), "a controller")

    def complete(self) -> bool:
        return all(map(self.knows_all, self.brokers))

    def kill(self) -> None:
        """Kill all nodes that are running."""
        for node in self.nodes.values():
            if node.running:
                node.kill()
            node.stop()

    def _processes(self) -> list[Node]:  # type: ignore[override]
        return [node for node in self.nodes.values() if node.running]


def node_settings(
    layout: Layout, node_id: int, ports: Mapping[int, int], voters: Mapping[int, int]
) -> dict[str, str]:
    """Return the settings of a node. `ports` and `voters` are the ports of brokers and controllers by ID."""
    listeners, roles = [], []
    if node_id in ports:
        listeners.append(f"PLAINTEXT://127.0.0.1:{ports[node_id]}")
        roles.append("broker")
    if node_id in voters:
        listeners.append(f"CONTROLLER://127.0.0.1:{voters[node_id]}")
        roles.append("controller")
    return {
        **_COMMON,
        "node.id": str(node_id),
        "process.roles": ",".join(roles),
        "controller.quorum.voters": ",".join(f"{each}@127.0.0.1:{port}" for each, port in voters.items()),
        "controller.listener.names": "CONTROLLER",
        "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT",
        "listeners": ",".join(listeners),
        **layout.overrides,
    }


def side(
    label: str,
    directory: Path,
    layout: Layout,
    *,
    compiled: bool = False,
    checkout: Path = PROJECT,
) -> QuorumSide:
    """Return a cluster that is not started. `label` is "genuine" for Apache Kafka."""
    ports = {node_id: free_port() for node_id in (*layout.combined, *layout.brokers)}
    voters = {node_id: free_port() for node_id in layout.voters}
    nodes: dict[int, Node] = {}
    for node_id in {**ports, **voters}:
        folder = directory / f"{node_id}"
        settings = node_settings(layout, node_id, ports, voters)
        settings["metadata.log.dir"] = str(folder / "metadata")
        port = ports.get(node_id) or voters[node_id]
        if label == "genuine":
            nodes[node_id] = GenuineNode(
                folder,
                settings,
                version=NEWEST_VERSION,
                mode="kraft",
                port=port,
                heap=HEAP,
                quick_start=False,
            )
        else:
            settings["broker.id"] = str(node_id)
            nodes[node_id] = KafkaCompatBroker(
                folder,
                settings,
                port=port,
                environment=environment_of(compiled, checkout),
                checkout=checkout,
                arguments=["--verbose"],  # to log which broker was elected controller
            )
    return QuorumSide(label, nodes, layout.voters)


def makers(
    arguments: argparse.Namespace, layout: Layout
) -> tuple[Callable[[Path], QuorumSide], Callable[[Path], QuorumSide]]:
    """Return the functions that make this broker's side, and the other side of a pair."""

    def ours(directory: Path) -> QuorumSide:
        return side("ours", directory, layout, compiled=arguments.compiled)

    def other(directory: Path) -> QuorumSide:
        if arguments.before is None:
            return side("genuine", directory, layout)
        checkout = arguments.before.resolve()
        return side("before", directory, layout, compiled=arguments.compiled, checkout=checkout)

    return ours, other
