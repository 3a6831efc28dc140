"""Clusters whose metadata moves between two stores: an embedded tree in place of ZooKeeper, and a quorum."""

from __future__ import annotations

import asyncio
from pathlib import Path

from kafka_compat.broker import Broker, BrokerHooks
from kafka_compat.broker.quorum_process import QuorumProcess
from kafka_compat.cluster.membership import Membership
from kafka_compat.cluster.metadata_migration import SETTING
from kafka_compat.cluster.migration_store import MigrationStore
from kafka_compat.cluster.shared_store import ConnectStore
from kafka_compat.config import BrokerConfig
from kafka_compat.coordination.nodes.store_marker import StoreName, StoreState, read_marker
from kafka_compat.coordination.store.metadata_store import MetadataStore
from kafka_compat.handlers.served import CLUSTER_SERVED, QUORUM_SERVED
from kafka_compat.protocol.api_keys import ApiKey
from kafka_compat.protocol.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from tests.quorum.cluster import QuorumBroker, QuorumCluster

_BROKERS = 4
"""The type of the resource: a broker, or with an empty name all brokers."""


class MigratingBroker(QuorumBroker):
    def __init__(self, config: BrokerConfig, connect_zookeeper: ConnectStore) -> None:
        process = self.process = QuorumProcess(config)
        served = {**CLUSTER_SERVED, **QUORUM_SERVED}
        store = MigrationStore(process, connect_zookeeper)
        Broker.__init__(self, config, Membership(store), served, BrokerHooks())
        process.on_fatal = lambda: self.on_fatal()


class MigratingCluster(QuorumCluster):
    """Three combined nodes in migration mode. `tree` is in place of ZooKeeper."""

    def __init__(self, directory: Path) -> None:
        super().__init__(directory)

    def node_settings(self, node_id: int) -> dict[str, str]:
        return super().node_settings(node_id) | {
            "zookeeper.connect": "127.0.0.1:1",
            "zookeeper.metadata.migration.enable": "true",
        }

    async def _connect_tree(self) -> MetadataStore:
        return self.tree.connect()

    async def start_broker(self, broker_id: int) -> QuorumBroker:
        broker = MigratingBroker(self.config(broker_id), self._connect_tree)
        await broker.start()
        ((_, self._ports[broker_id]),) = broker.addresses.values()
        self.brokers[broker_id] = broker
        self.nodes[broker_id] = broker.node
        return broker

    async def session_in(self, name: StoreName) -> MetadataStore:
        """Open a session that is not guarded."""
        if name is StoreName.ZOOKEEPER:
            return await self._connect_tree()
        broker = next(iter(self.brokers.values()))
        assert isinstance(broker, QuorumBroker)
        return await broker.process.connect()

    async def request_move(self, name: StoreName) -> None:
        """Set the store to which the metadata moves."""
        request = IncrementalAlterConfigsRequest(
            resources=[
                AlterConfigsResource(
                    resource_type=_BROKERS,
                    resource_name="",
                    configs=[AlterableConfig(name=SETTING, config_operation=0, value=name.value)],
                )
            ],
            validate_only=False,
        )
        broker_id = self.controller.broker_id
        response = await self.send(broker_id, ApiKey.INCREMENTAL_ALTER_CONFIGS, 1, request)
        (outcome,) = response.responses
        assert outcome.error_code == 0, outcome

    async def is_in(self, name: StoreName) -> bool:
        """Return whether the store is the store of record, and all brokers are in it, one as controller."""
        if not any(broker.controller.is_active for broker in self.brokers.values()):
            return False
        for broker in self.brokers.values():
            if not broker.store.tree_id.startswith(name.value) or len(broker.metadata.brokers) != self.count:
                return False
        session = await self.session_in(name)
        try:
            marker, _ = await read_marker(session)
            return (
                marker is not None
                and marker.state is StoreState.ACTIVE
                and len(await session.children("/brokers/ids")) == self.count
            )
        finally:
            await session.close()

    async def start(self) -> None:
        await asyncio.gather(*map(self.start_broker, range(1, self.count + 1)))


async def nodes_of(session: MetadataStore, roots: tuple[str, ...]) -> dict[str, tuple[bytes, int]]:
    """Return the data and versions of the nodes of these trees."""
    found = {}
    paths = list(roots)
    while paths:
        path = paths.pop()
        if await session.exists(path) is None:
            continue
        data, stat = await session.get(path)
        found[path] = (data or b"", stat.version)
        paths.extend(f"{path}/{name}" for name in await session.children(path))
    return found
