"""Quorums of our nodes and of Apache Kafka, and Kafka's own tool. In campaigns only: JVMs start slowly."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import pytest

from kafka_compat.broker.quorum_process import QuorumProcess
from kafka_compat.config import BrokerConfig
from kafka_compat.coordination.raft.values import Role
from kafka_compat.coordination.replicated_store.metadata_log import AppliedRecord, LogApplication, Steps
from kafka_compat.quorum.node import QuorumNode
from tests.cluster.embedded import until
from tests.quorum.cluster import FAST, QuorumCluster
from tests.support import campaign
from tests.support.java_tools import JavaTools
from tests.support.kafka_jars import NEWEST_VERSION
from tests.support.ports import free_port
from tests.support.servers import GenuineKafka

pytestmark = pytest.mark.skipif(not campaign.enabled(), reason="starts JVMs: with --campaign")

_GENUINE_CLUSTER_ID = "MkU3OEVBNTcwNTJENDM2Qg"
_NEVER = {
    "controller.quorum.election.timeout.ms": "60000",
    "controller.quorum.fetch.timeout.ms": "60000",
}
"""Settings of a voter that does not begin an election itself."""


class _NoStore:
    """An application that appends no records, and counts those that are applied."""

    failure = None

    def __init__(self) -> None:
        self.applied = 0

    def apply(self, records: Sequence[AppliedRecord]) -> Steps:
        self.applied += len(records)
        yield

    def leader_changed(self, leader_id: int, epoch: int) -> None: ...

    def replica_fetched(self, node_id: int) -> None: ...

    def replica_left(self, node_id: int) -> None: ...

    def snapshot(self) -> Iterator[bytes]:
        return iter(())

    def restore(self, offset: int, records: Iterable[AppliedRecord]) -> Steps:
        yield


class _BareNode(QuorumProcess):
    """A voter without a store, so that the log contains no records of ours."""

    def _new_application(self, node: QuorumNode) -> LogApplication:
        self.application = _NoStore()
        return self.application


class _Pair:
    """Voter 1 is ours, and voter 2 is Apache Kafka's."""

    def __init__(self, directory: Path, own: dict[str, str], others: dict[str, str]) -> None:
        ports = free_port(), free_port()
        common = {
            "process.roles": "controller",
            "controller.quorum.voters": f"1@127.0.0.1:{ports[0]},2@127.0.0.1:{ports[1]}",
            "controller.listener.names": "CONTROLLER",
        }
        config = BrokerConfig.from_properties(
            {
                **common,
                "node.id": "1",
                "listeners": f"CONTROLLER://127.0.0.1:{ports[0]}",
                "log.dirs": str(directory / "own"),
                **own,
            }
        )
        config.cluster_id = _GENUINE_CLUSTER_ID
        self.own = _BareNode(config)
        self.genuine = GenuineKafka(
            directory / "genuine",
            {
                **common,
                "node.id": "2",
                "listeners": f"CONTROLLER://127.0.0.1:{ports[1]}",
                **others,
            },
            version=NEWEST_VERSION,
            mode="kraft",
            quick_start=True,
        )
        self.controller = f"127.0.0.1:{ports[0]}", f"127.0.0.1:{ports[1]}"

    async def start(self) -> None:
        await asyncio.to_thread(self.genuine.launch)
        await self.own.start()

    async def stop(self) -> None:
        await self.own.stop()
        await asyncio.to_thread(self.genuine.stop)


async def test_a_voter_of_kafka_elects_and_follows_ours(tmp_path: Path) -> None:
    pair = _Pair(tmp_path, FAST, _NEVER)
    await pair.start()
    machine = pair.own.node.machine
    await until(lambda: machine.role is Role.LEADER, 60)
    # The high watermark advances only if the other voter has fetched the first record of the epoch.
    await until(lambda: machine.high_watermark >= 1, 60)
    found = machine.describe(pair.own.node.now_ms())
    assert found is not None
    end_offset = found.voters[0].log_end_offset

    def has_caught_up() -> bool:
        found = machine.describe(pair.own.node.now_ms())
        return found is not None and found.voters[1].log_end_offset >= end_offset

    await until(has_caught_up, 30)
    await pair.stop()


async def test_our_voter_elects_and_follows_one_of_kafka(tmp_path: Path) -> None:
    pair = _Pair(tmp_path, _NEVER, {})
    await pair.start()
    machine = pair.own.node.machine
    await until(lambda: machine.leader_id == 2 and machine.role is Role.FOLLOWER, 60)
    await until(lambda: machine.high_watermark > 1 and pair.own.application.applied > 0, 60)
    # Kafka's leader commits only what our voter has acknowledged, and then writes again every 500 ms.
    before = machine.high_watermark
    await until(lambda: machine.high_watermark > before + 2, 60)
    tools = JavaTools(NEWEST_VERSION)
    described = await asyncio.to_thread(
        tools.run,
        "kafka-metadata-quorum",
        "--bootstrap-controller",
        pair.controller[1],
        "describe",
        "--replication",
    )
    tools.close()
    assert described.code == 0, described.err
    assert sorted(line.split()[0] for line in described.lines[1:] if line.strip()) == ["1", "2"]
    await pair.stop()


async def test_kafkas_tool_describes_our_quorum(tmp_path: Path) -> None:
    cluster = QuorumCluster(tmp_path, settings={"controller.quorum.fetch.timeout.ms": "5000"})
    await cluster.start()
    tools = JavaTools(NEWEST_VERSION)
    for option, ports in (
        ("--bootstrap-server", [cluster.port(broker_id) for broker_id in cluster.brokers]),
        ("--bootstrap-controller", list(cluster.controller_ports.values())),
    ):
        for port in ports:
            status = await asyncio.to_thread(
                tools.run, "kafka-metadata-quorum", option, f"127.0.0.1:{port}", "describe", "--status"
            )
            assert status.code == 0, status.err
            shown = dict(line.split(":", 1) for line in status.lines if ":" in line)
            assert int(shown["LeaderId"]) == cluster.leader_id, status.out
            assert int(shown["HighWatermark"]) > 0, status.out
            replication = await asyncio.to_thread(
                tools.run, "kafka-metadata-quorum", option, f"127.0.0.1:{port}", "describe", "--replication"
            )
            assert replication.code == 0, replication.err
            found = {line.split()[0]: line.split()[-1] for line in replication.lines[1:] if line.strip()}
            assert sorted(found) == ["1", "2", "3"], replication.out
            assert sorted(found.values()) == ["Follower", "Follower", "Leader"], replication.out
    tools.close()
    await cluster.stop()
