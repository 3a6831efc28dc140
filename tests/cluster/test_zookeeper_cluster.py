"""Three broker processes on a real ZooKeeper, as Kafka's own tool sees them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support import java
from tests.support.process import wait_until
from tests.support.servers import KafkaCompatBroker, ZooKeeper

ALL = {1, 2, 3}


class Cluster:
    """The brokers by id."""

    def __init__(self, directory: Path) -> None:
        self.zookeeper = ZooKeeper(directory / "zookeeper")
        self.brokers = {
            broker_id: KafkaCompatBroker(
                directory / f"broker-{broker_id}",
                {
                    "broker.id": str(broker_id),
                    "zookeeper.connect": f"{self.zookeeper.address}/cluster",
                    "zookeeper.session.timeout.ms": "2000",
                    "replica.lag.time.max.ms": "3000",
                },
            )
            for broker_id in sorted(ALL)
        }

    @property
    def alive(self) -> str:
        """The addresses of the brokers that run."""
        return ",".join(broker.address for broker in self.brokers.values() if broker.running)

    def topics(self, *arguments: str) -> str:
        """What Kafka's topic tool says."""
        return java.run("kafka-topics", "--bootstrap-server", self.alive, *arguments).stdout

    def state(self, topic: str) -> tuple[int, set[int]]:
        """Leader and in-sync replicas of partition 0, as the tool describes them."""
        text = self.topics("--describe", "--topic", topic)
        found = re.search(r"Partition: 0\s+Leader: (\S+)\s+Replicas: \S+\s+Isr: (\S*)", text)
        assert found is not None, text
        leader = -1 if found[1] == "none" else int(found[1])
        return leader, {int(item) for item in found[2].split(",") if item}


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    cluster = Cluster(tmp_path)
    cluster.zookeeper.start()
    try:
        for broker in cluster.brokers.values():
            broker.launch()
        for broker in cluster.brokers.values():
            broker.process.wait_ready(30)
        yield cluster
    finally:
        for broker in cluster.brokers.values():
            if broker.running:
                broker.kill()
        cluster.zookeeper.kill()


def test_a_killed_leader_is_replaced_and_comes_back(cluster: Cluster) -> None:
    cluster.topics("--create", "--topic", "t", "--replica-assignment", "1:2:3")
    assert cluster.state("t") == (1, ALL)
    cluster.brokers[1].kill()
    wait_until(lambda: cluster.state("t") == (2, {2, 3}), 20, "another leader")
    cluster.brokers[1].start()
    wait_until(lambda: cluster.state("t") == (2, ALL), 20, "all in sync again")
