"""Changes of the metadata while active controllers are killed, with kill -9."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from tests.bench.quorum_client import ClusterClient, MetadataChanges, until
from tests.faults.cluster import BROKER_IDS
from tests.faults.quorum_cluster import QuorumFaultCluster
from tests.support import campaign

LONGEST_S = 3.0
_KILLS = 10


@pytest.mark.skipif(not campaign.enabled(), reason="takes a minute: with --campaign")
@pytest.mark.timeout(900)
def test_no_metadata_change_waits_longer_than_three_seconds_when_the_active_controller_dies(
    tmp_path: Path,
) -> None:
    """Three brokers with three controllers, and the default timeouts."""
    with QuorumFaultCluster(tmp_path, session_timeout_ms=9000, separate=True) as cluster:
        ports = {broker_id: cluster.brokers[broker_id].port for broker_id in BROKER_IDS}
        client = ClusterClient(ports)
        changes = MetadataChanges(ports, "change")
        changes.start()
        waits_s = []
        for _ in range(_KILLS):
            changes.await_another()
            leader_id = client.quorum_leader()
            began_s = time.monotonic()
            cluster.nodes[leader_id].kill()
            until(lambda: client.quorum_leader() != leader_id, "another leader")  # noqa: B023
            changes.await_another()
            cluster.start(leader_id)
            changes.await_another()
            waits_s.append(changes.longest_s(began_s, time.monotonic()))
        changes.stop()
        client.close()
    print(f"longest creations of topics: {', '.join(f'{wait_s:.2f} s' for wait_s in waits_s)}")
    assert max(waits_s) <= LONGEST_S
