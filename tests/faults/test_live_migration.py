"""The members of a group move to the consumer protocol and back while all brokers restart one after another:
no record is read again after it was committed, and none is missed.
"""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.faults.cluster import BROKER_IDS, FaultCluster
from tests.groups.consumer.migrating_group import CLASSIC, CONSUMER, SETTINGS, TOPIC, MigratingGroup
from tests.support import campaign
from tests.support.process import wait_until
from tests.support.servers import run_kafka_compat

MOVES = 3
"""Moves in each direction."""
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
            for protocol in (CONSUMER, CLASSIC) * MOVES:
                with _rolling_restart(cluster):
                    group.move_to(protocol)
            history = group.finish()
    print(history.summary())
    assert not history.findings


@contextmanager
def _rolling_restart(cluster: FaultCluster) -> Iterator[None]:
    """Restart the brokers one after another during the block."""

    def restart() -> None:
        for broker_id in BROKER_IDS:
            cluster.brokers[broker_id].process.stop(60)
            cluster.start(broker_id)
            wait_until(lambda: cluster.registered() == set(BROKER_IDS), 30, "registration of all brokers")
            cluster.wait_in_sync(TOPIC)
            cluster.wait_in_sync("__consumer_offsets")

    with ThreadPoolExecutor(1, "restarts") as pool:
        restarts = pool.submit(restart)
        yield
        restarts.result()
