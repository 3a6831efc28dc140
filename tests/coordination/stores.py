"""The kinds of metadata stores that tests compare."""

from __future__ import annotations

import itertools
import socket
from abc import ABC, abstractmethod
from pathlib import Path
from typing import Self

from kafka_compat.coordination.store.embedded import EmbeddedMetadataStore, EmbeddedSession
from kafka_compat.coordination.store.local_link import Link
from kafka_compat.coordination.store.metadata_store import MetadataStore
from kafka_compat.coordination.store.remote_store import RemoteSession, StoreClient
from kafka_compat.coordination.store.store_server import StoreServer
from kafka_compat.coordination.zookeeper_store.zookeeper import ZooKeeperMetadataStore
from tests.support.servers import ZooKeeper

SESSION_TIMEOUT_MS = 1000
"""The shortest that the tests' ZooKeeper grants."""

_trees = itertools.count()


class Stores(ABC):
    """One empty tree; makes sessions with it and expires them as time would."""

    @abstractmethod
    async def connect(self) -> MetadataStore:
        """A new session."""

    @abstractmethod
    async def expire(self, session: MetadataStore) -> None:
        """End a session against its owner's will, and wait until its ephemerals are gone."""

    @abstractmethod
    async def close(self) -> None:
        """End what is left."""


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
    """One process's connection to a store, with both of its ends in this process."""

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
    """Each session on a connection of its own, as of another process."""

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
        """By a second client that takes the session over and ends it; the server tells the first one nothing
        but that the session is over."""
        assert isinstance(session, ZooKeeperMetadataStore)
        from kazoo.client import KazooClient

        thief = KazooClient(session._hosts, client_id=session._client.client_id)
        thief.start(20)
        thief.stop()
        thief.close()

    async def close(self) -> None:
        for session in self._sessions:
            await session.close()
