"""A running quorum in the output of status and metadata-quorum, in metrics and on the page."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from kafka_compat.cli.diagnosis import Examination, Wanted
from kafka_compat.client.cluster import Cluster
from kafka_compat.client.connection_settings import connection_settings
from kafka_compat.metrics.scraper import Scraper
from kafka_compat.status.observer import Observer
from kafka_compat.status.snapshot import Snapshot
from kafka_compat.tools import registry
from tests.quorum.cluster import CLUSTER_ID, QuorumCluster, patient_cluster


@pytest.fixture
async def cluster(tmp_path: Path) -> AsyncIterator[QuorumCluster]:
    async with patient_cluster(tmp_path) as running:
        yield running


def address(cluster: QuorumCluster, broker_id: int = 1) -> str:
    ((host, port),) = cluster.brokers[broker_id].addresses.values()
    return f"{host}:{port}"


def observe(bootstrap: str) -> Snapshot:
    with Cluster(bootstrap) as client:
        return Observer(client).observe()


async def test_the_state_of_a_quorum_is_shown(
    cluster: QuorumCluster, capsys: pytest.CaptureFixture[str]
) -> None:
    leader_id = cluster.leader_id
    states = {node_id: node.state() for node_id, node in cluster.nodes.items()}
    assert sorted(state.state for state in states.values()) == ["follower", "follower", "leader"]
    assert {state.leader_id for state in states.values()} == {leader_id}
    assert list(states[1].voters) == [1, 2, 3]

    found = await asyncio.to_thread(observe, address(cluster))
    assert found.is_kraft
    assert found.quorum is not None
    assert found.quorum.leader_id == leader_id
    assert {each.node_id for each in found.quorum.voters} == {1, 2, 3}

    for where in (
        f"--bootstrap-server {address(cluster)}",
        f"--bootstrap-controller 127.0.0.1:{cluster.controller_ports[1]}",
    ):
        words = [*where.split(), "describe", "--status"]
        assert await asyncio.to_thread(registry.run, "metadata-quorum", words) == 0
        printed = capsys.readouterr().out
        assert f"ClusterId:              {CLUSTER_ID}\nLeaderId:               {leader_id}\n" in printed

    scraper = Scraper([cluster.brokers[leader_id]])
    text = b"".join([piece async for piece in await scraper.text(scraper.look())]).decode()
    scraper.close()
    assert 'kafka_server_raftmetrics_current_state{current_state="leader"} 1' in text
    assert f"kafka_server_raftmetrics_current_leader {leader_id}" in text


async def test_doctor_checks_the_quorum_and_recognizes_a_controller(cluster: QuorumCluster) -> None:
    def diagnosed(port: int) -> dict[str, str]:
        examination = Examination(connection_settings({}, 10), Wanted())
        return {each.step: each.text for each in examination.one("127.0.0.1", port, rights=True)}

    found = await asyncio.to_thread(diagnosed, int(address(cluster).rpartition(":")[2]))
    assert found["quorum"].startswith(f"leader {cluster.leader_id} in epoch ")
    found = await asyncio.to_thread(diagnosed, cluster.controller_ports[1])
    assert found["protocol"] == "a controller of the metadata quorum, which does not serve clients"
