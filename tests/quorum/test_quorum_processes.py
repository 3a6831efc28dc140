"""Three nodes in processes of their own, which are killed in turn while records are written with acks=all."""

from __future__ import annotations

import asyncio
import itertools
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from confluent_kafka import Consumer, KafkaError, Message, Producer
from confluent_kafka.admin import AdminClient, NewTopic

from tests.support import campaign
from tests.support.ports import free_port
from tests.support.servers import KafkaCompatBroker
from tests.support.waiting import until

pytestmark = pytest.mark.skipif(not campaign.enabled(), reason="takes half a minute: with --campaign")

TOPIC = "orders"
IDS = (1, 2, 3)


@pytest.fixture
def nodes(tmp_path: Path) -> Iterator[dict[int, KafkaCompatBroker]]:
    controllers = {node_id: free_port() for node_id in IDS}
    voters = ",".join(f"{node_id}@127.0.0.1:{port}" for node_id, port in controllers.items())
    nodes = {}
    for node_id in IDS:
        port = free_port()
        settings = {
            "process.roles": "broker,controller",
            "node.id": str(node_id),
            "broker.id": str(node_id),
            "controller.quorum.voters": voters,
            "controller.listener.names": "CONTROLLER",
            "listeners": f"PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controllers[node_id]}",
            "offsets.topic.num.partitions": "1",
            "offsets.topic.replication.factor": "3",
            "min.insync.replicas": "2",
            "group.initial.rebalance.delay.ms": "0",
            "broker.session.timeout.ms": "3000",
        }
        nodes[node_id] = KafkaCompatBroker(tmp_path / str(node_id), settings, port=port)
        nodes[node_id].launch()
    for node in nodes.values():
        node.wait_ready()
    yield nodes
    with ThreadPoolExecutor() as threads:
        list(threads.map(KafkaCompatBroker.stop, nodes.values()))


class _Written:
    """Records of an idempotent producer, one every few milliseconds."""

    def __init__(self, bootstrap: str) -> None:
        self.acknowledged: list[bytes] = []
        self._producer = Producer({"bootstrap.servers": bootstrap, "acks": "all", "enable.idempotence": True})
        self._numbers = itertools.count()
        self.is_ending = False

    async def run(self) -> None:
        while not self.is_ending:
            value = str(next(self._numbers)).encode()
            self._producer.produce(TOPIC, value, on_delivery=self._delivered)
            self._producer.poll(0)
            await asyncio.sleep(0.005)  # The load must last as long as the faults, on a slow machine, too.
        await asyncio.to_thread(self._producer.flush, 60)

    def _delivered(self, error: KafkaError | None, message: Message) -> None:
        if error is None:
            value = message.value()
            assert isinstance(value, bytes)
            self.acknowledged.append(value)


def _read(bootstrap: str, count: int) -> list[bytes]:
    consumer = Consumer(
        {"bootstrap.servers": bootstrap, "group.id": "readers", "auto.offset.reset": "earliest"}
    )
    consumer.subscribe([TOPIC])
    found: list[bytes] = []
    for _ in range(60):
        for message in consumer.consume(1000, 1.0):
            value = message.value()
            if message.error() is None and isinstance(value, bytes):
                found.append(value)
        if len(found) >= count:
            break
    consumer.close()
    return found


async def test_no_acknowledged_record_is_lost_when_nodes_are_killed(
    nodes: dict[int, KafkaCompatBroker],
) -> None:
    bootstrap = ",".join(node.address for node in nodes.values())
    admin = AdminClient({"bootstrap.servers": bootstrap})
    created = admin.create_topics([NewTopic(TOPIC, 3, 3)])[TOPIC]
    await asyncio.to_thread(created.result, 30)
    written = _Written(bootstrap)
    writing = asyncio.create_task(written.run())
    for node_id in IDS:
        before = len(written.acknowledged)
        await until(lambda: len(written.acknowledged) > before + 50, 60)  # noqa: B023
        await asyncio.to_thread(nodes[node_id].kill)
        killed_at = len(written.acknowledged)
        # Records that were in flight may still be acknowledged: only later ones show new leaders.
        await until(lambda: len(written.acknowledged) > killed_at + 500, 60)  # noqa: B023
        await asyncio.to_thread(nodes[node_id].start)
    written.is_ending = True
    await writing
    found = await asyncio.to_thread(_read, bootstrap, len(written.acknowledged))
    assert sorted(found) == sorted(written.acknowledged)


async def test_nodes_that_stop_at_once_do_not_wait_for_one_another(
    nodes: dict[int, KafkaCompatBroker],
) -> None:
    """Docker Compose kills containers that have not stopped 10 s after its signal."""
    admin = AdminClient({"bootstrap.servers": ",".join(node.address for node in nodes.values())})
    created = admin.create_topics([NewTopic(TOPIC, 30, 3)])[TOPIC]
    await asyncio.to_thread(created.result, 30)
    began_s = time.monotonic()
    await asyncio.gather(*(asyncio.to_thread(node.stop) for node in nodes.values()))
    took_s = time.monotonic() - began_s
    assert took_s < 8
