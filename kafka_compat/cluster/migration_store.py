"""Metadata store of a broker that is connected to ZooKeeper and to a metadata quorum (docs/design/quorum.md).

Its sessions are in the store of record. A session ends when the metadata moves.
"""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Final

from kafka_compat.cluster.metadata_migration import MetadataMigration
from kafka_compat.cluster.quorum_store import QuorumStore
from kafka_compat.cluster.shared_store import StoreMoved
from kafka_compat.coordination.nodes import znodes
from kafka_compat.coordination.nodes.malformed_nodes import MalformedNode
from kafka_compat.coordination.nodes.store_marker import (
    MARKER,
    Marker,
    StoreName,
    StoreState,
    read_marker,
)
from kafka_compat.coordination.store import metadata_store as stores
from kafka_compat.coordination.store.guarded_session import GuardedSession
from kafka_compat.coordination.store.metadata_store import MetadataStore, MetadataStoreError
from kafka_compat.errors import StartupError
from kafka_compat.tasks import Tasks

if TYPE_CHECKING:
    from kafka_compat.cluster.broker_context import StoreConnection
    from kafka_compat.cluster.quorum_participant import QuorumParticipant
    from kafka_compat.cluster.shared_store import ConnectStore
    from kafka_compat.config import BrokerConfig
    from kafka_compat.storage.clock import Clock

log = logging.getLogger(__name__)

_LOOK_S: Final = 0.05


class MigrationStore(QuorumStore):
    """The shared store of a cluster whose metadata can move."""

    def __init__(self, participant: QuorumParticipant, connect_zookeeper: ConnectStore) -> None:
        super().__init__(participant)
        self._connect = self._connect_to_store_of_record
        self._stores: dict[StoreName, ConnectStore] = {
            StoreName.ZOOKEEPER: connect_zookeeper,
            StoreName.QUORUM: participant.connect,
        }
        self._current = StoreName.ZOOKEEPER
        self._tasks = Tasks()

    def can_store_change(self) -> bool:
        return self._current is StoreName.ZOOKEEPER or super().can_store_change()

    async def open(
        self, config: BrokerConfig, clock: Clock, directory: str, stored_cluster_id: str | None
    ) -> StoreConnection:
        connection = await super().open(config, clock, directory, stored_cluster_id)
        own_id = self.participant.node.local.cluster_id
        if connection.cluster_id != own_id:
            raise StartupError(
                f"the cluster in {self._current.in_text} has the ID {connection.cluster_id}, but this node "
                f"of the quorum has {own_id}: set CLUSTER_ID={connection.cluster_id} for all nodes, or "
                "format their directories with this ID"
            )
        self._tasks = Tasks()
        migration = MetadataMigration(config.broker_id, self._stores)
        self._tasks.spawn("preparing the migration of the metadata", migration.run, restarts=True)
        return connection

    async def leave(self) -> None:
        await self._tasks.close()
        await super().leave()

    async def _connect_to_store_of_record(self) -> MetadataStore:
        """Open a session in the store of record, as soon as there is one."""
        finding = _Finding(self._stores)
        try:
            name, session = await finding.run()
        finally:
            await finding.close()
        self._current = name
        log.info("The metadata of the cluster is in %s", name.in_text)
        return session


class _Finding:
    """One search for the store of record."""

    def __init__(self, connect: dict[StoreName, ConnectStore]) -> None:
        self._connect = connect
        self._opening: dict[StoreName, asyncio.Task[MetadataStore]] = {}
        self._opened: dict[StoreName, MetadataStore] = {}

    async def run(self) -> tuple[StoreName, MetadataStore]:
        """Return a session in the store of record. Raises StartupError, ConfigError or MetadataStoreError."""
        while True:
            for name in set(self._connect) - set(self._opening) - set(self._opened):
                self._opening[name] = asyncio.ensure_future(self._open(name))
            if self._opening:
                await asyncio.wait(
                    self._opening.values(), timeout=_LOOK_S, return_when=asyncio.FIRST_COMPLETED
                )
            else:
                await asyncio.sleep(_LOOK_S)
            failure = self._take_opened()
            for name in list(self._opened):
                try:
                    found = await self._guarded(name)
                except (stores.SessionExpired, stores.ConnectionLost):
                    await self._opened.pop(name).close()
                    continue
                if found is not None:
                    return name, found
            if failure is not None and StoreName.QUORUM in self._opened:
                raise failure

    async def close(self) -> None:
        """Close all sessions that are not used."""
        for task in self._opening.values():
            task.cancel()
        await asyncio.gather(*self._opening.values(), return_exceptions=True)
        for session in self._opened.values():
            await session.close()

    async def _open(self, name: StoreName) -> MetadataStore:
        return await self._connect[name]()

    def _take_opened(self) -> MetadataStoreError | None:
        """Record opened sessions. Return why ZooKeeper is unreachable, if it is."""
        failure = None
        for name, task in list(self._opening.items()):
            if not task.done():
                continue
            del self._opening[name]
            try:
                self._opened[name] = task.result()
            except (stores.ConnectionLost, stores.SessionExpired) as error:
                log.warning("Could not connect to %s: %s", name.in_text, error)
                failure = error
        return failure

    async def _guarded(self, name: StoreName) -> MetadataStore | None:
        """Return a guarded session if the store is the store of record."""
        session = self._opened[name]
        try:
            marker, version = await read_marker(session)
        except MalformedNode as error:
            raise StoreMoved(str(error)) from error
        if marker is None and await self._has_metadata(name):
            await session.ensure(MARKER.rpartition("/")[0])
            try:
                await session.create(MARKER, Marker(StoreState.ACTIVE, 0).encoded())
            except stores.NodeExists:
                return None
            marker, version = await read_marker(session)
        if marker is None or marker.state is not StoreState.ACTIVE:
            return None
        guarded = GuardedSession(session, MARKER, version, f"{name.value} {marker.move}")
        await guarded.begin()
        del self._opened[name]
        return guarded

    async def _has_metadata(self, name: StoreName) -> bool:
        """Return whether a store without a marker is the store of record. New clusters begin in ZooKeeper."""
        if await self._opened[name].exists(znodes.CLUSTER_ID) is not None:
            return True
        quorum = self._opened.get(StoreName.QUORUM)
        if name is StoreName.QUORUM or quorum is None:
            return False
        marker, _ = await read_marker(quorum)
        is_inactive = marker is None or marker.state is StoreState.INACTIVE
        return is_inactive and await quorum.exists(znodes.CLUSTER_ID) is None
