"""The fixture `world`: the brokers for the delegation token tests; see world.py."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

import pytest

from tests.security.authority import Authority
from tests.security.tokens.world import World, genuine_broker, our_broker
from tests.support.process import wait_until
from tests.support.servers import ZooKeeper


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    """Brokers without tokens: of one module, because each lists the tokens that others left behind."""
    directory = tmp_path_factory.mktemp("delegation-tokens")
    with contextlib.ExitStack() as stack:
        zookeeper = ZooKeeper(directory / "zookeeper")
        stack.callback(zookeeper.stop)
        zookeeper.start()
        authority = Authority(directory / "authority")
        ours = our_broker(directory / "ours", authority=authority)
        genuine = genuine_broker(directory / "genuine", zookeeper, {"broker.id": "1"}, authority)
        together = {"broker.id": "2", "zookeeper.connect": zookeeper.address}
        beside = our_broker(directory / "beside", together, authority=authority)
        for place in (ours, genuine, beside):
            stack.callback(place.server.stop)
        # Apache Kafka accepts new users only as the controller, so it must be its cluster's first broker.
        ours.server.launch()
        genuine.server.start()
        beside.server.launch()
        for place in (ours, beside):
            place.server.wait_ready()
        ours.make_users()
        genuine.make_users()
        for place in (ours, genuine, beside):
            wait_until(place.knows_users, 20, "users can log in")
        yield World(ours, genuine, beside, zookeeper.address, authority)
