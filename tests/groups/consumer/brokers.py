"""Our brokers, on which a test creates topics with the IDs that another cluster gave them."""

from __future__ import annotations

import asyncio
import logging
import multiprocessing
import threading
from collections.abc import Callable, Mapping, Sequence
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, Protocol, Self
from uuid import UUID

from kafka_compat.broker import standalone_broker
from kafka_compat.config import BrokerConfig
from kafka_compat.coordination.nodes import znodes
from kafka_compat.coordination.nodes.cluster_state import TopicState
from kafka_compat.coordination.store.embedded import EmbeddedMetadataStore
from kafka_compat.coordination.store.metadata_store import Create, Operation
from kafka_compat.tools import registry
from tests.faults.cluster import BROKER_IDS, FaultCluster
from tests.support.ports import free_port
from tests.support.process import wait_until

LEVELS = ("--feature", "group.version=1", "--feature", "transaction.version=2")


class OurBrokers(Protocol):
    @property
    def address(self) -> str:
        """The address of the controller."""

    def create(self, name: str, topic_id: UUID, size: int) -> None:
        """Create a topic with `size` partitions by writing its nodes, as kafka-topics --zookeeper did. The
        controller completes the topic.
        """

    def has_topic(self, name: str) -> bool: ...


class StandaloneBroker:
    """A standalone broker in a child process that lets this process use its metadata store. Use it as a
    context manager.
    """

    def __init__(self, directory: Path, settings: Mapping[str, str]) -> None:
        self.address = f"127.0.0.1:{free_port()}"
        properties = {
            "broker.id": "1",
            "listeners": f"PLAINTEXT://{self.address}",
            "log.dirs": str(directory / "logs"),
            **settings,
        }
        directory.mkdir(parents=True, exist_ok=True)
        self._lock = threading.Lock()
        self._store, theirs = multiprocessing.Pipe()
        self._process = multiprocessing.get_context("spawn").Process(
            target=_serve, args=(properties, str(directory / "broker.log"), theirs), daemon=True
        )

    def __enter__(self) -> Self:
        self._process.start()
        self._store.recv()
        return self

    def __exit__(self, *_: object) -> None:
        self._store.close()
        self._process.join(20)
        self._process.kill()
        self._process.join()

    def create(self, name: str, topic_id: UUID, size: int) -> None:
        self._ask(_creation(name, topic_id, [1] * size))

    def has_topic(self, name: str) -> bool:
        return bool(self._ask(znodes.topic_path(name)))

    def _ask(self, what: str | Sequence[Operation]) -> Any:
        with self._lock:
            self._store.send(what)
            answer = self._store.recv()
        if isinstance(answer, Exception):
            raise answer
        return answer


class ZooKeeperBrokers(FaultCluster):
    """Three brokers on ZooKeeper, with the features of new clusters."""

    def __enter__(self) -> Self:
        super().__enter__()
        try:
            wait_until(lambda: self.controller() is not None, 60, "the controller")
            upgrade = ["--bootstrap-server", self.address, "upgrade", *LEVELS]
            assert registry.run("features", upgrade) == 0
        except BaseException:
            self.__exit__()
            raise
        return self

    @property
    def address(self) -> str:
        controller = self.controller()
        assert controller is not None
        return self.brokers[controller].address

    def create(self, name: str, topic_id: UUID, size: int) -> None:
        replicas = [BROKER_IDS[each % len(BROKER_IDS)] for each in range(size)]
        nodes = _creation(name, topic_id, replicas)
        transaction = self._nodes.transaction()
        for node in nodes:
            transaction.create(node.path, node.data)
        results = transaction.commit()
        assert results == [node.path for node in nodes], results


def _creation(name: str, topic_id: UUID, replicas: Sequence[int]) -> list[Create]:
    """Return the nodes of a topic whose partitions have one replica each."""
    state = TopicState(name, topic_id, {number: (broker,) for number, broker in enumerate(replicas)})
    return [
        Create(znodes.config_path("topics", name), znodes.encode_config({})),
        Create(znodes.topic_path(name), znodes.encode_topic(state)),
    ]


def _serve(properties: dict[str, str], log: str, orders: Connection) -> None:
    logging.basicConfig(filename=log, level=logging.INFO, format="%(asctime)s %(name)s %(message)s")
    asyncio.run(_serve_with(properties, orders))


async def _serve_with(properties: dict[str, str], orders: Connection) -> None:
    trees: list[EmbeddedMetadataStore] = []

    def new_tree(path: str, now_ms: Callable[[], int]) -> EmbeddedMetadataStore:
        trees.append(EmbeddedMetadataStore(path, now_ms))
        return trees[0]

    broker = standalone_broker(BrokerConfig.from_properties(properties), new_tree=new_tree)
    await broker.start()
    store = trees[0].connect()
    orders.send(None)
    while True:
        try:
            order = await asyncio.to_thread(orders.recv)
        except EOFError:
            break
        try:
            orders.send(await store.exists(order) if isinstance(order, str) else await store.multi(order))
        except Exception as error:
            orders.send(error)
    await broker.stop()
