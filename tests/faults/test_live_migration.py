"""The members of a group move to the consumer protocol and back while all brokers restart one after another:
no record is read again after it was committed, and none is missed.
"""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from tests.faults.cluster import BROKER_IDS, FaultCluster
from tests.groups.consumer.migrating_group import CLASSIC, CONSUMER, SETTINGS, TOPIC, MigratingGroup
from tests.support import campaign
from tests.support.process import wait_until
from tests.support.servers import run_kafka_compat

PARTITIONS = 20


@pytest.mark.skipif(not campaign.enabled(), reason="takes minutes: with --campaign")
@pytest.mark.parametrize("is_static", [False, True], ids=["dynamic", "static"])
@pytest.mark.timeout(900)
def test_a_group_moves_between_protocols_during_a_rolling_restart(tmp_path: Path, is_static: bool) -> None:
    with FaultCluster(tmp_path, overrides=SETTINGS) as cluster:
        address = cluster.bootstrap_servers
        features = ("features", "--bootstrap-server", address, "upgrade", "--feature", "group.version=1")
        done = run_kafka_compat(*features)
        assert done.returncode == 0, done.stdout + done.stderr
        cluster.create_topic(TOPIC, PARTITIONS)
        with MigratingGroup(
            address, tmp_path / "group", members=10, partitions=PARTITIONS, is_static=is_static
        ) as group:
            group.start_all(CLASSIC)
            restarts = _Restarts(cluster)
            restarts.start()
            try:
                while restarts.is_alive():
                    group.move_to(CONSUMER)
                    group.move_to(CLASSIC)
            finally:
                restarts.join()
            assert restarts.problem is None
            history = group.finish()
    print(f"{restarts.count} restarts: {history.summary()}")
    assert not history.findings


class _Restarts(threading.Thread):
    """Restarts all brokers one after another, twice."""

    def __init__(self, cluster: FaultCluster) -> None:
        super().__init__(name="restarts")
        self.count = 0
        self.problem: BaseException | None = None
        self._cluster = cluster

    def run(self) -> None:
        try:
            for broker_id in (*BROKER_IDS, *BROKER_IDS):
                self._restart(broker_id)
                self.count += 1
        except BaseException as problem:
            self.problem = problem

    def _restart(self, broker_id: int) -> None:
        cluster = self._cluster
        cluster.brokers[broker_id].process.stop(60)
        cluster.start(broker_id)
        wait_until(lambda: cluster.registered() == set(BROKER_IDS), 30, "registration of all brokers")
        cluster.wait_in_sync(TOPIC)
        cluster.wait_in_sync("__consumer_offsets")
