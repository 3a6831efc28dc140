"""Three broker processes on a real ZooKeeper, as seen by Kafka's topic tool."""

from __future__ import annotations

import re
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support import java
from tests.support.process import wait_until
from tests.support.servers import KafkaCompatBroker, ZooKeeper

ALL = {1, 2, 3}


class Cluster:
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
                    # Disable rebalancing: a controller also rebalances leaders five seconds after its
                    # election.
                    "auto.leader.rebalance.enable": "false",
                },
            )
            for broker_id in sorted(ALL)
        }

    @property
    def alive(self) -> str:
        """The addresses of the running brokers."""
        return ",".join(broker.address for broker in self.brokers.values() if broker.running)

    def topics(self, *arguments: str) -> str:
        """Return the output of Kafka's topic tool."""
        return java.run("kafka-topics", "--bootstrap-server", self.alive, *arguments).stdout

    def state(self, topic: str) -> tuple[int, set[int]]:
        """Return (leader, in-sync replicas) of partition 0, as the topic tool describes them."""
        text = self.topics("--describe", "--topic", topic)
        found = re.search(r"Partition: 0\s+Leader: (\S+)\s+Replicas: \S+\s+Isr: (\S*)", text)
        assert found is not None, text
        leader = -1 if found[1] == "none" else int(found[1])
        return leader, {int(item) for item in found[2].split(",") if item}


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """A cluster shared by all tests. Each test except the last one leaves all brokers running and in sync."""
    cluster = Cluster(tmp_path_factory.mktemp("cluster"))
    cluster.zookeeper.start()
    try:
        for broker in cluster.brokers.values():
            broker.launch()
        for broker in cluster.brokers.values():
            broker.wait_ready(30)
        yield cluster
    finally:
        for broker in cluster.brokers.values():
            if broker.running:
                broker.kill()
        cluster.zookeeper.kill()


def test_a_killed_leader_is_replaced_and_rejoins(cluster: Cluster) -> None:
    cluster.topics("--create", "--topic", "t", "--replica-assignment", "1:2:3")
    assert cluster.state("t") == (1, ALL)
    cluster.brokers[1].kill()
    wait_until(lambda: cluster.state("t") == (2, {2, 3}), 20, "a new leader")
    cluster.brokers[1].start()
    wait_until(lambda: cluster.state("t") == (2, ALL), 20, "all replicas in sync again")


def test_the_last_broker_stops_immediately_after_a_second_signal(cluster: Cluster) -> None:
    """No broker can take over the leadership. Without the second signal, the broker would retry three times,
    5 s apart.
    """
    cluster.topics("--create", "--topic", "u", "--replica-assignment", "3:2:1")
    for broker_id in (1, 2):
        assert cluster.brokers[broker_id].stop() == 0
    last = cluster.brokers[3].process
    last.child.send_signal(signal.SIGTERM)
    wait_until(
        lambda: "Controlled shutdown is incomplete" in last.tail(),
        10,
        "a controlled shutdown attempt",
    )
    begun = time.monotonic()
    assert last.stop() == 0
    assert time.monotonic() - begun < 4
