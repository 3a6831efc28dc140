"""Fixtures that run a test against each metadata store: embedded, remote over a socket, replicated,
and on ZooKeeper.
"""

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from tests.coordination.stores import EmbeddedStores, RemoteStores, ReplicatedStores, Stores, ZooKeeperStores
from tests.support.servers import ZooKeeper


@pytest.fixture(scope="session")
def zookeeper(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ZooKeeper]:
    """A ZooKeeper shared by all tests that do not stop it."""
    server = ZooKeeper(tmp_path_factory.mktemp("zookeeper"))
    server.start()
    yield server
    server.stop()


@pytest.fixture(params=["embedded", "remote", "replicated", "zookeeper"])
async def stores(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Stores]:
    """Each kind of store. Tests that use this fixture define the common contract of all stores."""
    made: Stores
    if request.param == "embedded":
        made = EmbeddedStores(tmp_path)
    elif request.param == "remote":
        made = RemoteStores(tmp_path)
    elif request.param == "replicated":
        made = ReplicatedStores()
    else:
        made = ZooKeeperStores(request.getfixturevalue("zookeeper"))
    yield made
    await made.close()
