"""The address of the HTTP listener of one broker in a cluster."""

from __future__ import annotations

import re

from tests.faults.cluster import FaultCluster


def url(cluster: FaultCluster, broker_id: int) -> str:
    found = re.search(r"^HTTP on (\S+)$", cluster.brokers[broker_id].log.read_text(), re.MULTILINE)
    assert found is not None
    return found[1]
