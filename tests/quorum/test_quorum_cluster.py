"""Clusters with a metadata quorum, in one process."""

from __future__ import annotations

import asyncio
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from kafka_compat.broker import BrokerHooks
from kafka_compat.broker.quorum_process import QuorumProcess
from kafka_compat.config import BrokerConfig
from kafka_compat.coordination.raft.events import Resigning
from kafka_compat.coordination.store.metadata_store import SessionState
from kafka_compat.errors import ErrorCode, KafkaError
from tests.cluster.embedded import until
from tests.quorum.cluster import CLUSTER_ID, QuorumBroker, QuorumCluster
from tests.quorum.full_disk import FullDisk


async def test_three_combined_nodes_replicate_a_topic_and_keep_it_across_a_restart_of_all(
    tmp_path: Path,
) -> None:
    cluster = QuorumCluster(tmp_path)
    await cluster.start()
    await until(lambda: all(len(broker.metadata.brokers) == 3 for broker in cluster.brokers.values()))
    assert await cluster.create_topic("orders") == ErrorCode.NONE
    await until(lambda: cluster.leader("orders") > 0 and cluster.isr("orders") == {1, 2, 3})
    assert await cluster.produce(cluster.leader("orders"), "orders", b"one") == ErrorCode.NONE
    await cluster.stop()
    await cluster.start()
    await until(lambda: cluster.leader("orders") > 0)
    assert await cluster.produce(cluster.leader("orders"), "orders", b"two") == ErrorCode.NONE
    assert await cluster.values(cluster.leader("orders"), "orders") == [b"one", b"two"]
    await cluster.stop()


async def test_a_change_of_metadata_survives_the_loss_of_the_active_controller(tmp_path: Path) -> None:
    cluster = QuorumCluster(tmp_path, controllers=3)
    await cluster.start()
    await until(lambda: all(len(broker.metadata.brokers) == 3 for broker in cluster.brokers.values()))
    leader_id = cluster.leader_id
    assert leader_id > 100
    await cluster.stop_controller(leader_id)
    assert await asyncio.wait_for(cluster.create_topic("orders"), 10) == ErrorCode.NONE
    assert cluster.leader_id not in (leader_id, -1)
    await cluster.start_controller(leader_id)
    leader = cluster.nodes[cluster.leader_id]
    await until(lambda: cluster.nodes[leader_id].applied == leader.applied)
    await cluster.stop()


async def test_a_node_that_was_away_catches_up_by_a_snapshot(tmp_path: Path) -> None:
    settings = {
        "metadata.log.max.record.bytes.between.snapshots": "2000",
        "metadata.max.retention.bytes": "1",
    }
    cluster = QuorumCluster(tmp_path, settings=settings, controllers=3)
    await cluster.start()
    away = next(node_id for node_id in cluster.controllers if node_id != cluster.leader_id)
    await cluster.stop_controller(away)
    for number in range(5):
        assert await cluster.create_topic(f"topic-{number}") == ErrorCode.NONE
    leader = cluster.nodes[cluster.leader_id]
    await until(lambda: leader.log.start_offset > 0)
    shutil.rmtree(tmp_path / f"broker-{away}")
    process = await cluster.start_controller(away)
    await until(lambda: process.node.applied.offset == leader.applied.offset)
    assert process.node.log.start_offset > 0
    tree = process.store.machine.tree
    assert "/brokers/topics/topic-4" in tree.nodes
    await cluster.stop()


async def test_a_broker_finds_the_quorum_by_its_bootstrap_servers(tmp_path: Path) -> None:
    cluster = QuorumCluster(tmp_path, count=1, controllers=1)
    (port,) = cluster.controller_ports.values()
    await cluster.start_controller(101)
    settings = cluster.node_settings(1)
    del settings["controller.quorum.voters"]
    settings["controller.quorum.bootstrap.servers"] = f"127.0.0.1:{port}"
    broker = QuorumBroker(BrokerConfig.from_properties(settings))
    broker.config.cluster_id = CLUSTER_ID
    await broker.start()
    assert broker.node.machine.leader_id == 101
    assert not broker.node.machine.is_voter
    await broker.stop(controlled=False)
    await cluster.stop()


