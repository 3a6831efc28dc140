"""inter.broker.protocol.version 2.8 to 3.9 in one cluster with Apache Kafka: replication, elections, groups
and transactions with controllers of both kinds, and the nodes that they write.

Normal runs use Apache Kafka 3.9.1 with the oldest protocol. `--campaign` runs every protocol under load with
kills, and Apache Kafka 2.8.2 and 3.3.2 themselves.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.faults.cluster import BROKER_IDS
from tests.mixed.cluster import GENUINE, OURS, MixedCluster
from tests.mixed.load import TOPICS, running
from tests.mixed.steps import INTERNAL, Steps, check
from tests.support import campaign
from tests.support.process import wait_until
from tests.transactions.programs import read_all

pytestmark = pytest.mark.timeout(3000)
PROTOCOL = "inter.broker.protocol.version"


def _write(cluster: MixedCluster, topic: str, values: list[str]) -> None:
    """Write records in a transaction, whose producer needs a producer ID and a coordinator."""
    from confluent_kafka import Producer

    producer = Producer(
        {
            "bootstrap.servers": cluster.bootstrap_servers,
            "transactional.id": topic,
            "log_level": 2,
            "message.timeout.ms": 30_000,
        }
    )
    producer.init_transactions(60)
    producer.begin_transaction()
    failed: list[Any] = []
    for value in values:
        producer.produce(topic, value, partition=0, on_delivery=lambda error, _: failed.append(error))
    producer.commit_transaction(60)
    assert failed == [None] * len(values)


def test_brokers_and_controllers_of_both_kinds_work_with_the_oldest_protocol(tmp_path: Path) -> None:
    kinds = {1: OURS, 2: GENUINE, 3: OURS}
    with MixedCluster(tmp_path, kinds, session_timeout_ms=3000, overrides={PROTOCOL: "2.8"}) as cluster:
        expected: list[str] = []
        for kind in (OURS, GENUINE):
            cluster.elect_controller(kind)
            if not cluster.has_topic("t"):
                cluster.create_topic("t", 1)
            # The format of Kafka before 3.3. Apache Kafka 2.8 stops if it finds the newer one.
            assert cluster.node("/feature") == {"features": {}, "version": 1, "status": 1}
            values = [f"{kind}{len(expected)}", f"{kind}{len(expected) + 1}"]
            _write(cluster, "t", values)
            expected += values
            # The follower leaves the ISR and returns, through AlterPartition requests to this controller.
            follower = next(each for each in BROKER_IDS if each != cluster.controller())
            cluster.brokers[follower].kill()
            cluster.wait_without(follower, "t")
            cluster.start(follower)
            cluster.wait_in_sync("t")
        assert read_all(cluster.bootstrap_servers, "t") == expected
        # Each broker claims producer IDs itself: with 2.8, the controller does not allocate them.
        assert int(cluster.node("/latest_producer_id_block")["block_end"]) % 1000 == 999
        for broker_id in cluster.of_kind(OURS):
            log = cluster.brokers[broker_id].log.read_text()
            assert "ERROR" not in log


@pytest.mark.skipif(not campaign.enabled(), reason="takes minutes per version: with --campaign")
@pytest.mark.parametrize(
    ("version", "protocol"),
    [
        ("2.8.2", "2.8"),
        ("3.3.2", "3.3"),
        ("3.9.1", "2.8"),
        ("3.9.1", "3.0"),
        ("3.9.1", "3.3"),
        ("3.9.1", "3.5"),
    ],
)
def test_each_protocol_survives_kills_and_exchanges_under_load(
    tmp_path: Path, version: str, protocol: str
) -> None:
    cluster = MixedCluster(
        tmp_path, dict.fromkeys(BROKER_IDS, GENUINE), session_timeout_ms=6000, overrides={PROTOCOL: protocol}
    )
    cluster.version = version
    with (
        cluster,
        running(
            cluster, tmp_path, clients=["confluent"], copier="librdkafka", total=3000, seconds=120
        ) as load,
    ):
        steps = Steps(cluster, load)
        for kind in (OURS, GENUINE):
            steps.change(1, kind)
            steps.change(2, kind)
            if kind == OURS:
                for controller_kind in (OURS, GENUINE):
                    controller_id = steps.controller(controller_kind)
                    steps.kill(controller_id)
                    steps.kill(cluster.of_kind(GENUINE if controller_kind == OURS else OURS)[0])
        for topic in (*TOPICS, *INTERNAL):
            cluster.wait_in_sync(topic)
        wait_until(lambda: cluster.registered() == set(BROKER_IDS), 60, "registration of all brokers")
        check(cluster, load)
