"""Steps of a test with a mixed cluster under load, and the check at its end."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

from tests.faults.cluster import BROKER_IDS
from tests.mixed.cluster import MixedCluster
from tests.mixed.load import TOPICS, Load
from tests.support.process import wait_until

T = TypeVar("T")
INTERNAL = ("__consumer_offsets", "__transaction_state")
_REGISTERED_S = 120.0


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


def check(cluster: MixedCluster, load: Load) -> None:
    """Stop the load and the brokers. Fail if a record is lost or duplicated, or if the replicas differ."""
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