async def test_a_node_that_cannot_save_its_vote_stops_and_another_one_leads(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    cluster = QuorumCluster(tmp_path, count=1, controllers=3)
    await asyncio.gather(*map(cluster.start_controller, cluster.controller_ports))
    await until(lambda: cluster.leader_id > 0)
    process = cluster.controllers[cluster.leader_id]
    stopped = asyncio.Event()
    process.on_fatal = stopped.set
    directory = Path(process.node.log.directory)
    # The vote of the next epoch cannot be saved. Move the directory at once, as the worker may write to it.
    os.rename(directory, tmp_path / "moved")
    process.node.handle(Resigning())
    other = next(node for node in cluster.nodes.values() if node is not process.node)
    await asyncio.wait_for(stopped.wait(), 30)
    await until(lambda: other.machine.leader_id not in (-1, process.node.node_id), 30)
    assert "Check the disk" in caplog.text
    await cluster.stop()


async def test_a_node_whose_disk_is_full_stops_and_continues_when_there_is_space(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    disk = FullDisk()
    cluster = QuorumCluster(tmp_path, count=0, controllers=1)
    process = QuorumProcess(cluster.config(101), BrokerHooks(filesystem=disk))
    stopped = asyncio.Event()
    process.on_fatal = stopped.set
    await process.start()
    session = await process.connect()
    await session.create("/kept", b"data")
    disk.is_full = True
    refused = asyncio.ensure_future(session.create("/refused", b"data"))
    await asyncio.wait_for(stopped.wait(), 30)
    assert "is full" in caplog.text
    assert "Free disk space" in caplog.text
    assert not refused.done()
    await process.stop()
    await asyncio.wait([refused])
    assert refused.exception() is not None
    disk.is_full = False
    await process.start()
    again = await process.connect()
    assert (await again.get("/kept"))[0] == b"data"
    assert await again.exists("/refused") is None
    await process.stop()


async def test_a_snapshot_that_does_not_fit_on_the_disk_is_taken_later(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    disk = FullDisk()
    cluster = QuorumCluster(
        tmp_path,
        count=0,
        settings={"metadata.max.retention.bytes": "-1", "metadata.max.retention.ms": "0"},
        controllers=1,
    )
    process = QuorumProcess(cluster.config(101), BrokerHooks(filesystem=disk))
    await process.start()
    node = process.node
    session = await process.connect()
    await session.create("/kept", b"data")
    disk.is_full = True
    node.snapshots.take()
    await until(lambda: "Could not take a snapshot" in caplog.text)
    disk.is_full = False
    await session.create("/second", b"data")
    assert node.checkpoints.latest is None
    node.snapshots.take()
    await until(lambda: node.log.start_offset > 0)  # metadata.max.retention.ms
    assert node.checkpoints.latest is not None
    assert node.log.start_offset == node.checkpoints.latest.offset
    assert not any(name.endswith(".part") for name in disk.listdir(node.log.directory))
    await process.stop()
    await process.start()
    again = await process.connect()
    assert (await again.get("/kept"))[0] == (await again.get("/second"))[0] == b"data"
    await process.stop()


async def test_the_sessions_of_a_leader_whose_process_ended_end_before_their_timeout(tmp_path: Path) -> None:
    cluster = QuorumCluster(tmp_path, count=1, controllers=3, settings={"broker.session.timeout.ms": "60000"})
    await asyncio.gather(*map(cluster.start_controller, cluster.controller_ports))
    await until(lambda: cluster.leader_id > 0)
    sessions = {node_id: await process.connect() for node_id, process in cluster.controllers.items()}
    ended = sessions.pop(cluster.leader_id).session_id
    # The process closes no session. Nothing listens at its address any more.
    await cluster.stop_controller(cluster.leader_id)
    (other, *_) = cluster.controllers.values()
    await until(lambda: ended not in other.store.machine.sessions, 20)
    assert all(session.state is SessionState.CONNECTED for session in sessions.values())
    await cluster.stop()


async def test_the_sessions_of_an_observer_whose_process_ended_end_before_their_timeout(
    tmp_path: Path,
) -> None:
    cluster = QuorumCluster(tmp_path, count=1, controllers=1, settings={"broker.session.timeout.ms": "60000"})
    controller = await cluster.start_controller(101)
    observer = QuorumProcess(cluster.config(1))
    await observer.start()
    ended = (await observer.connect()).session_id
    assert ended in controller.store.machine.sessions
    await observer.stop()
    await until(lambda: ended not in controller.store.machine.sessions, 20)
    await cluster.stop()


async def test_the_sessions_of_a_node_without_a_majority_are_suspended_until_it_is_back(
    tmp_path: Path,
) -> None:
    cluster = QuorumCluster(tmp_path)
    await cluster.start()
    await until(lambda: all(len(broker.metadata.brokers) == 3 for broker in cluster.brokers.values()))
    leader_id = cluster.leader_id
    (left, other) = (broker_id for broker_id in cluster.brokers if broker_id != leader_id)
    session = cluster.brokers[left].store
    assert session.state is SessionState.CONNECTED
    await cluster.stop_broker(leader_id, controlled=False)
    await cluster.stop_broker(other, controlled=False)
    await until(lambda: session.state is SessionState.SUSPENDED, 20)
    await cluster.start_broker(other)
    await until(lambda: session.state is SessionState.CONNECTED, 20)
    await cluster.stop()


async def test_a_node_runs_on_a_loop_whose_handles_of_past_times_are_not_timers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """This is what uvloop's call_at returns."""
    loop = asyncio.get_running_loop()
    call_at = loop.call_at

    def like_uvloop(when: float, callback: Callable[..., None], *args: object, **rest: Any) -> asyncio.Handle:
        late = when <= loop.time() + 0.05
        return loop.call_soon(callback, *args, **rest) if late else call_at(when, callback, *args, **rest)

    monkeypatch.setattr(loop, "call_at", like_uvloop)
    cluster = QuorumCluster(tmp_path)
    await cluster.start()
    await until(lambda: all(len(broker.metadata.brokers) == 3 for broker in cluster.brokers.values()))
    assert await cluster.create_topic("orders") == ErrorCode.NONE
    await cluster.stop()


async def test_a_controller_that_is_its_own_bootstrap_server_starts_alone_as_a_quorum(tmp_path: Path) -> None:
    cluster = QuorumCluster(tmp_path, count=1)
    settings = cluster.node_settings(1)
    voter = settings.pop("controller.quorum.voters")
    settings["controller.quorum.bootstrap.servers"] = voter.partition("@")[2]
    for _ in range(2):
        broker = QuorumBroker(BrokerConfig.from_properties(settings))
        await asyncio.wait_for(broker.start(), 20)
        assert broker.node.machine.leader_id == 1
        assert set(broker.node.machine.voters) == {1}
        await broker.stop(controlled=False)


async def test_the_only_controller_creates_internal_topics_alone_unless_their_replication_factor_is_set(
    tmp_path: Path,
) -> None:
    cluster = QuorumCluster(tmp_path, count=1, settings={"transaction.state.log.replication.factor": "3"})
    broker = await cluster.start_broker(1)
    await until(lambda: 1 in broker.metadata.brokers)
    topics = broker.membership.topics
    (first, *_) = (await topics.ensure_internal("__consumer_offsets")).partitions
    assert first.replicas == (1,)
    with pytest.raises(KafkaError) as caught:
        await topics.ensure_internal("__transaction_state")
    assert caught.value.code == ErrorCode.INVALID_REPLICATION_FACTOR
    await cluster.stop()
