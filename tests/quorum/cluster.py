"""Clusters with a metadata quorum in this process: combined nodes, or separate brokers and controllers."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path

from kafka_compat.broker import Broker, BrokerHooks
from kafka_compat.broker.quorum_process import QuorumProcess
from kafka_compat.cluster.membership import Membership
from kafka_compat.cluster.quorum_store import QuorumStore
from kafka_compat.config import BrokerConfig
from kafka_compat.coordination.replicated_store.records import CloseSession
from kafka_compat.handlers.served import CLUSTER_SERVED, QUORUM_SERVED
from kafka_compat.quorum.node import QuorumNode
from tests.cluster.embedded import EmbeddedBroker, EmbeddedCluster, until
from tests.support.ports import free_port

CLUSTER_ID = "5L6g3nShT-eMCtK--X86sw"
FAST = {
    "controller.quorum.election.timeout.ms": "200",
    "controller.quorum.election.backoff.max.ms": "200",
    "controller.quorum.fetch.timeout.ms": "400",
    "broker.session.timeout.ms": "2000",
}
"""Timeouts for tests on a busy machine, shorter than the defaults."""
PATIENT = {
    "controller.quorum.election.timeout.ms": "1000",
    "controller.quorum.fetch.timeout.ms": "10000",
    "broker.session.timeout.ms": "18000",
}
"""Timeouts with which the leader stays, also on a busy machine."""


class QuorumBroker(EmbeddedBroker):
    """A broker of a cluster with a metadata quorum, with accessors for tests."""

    def __init__(self, config: BrokerConfig) -> None:
        process = self.process = QuorumProcess(config)
        served = {**CLUSTER_SERVED, **QUORUM_SERVED}
        Broker.__init__(self, config, Membership(QuorumStore(process)), served, BrokerHooks())
        process.on_fatal = lambda: self.on_fatal()

    @property
    def node(self) -> QuorumNode:
        return self.process.node


class QuorumCluster(EmbeddedCluster):
    """Brokers 1 to `count`, which are also the voters, or with `controllers` brokers without this role and
    separate voters with the IDs 101 and up.
    """

    def __init__(
        self,
        directory: Path,
        count: int = 3,
        settings: Mapping[str, str] | None = None,
        *,
        controllers: int = 0,
    ) -> None:
        super().__init__(directory, count, settings)
        voters = range(101, 101 + controllers) if controllers else range(1, count + 1)
        self.controller_ports = {node_id: free_port() for node_id in voters}
        self.has_controllers = controllers > 0
        self.controllers: dict[int, QuorumProcess] = {}
        self.nodes: dict[int, QuorumNode] = {}

    def node_settings(self, node_id: int) -> dict[str, str]:
        """Return the settings of a node."""
        is_controller = node_id in self.controller_ports
        is_broker = not (is_controller and self.has_controllers)
        listeners = []
        if is_broker:
            listeners.append(f"PLAINTEXT://127.0.0.1:{self._ports.get(node_id, 0)}")
        if is_controller:
            listeners.append(f"CONTROLLER://127.0.0.1:{self.controller_ports[node_id]}")
        roles = ["broker"] * is_broker + ["controller"] * is_controller
        return {
            "process.roles": ",".join(roles),
            "node.id": str(node_id),
            "controller.quorum.voters": ",".join(
                f"{voter}@127.0.0.1:{port}" for voter, port in self.controller_ports.items()
            ),
            "controller.listener.names": "CONTROLLER",
            "listeners": ",".join(listeners),
            "log.dirs": str(self.directory / f"broker-{node_id}"),
            "offsets.topic.num.partitions": "3",
            "transaction.state.log.num.partitions": "3",
            "replica.lag.time.max.ms": "1500",
            "group.initial.rebalance.delay.ms": "0",
            **FAST,
            **self._settings,
        }

    def config(self, node_id: int) -> BrokerConfig:
        """Return the configuration of a node."""
        config = BrokerConfig.from_properties(self.node_settings(node_id))
        config.cluster_id = CLUSTER_ID
        return config

    async def start(self) -> None:
        if self.has_controllers:
            await asyncio.gather(*map(self.start_controller, self.controller_ports))
        await asyncio.gather(*map(self.start_broker, range(1, self.count + 1)))

    async def start_broker(self, broker_id: int) -> QuorumBroker:
        broker = QuorumBroker(self.config(broker_id))
        await broker.start()
        ((_, self._ports[broker_id]),) = broker.addresses.values()
        self.brokers[broker_id] = broker
        self.nodes[broker_id] = broker.node
        return broker

    async def start_controller(self, node_id: int) -> QuorumProcess:
        """Start a controller without the role of a broker."""
        process = self.controllers[node_id] = QuorumProcess(self.config(node_id))
        await process.start()
        self.nodes[node_id] = process.node
        return process

    async def stop_broker(self, broker_id: int, *, controlled: bool = True) -> None:
        del self.nodes[broker_id]
        await super().stop_broker(broker_id, controlled=controlled)

    async def stop_controller(self, node_id: int) -> None:
        """Stop a controller without the role of a broker."""
        del self.nodes[node_id]
        await self.controllers.pop(node_id).stop()

    async def stop(self) -> None:
        # Stop all at once: the last brokers would wait for a majority that no longer exists.
        await asyncio.gather(
            *(self.stop_broker(broker_id, controlled=False) for broker_id in list(self.brokers))
        )
        await asyncio.gather(*map(self.stop_controller, list(self.controllers)))
        await self.tree.close()

    async def expire_session(self, broker_id: int) -> None:
        broker = self.brokers[broker_id]
        record = CloseSession(broker.store.session_id, "expired").framed()
        self.nodes[broker_id].append([record], lambda: None)

    @property
    def leader_id(self) -> int:
        """The ID of the voter that leads the quorum, or -1 if there is none."""
        return next(
            (
                node_id
                for node_id, node in self.nodes.items()
                if node.machine.leader_id == node_id and node_id in self.controller_ports
            ),
            -1,
        )


@asynccontextmanager
async def patient_cluster(directory: Path) -> AsyncIterator[QuorumCluster]:
    """Run three combined nodes with PATIENT timeouts. All of them know each other."""
    cluster = QuorumCluster(directory, settings=PATIENT)
    await cluster.start()
    await until(lambda: all(len(broker.metadata.brokers) == 3 for broker in cluster.brokers.values()))
    yield cluster
    await cluster.stop()
