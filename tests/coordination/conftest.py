"""A store to test, embedded or on ZooKeeper, behind one small interface."""

import itertools
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from kafka_compat.coordination.embedded import EmbeddedMetadataStore, EmbeddedSession
from kafka_compat.coordination.metadata_store import MetadataStore
from kafka_compat.coordination.zookeeper import ZooKeeperMetadataStore
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


@pytest.fixture(scope="session")
def zookeeper(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ZooKeeper]:
    """One ZooKeeper for all tests that do not stop it."""
    server = ZooKeeper(tmp_path_factory.mktemp("zookeeper"))
    server.start()
    yield server
    server.stop()


@pytest.fixture(params=["embedded", "zookeeper"])
async def stores(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Stores]:
    """Either store: a test that takes this is part of the contract of both."""
    made: Stores
    if request.param == "embedded":
        made = EmbeddedStores(tmp_path)
    else:
        made = ZooKeeperStores(request.getfixturevalue("zookeeper"))
    yield made
    await made.close()
