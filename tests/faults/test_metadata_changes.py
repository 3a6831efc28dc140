"""Changes of the metadata while active controllers are killed, with kill -9."""

from __future__ import annotations

import os
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
    """Three brokers with three controllers, and the default timeouts. The time for which one of the processes
    waited for a processor does not count: on a machine that is not overloaded, it is short.
    """
    with QuorumFaultCluster(tmp_path, session_timeout_ms=9000, separate=True) as cluster:
        ports = {broker_id: cluster.brokers[broker_id].port for broker_id in BROKER_IDS}
        client = ClusterClient(ports)
        changes = MetadataChanges(ports, "change")
        changes.start()
        waits: list[tuple[float, float]] = []
        for _ in range(_KILLS):
            changes.await_another()
            leader_id = client.quorum_leader()
            cluster.nodes[leader_id].kill()
            began_s, delayed_s = time.monotonic(), _delays_s(cluster)
            until(lambda: client.quorum_leader() != leader_id, "another leader")  # noqa: B023
            changes.await_another()
            cluster.start(leader_id)
            changes.await_another()
            wait_s = changes.longest_s(began_s, time.monotonic())
            delays_s = _delays_s(cluster)
            waits.append((wait_s, max(delay_s - delayed_s.get(pid, 0) for pid, delay_s in delays_s.items())))
        changes.stop()
        client.close()
    shown = ", ".join(f"{wait_s:.2f} s ({delay_s:.2f} s without a processor)" for wait_s, delay_s in waits)
    print(f"longest creations of topics: {shown}")
    assert max(wait_s - delay_s for wait_s, delay_s in waits) <= LONGEST_S, shown


def _delays_s(cluster: QuorumFaultCluster) -> dict[int, float]:
    """Return for how many seconds each node and this process have waited for a processor, by process ID. Only
    the main threads count, which run the event loops.
    """
    pids = [os.getpid(), *(node.pid for node in cluster.nodes.values() if node.running)]
    return {pid: int(Path(f"/proc/{pid}/task/{pid}/schedstat").read_text().split()[1]) / 1e9 for pid in pids}
