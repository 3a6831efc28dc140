"""Our brokers and Apache Kafka 3.9.1's in one cluster: kills, controllers of both kinds, and brokers replaced
by the other kind on the same log directory, under acks=all load with a group and transactions.

Normal runs use one of our brokers and two of Apache Kafka's, with a kill of each kind under a controller of
each kind. `--campaign` also replaces every broker of Apache Kafka with ours and back.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import pytest

from tests.faults.cluster import BROKER_IDS
from tests.mixed.cluster import GENUINE, OURS, MixedCluster
from tests.mixed.load import TOPICS, Load, running
from tests.support import campaign
from tests.support.process import wait_until

T = TypeVar("T")
INTERNAL = ("__consumer_offsets", "__transaction_state")
_REGISTERED_S = 120.0

pytestmark = pytest.mark.timeout(3000)


class Steps:
    """Runs the steps one after another, and prints the duration of each."""

    def __init__(self, cluster: MixedCluster, load: Load) -> None:
        self._cluster = cluster
        self._load = load

    def kill(self, broker_id: int) -> None:
        """Kill a broker under load, wait for the failover, and start the broker again."""
        self._timed(
            f"kill -9 of broker {broker_id} ({self._cluster.kinds[broker_id]})", self._kill, broker_id
        )

    def change(self, broker_id: int, kind: str) -> None:
        """Replace a broker with one of the other kind."""
        self._timed(f"broker {broker_id} becomes {kind}", self._change, broker_id, kind)

    def controller(self, kind: str) -> int:
        """Make a broker of this kind the controller."""
        return self._timed(f"a controller of kind {kind}", self._cluster.elect_controller, kind)

    def _kill(self, broker_id: int) -> None:
        self._cluster.brokers[broker_id].kill()
        for topic in (*TOPICS, *INTERNAL):
            self._cluster.wait_without(broker_id, topic)
        self._load.wait_at_work()
        self._cluster.start(broker_id)

    def _change(self, broker_id: int, kind: str) -> None:
        self._cluster.change(broker_id, kind)

    def _timed(self, what: str, step: Callable[..., T], *arguments: object) -> T:
        began = time.monotonic()
        result = step(*arguments)
        cluster = self._cluster
        wait_until(lambda: cluster.registered() == set(BROKER_IDS), _REGISTERED_S, "all are registered")
        for topic in (*TOPICS, *INTERNAL):
            cluster.wait_in_sync(topic)
        self._load.wait_at_work()
        controller_id = cluster.controller() or 1
        print(
            f"{what}: {time.monotonic() - began:.1f} s; controller {controller_id} "
            f"({cluster.kinds[controller_id]})",
            flush=True,
        )
        return result


def _check(cluster: MixedCluster, load: Load) -> None:
    evidence = load.finish()
    load.close()
    for topic in (*TOPICS, *INTERNAL):
        cluster.wait_in_sync(topic)
    for broker in cluster.brokers.values():
        broker.kill()
    unequal = [found for topic, partitions in TOPICS.items() for found in cluster.unequal(topic, partitions)]
    print(evidence)
    assert not evidence.problems, evidence.problems
    assert not unequal


def test_killing_our_and_apache_kafkas_brokers_does_not_lose_acknowledged_records(tmp_path: Path) -> None:
    kinds = {1: OURS, 2: GENUINE, 3: GENUINE}
    with (
        MixedCluster(tmp_path, kinds, session_timeout_ms=3000) as cluster,
        running(
            cluster, tmp_path, clients=["confluent"], copier="librdkafka", total=1200, seconds=40
        ) as load,
    ):
        steps = Steps(cluster, load)
        steps.controller(OURS)
        steps.kill(2)
        steps.kill(1)
        steps.controller(GENUINE)
        steps.kill(1)
        _check(cluster, load)


@pytest.mark.skipif(not campaign.enabled(), reason="takes a quarter of an hour: with --campaign")
@pytest.mark.parametrize("copier", ["java-3.9.1", "librdkafka"])
def test_apache_kafka_brokers_can_be_replaced_one_by_one_with_ours_and_back(
    tmp_path: Path, copier: str
) -> None:
    with (
        MixedCluster(tmp_path, dict.fromkeys(BROKER_IDS, GENUINE)) as cluster,
        running(
            cluster, tmp_path, clients=["confluent", "java"], copier=copier, total=10_000, seconds=420
        ) as load,
    ):
        steps = Steps(cluster, load)
        for kind in (OURS, GENUINE):
            for count, broker_id in enumerate(BROKER_IDS, 1):
                steps.change(broker_id, kind)
                if count < len(BROKER_IDS):
                    # The cluster is mixed: with a controller of each kind, kill a broker of each kind.
                    for controller_kind in (OURS, GENUINE):
                        controller_id = steps.controller(controller_kind)
                        steps.kill(controller_id)
                        other = GENUINE if controller_kind == OURS else OURS
                        steps.kill(cluster.of_kind(other)[0])
            if kind == OURS:
                steps.kill(cluster.controller() or 1)
        _check(cluster, load)
