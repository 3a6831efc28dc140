"""The metadata stores under test, behind one interface."""

from __future__ import annotations

import itertools
import socket
from abc import ABC, abstractmethod
from pathlib import Path
from typing import Self

from kafka_compat.coordination.replicated_store.records import CloseSession
from kafka_compat.coordination.store.embedded import EmbeddedMetadataStore, EmbeddedSession
from kafka_compat.coordination.store.local_link import Link
from kafka_compat.coordination.store.metadata_store import MetadataStore
from kafka_compat.coordination.store.remote_store import RemoteSession, StoreClient
from kafka_compat.coordination.store.store_server import StoreServer
from kafka_compat.coordination.zookeeper_store.zookeeper import ZooKeeperMetadataStore
from tests.coordination.replicated_store.single_node import SingleNode
from tests.support.servers import ZooKeeper

SESSION_TIMEOUT_MS = 1000
"""The shortest session timeout that the tests' ZooKeeper grants."""

_trees = itertools.count()


class Stores(ABC):
    """An empty tree. Creates sessions for it, and expires them."""

    @abstractmethod
    async def connect(self) -> MetadataStore:
        """Create a session."""

    @abstractmethod
    async def expire(self, session: MetadataStore) -> None:
        """Expire a session, and wait until its ephemeral nodes are deleted."""

    @abstractmethod
    async def close(self) -> None:
        """Close all remaining sessions."""


class EmbeddedStores(Stores):
    def __init__(self, directory: Path) -> None:
        self._store = EmbeddedMetadataStore(str(directory / "metadata.journal"))

    async def connect(self) -> MetadataStore:
        return self._store.connect()

    async def expire(self, session: MetadataStore) -> None:
        assert isinstance(session, EmbeddedSession)
        await session.expire()

    async def close(self) -> None:
        await self._store.close()


class Remote:
    """A connection to the store server, with both ends in this process."""

    server: StoreServer
    client: StoreClient

    def __init__(self) -> None:
        self.serving: Link
        self.asking: Link

    @classmethod
    async def to(cls, store: EmbeddedMetadataStore, session_timeout_ms: int = 10_000) -> Self:
        remote = cls()
        here, there = socket.socketpair()
        remote.serving = await Link.over(
            here, lambda message: remote.server.receive(message), lambda: remote.server.end()
        )
        remote.asking = await Link.over(
            there, lambda message: remote.client.receive(message), lambda: remote.client.lost()
        )
        remote.server = StoreServer(store, session_timeout_ms, remote.serving.send)
        remote.client = StoreClient(remote.asking.send, session_timeout_ms)
        return remote

    async def close(self) -> None:
        self.asking.close()
        await self.asking.ended.wait()
        await self.serving.ended.wait()
        await self.server.settled()


class RemoteStores(Stores):
    """Remote stores. Each session has its own connection, as in a separate process."""

    def __init__(self, directory: Path) -> None:
        self._store = EmbeddedMetadataStore(str(directory / "metadata.journal"))
        self._remotes: list[tuple[RemoteSession, Remote]] = []

    async def connect(self) -> MetadataStore:
        remote = await Remote.to(self._store)
        session = await remote.client.connect()
        self._remotes.append((session, remote))
        return session

    async def expire(self, session: MetadataStore) -> None:
        for made, remote in self._remotes:
            if made is session:
                await remote.server.expire(session.session_id)

    async def close(self) -> None:
        for _, remote in self._remotes:
            await remote.close()
        await self._store.close()


class ReplicatedStores(Stores):
    """The replicated store of a quorum of one node."""

    def __init__(self) -> None:
        self.node = SingleNode()

    async def connect(self) -> MetadataStore:
        return await self.node.store.connect(SESSION_TIMEOUT_MS)

    async def expire(self, session: MetadataStore) -> None:
        self.node.take([CloseSession(session.session_id, "expired").framed()])

    async def close(self) -> None:
        self.node.store.close()


class ZooKeeperStores(Stores):
    def __init__(self, server: ZooKeeper, session_timeout_ms: int = 10_000) -> None:
        self.hosts = f"{server.address}/test-{next(_trees)}/tree"
        self.session_timeout_ms = session_timeout_ms
        self._sessions: list[ZooKeeperMetadataStore] = []

    async def connect(self) -> ZooKeeperMetadataStore:
        session = await ZooKeeperMetadataStore.connect(
            self.hosts, session_timeout_ms=self.session_timeout_ms, connection_timeout_ms=20_000
        )
        self._sessions.append(session)
        return session

    async def expire(self, session: MetadataStore) -> None:
        """Take over the session with a second client, and close it. The server reports only the expiry to the
        first client.
        """
        assert isinstance(session, ZooKeeperMetadataStore)
        from kazoo.client import KazooClient

        thief = KazooClient(session._hosts, client_id=session._client.client_id)
        thief.start(20)
        thief.stop()
        thief.close()

    async def close(self) -> None:
        for session in self._sessions:
            await session.close()
