"""Fencing: requests from replaced controllers, with earlier broker epochs, or with earlier leader epochs are
rejected. Records are acknowledged with acks=all only after the followers have them.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from uuid import UUID

import pytest

from kafka_compat.cluster import controller_wire as wire
from kafka_compat.cluster.controller_nodes import ControllerNodes, Deposed
from kafka_compat.coordination.controller import effects
from kafka_compat.coordination.controller.outcomes import Assignment as Replicas
from kafka_compat.coordination.controller.outcomes import TopicPartition
from kafka_compat.coordination.nodes import znodes
from kafka_compat.coordination.nodes.cluster_state import PartitionState
from kafka_compat.coordination.nodes.malformed_nodes import MalformedNodes
from kafka_compat.coordination.store.metadata_store import SessionExpired
from kafka_compat.errors import ErrorCode
from kafka_compat.protocol.api_keys import ApiKey
from kafka_compat.protocol.messages.allocate_producer_ids import AllocateProducerIdsRequest
from kafka_compat.protocol.messages.alter_partition import (
    AlterPartitionRequest,
    BrokerState,
    PartitionData,
    TopicData,
)
from kafka_compat.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic, ReplicaState
from kafka_compat.replication.partition import Partition
from tests.cluster.embedded import EmbeddedCluster

ALL = (1, 2, 3)
T0 = TopicPartition("t", 0)


class Known:
    """The state of t-0 in the cluster, and requests about it."""

    def __init__(self, cluster: EmbeddedCluster, state: PartitionState) -> None:
        self.cluster = cluster
        self.state = state
        self.leader = cluster.brokers[state.leader]
        self.follower = next(item for item in ALL if item != state.leader)
        term = cluster.epoch()
        assert term is not None
        self.controller_epoch = term.controller_epoch
        self.held = self.partition(state.leader)
        assert self.held.log.topic_id is not None
        self.topic_id = self.held.log.topic_id

    def partition(self, broker_id: int) -> Partition:
        held = self.cluster.brokers[broker_id].replicas.get("t", 0)
        assert held is not None
        return held

    def belief(self) -> tuple[bool, int, int, tuple[int, ...]]:
        held = self.held
        return held.is_leader, held.leader_epoch, held.partition_epoch, held.isr

    async def lead(
        self, state: PartitionState, *, controller_epoch: int | None = None, broker_epoch: int | None = None
    ) -> tuple[ErrorCode, list[ErrorCode]]:
        """Send LeaderAndIsr with this state to the leader. Return the error codes of the request and of
        t-0.
        """
        partition = effects.LeaderAndIsrPartition(T0, self.topic_id, state, Replicas(ALL), False)
        effect = effects.SendLeaderAndIsr(
            self._address(broker_epoch), self._epoch(controller_epoch), (partition,), ()
        )
        answer = await self.cluster.send(
            self.state.leader, ApiKey.LEADER_AND_ISR, 7, wire.leader_and_isr(9, effect, "PLAINTEXT")
        )
        codes = [ErrorCode(item.error_code) for topic in answer.topics for item in topic.partition_errors]
        return ErrorCode(answer.error_code), codes

    async def update(
        self, *, controller_epoch: int | None = None, broker_epoch: int | None = None
    ) -> ErrorCode:
        """Send UpdateMetadata without live brokers to the leader. Return the error code."""
        address = self._address(broker_epoch)
        effect = effects.SendUpdateMetadata((address,), self._epoch(controller_epoch), (), ())
        request = wire.update_metadata(9, effect, address.epoch)
        answer = await self.cluster.send(self.state.leader, ApiKey.UPDATE_METADATA, 8, request)
        return ErrorCode(answer.error_code)

    async def stop(
        self, leader_epoch: int, *, controller_epoch: int | None = None, broker_epoch: int | None = None
    ) -> tuple[ErrorCode, list[ErrorCode]]:
        """Send StopReplica to the leader, to delete t-0. Return the error codes of the request and of t-0."""
        stopped = effects.StopReplicaPartition(T0, leader_epoch, True)
        effect = effects.SendStopReplica(
            self._address(broker_epoch), self._epoch(controller_epoch), (stopped,)
        )
        answer = await self.cluster.send(
            self.state.leader, ApiKey.STOP_REPLICA, 4, wire.stop_replica(9, effect)
        )
        return ErrorCode(answer.error_code), [ErrorCode(item.error_code) for item in answer.partition_errors]

    async def alter(
        self,
        *,
        leader_epoch: int | None = None,
        partition_epoch: int | None = None,
        broker_epoch: int | None = None,
    ) -> tuple[ErrorCode, list[ErrorCode]]:
        """Send AlterPartition to the controller, with the leader as the only in-sync replica. Return the
        error codes of the request and of t-0.
        """
        state = self.state
        change = PartitionData(
            partition_index=0,
            leader_epoch=state.leader_epoch if leader_epoch is None else leader_epoch,
            new_isr_with_epochs=[BrokerState(broker_id=state.leader, broker_epoch=-1)],
            partition_epoch=state.partition_epoch if partition_epoch is None else partition_epoch,
        )
        request = AlterPartitionRequest(
            broker_id=state.leader,
            broker_epoch=self.leader.broker_epoch if broker_epoch is None else broker_epoch,
            topics=[TopicData(topic_id=self.topic_id, partitions=[change])],
        )
        controller_id = self.cluster.controller.broker_id
        answer = await self.cluster.send(controller_id, ApiKey.ALTER_PARTITION, 3, request)
        codes = [ErrorCode(item.error_code) for topic in answer.topics for item in topic.partitions]
        return ErrorCode(answer.error_code), codes

    async def stored(self) -> PartitionState:
        """Return the partition state of t-0 in the store."""
        data, stat = await self.leader.store.get(znodes.partition_state_path("t", 0))
        return znodes.decode_partition_state("t", 0, data, stat.version)

    def cut_off_followers(self) -> None:
        """Stop the followers' fetches of t-0, without stopping the followers."""
        for broker_id in ALL:
            replicas = self.cluster.brokers[broker_id].replicas
            if broker_id != self.state.leader and replicas.fetching is not None:
                replicas.fetching.stop(self.partition(broker_id))

    def _address(self, broker_epoch: int | None) -> effects.BrokerEpoch:
        return effects.BrokerEpoch(
            self.state.leader, self.leader.broker_epoch if broker_epoch is None else broker_epoch
        )

    def _epoch(self, controller_epoch: int | None) -> int:
        return self.controller_epoch if controller_epoch is None else controller_epoch


@pytest.fixture
async def known(tmp_path: Path) -> AsyncIterator[Known]:
    cluster = EmbeddedCluster(tmp_path, settings={"replica.lag.time.max.ms": "60000"})
    await cluster.start()
    assert await cluster.create_topic("t") == ErrorCode.NONE
    leader = cluster.leader("t")
    assert await cluster.produce(leader, "t", b"first") == ErrorCode.NONE
    data, stat = await cluster.brokers[leader].store.get(znodes.partition_state_path("t", 0))
    yield Known(cluster, znodes.decode_partition_state("t", 0, data, stat.version))
    await cluster.stop()


async def test_requests_from_a_replaced_controller_are_rejected(known: Known) -> None:
    before, old = known.belief(), known.controller_epoch - 1
    later = known.state._replace(leader=known.follower, leader_epoch=known.state.leader_epoch + 1)
    stale = ErrorCode.STALE_CONTROLLER_EPOCH
    assert await known.lead(later, controller_epoch=old) == (stale, [stale])
    assert await known.update(controller_epoch=old) == stale
    assert await known.stop(later.leader_epoch, controller_epoch=old) == (stale, [])
    assert known.belief() == before
    assert set(known.leader.metadata.brokers) == set(ALL)


async def test_requests_with_an_earlier_broker_epoch_are_rejected(known: Known) -> None:
    before, earlier = known.belief(), known.leader.broker_epoch - 1
    later = known.state._replace(leader=known.follower, leader_epoch=known.state.leader_epoch + 1)
    stale = ErrorCode.STALE_BROKER_EPOCH
    assert await known.lead(later, broker_epoch=earlier) == (stale, [stale])
    assert await known.update(broker_epoch=earlier) == stale
    assert await known.stop(later.leader_epoch, broker_epoch=earlier) == (stale, [])
    assert known.belief() == before
    assert set(known.leader.metadata.brokers) == set(ALL)


async def test_requests_without_a_higher_leader_epoch_are_rejected(known: Known) -> None:
    third = known.state._replace(leader_epoch=3, partition_epoch=known.state.partition_epoch + 1)
    assert await known.lead(third) == (ErrorCode.NONE, [ErrorCode.NONE])
    before = known.belief()
    assert before[1] == 3
    for epoch in (2, 3):
        other = third._replace(leader=known.follower, leader_epoch=epoch, partition_epoch=9)
        assert await known.lead(other) == (ErrorCode.NONE, [ErrorCode.STALE_CONTROLLER_EPOCH])
    assert await known.stop(2) == (ErrorCode.NONE, [ErrorCode.FENCED_LEADER_EPOCH])
    assert known.belief() == before


async def test_the_controller_accepts_isr_changes_only_for_the_current_partition_epoch(known: Known) -> None:
    state = known.state
    before = await known.stored()
    none = ErrorCode.NONE
    assert await known.alter(broker_epoch=known.leader.broker_epoch - 1) == (ErrorCode.STALE_BROKER_EPOCH, [])
    assert await known.alter(leader_epoch=state.leader_epoch - 1) == (none, [ErrorCode.FENCED_LEADER_EPOCH])
    assert await known.alter(partition_epoch=state.partition_epoch - 1) == (
        none,
        [ErrorCode.INVALID_UPDATE_VERSION],
    )
    assert await known.stored() == before
    assert await known.alter() == (none, [none])
    assert (await known.stored()).isr == (state.leader,)


async def test_a_replaced_controller_cannot_write(known: Known) -> None:
    term = known.cluster.epoch()
    assert term is not None
    nodes = ControllerNodes(known.leader.store, MalformedNodes())
    write = effects.StateWrite(T0, known.state._replace(leader=known.follower), known.state.partition_epoch)
    with pytest.raises(Deposed):
        await nodes.write_states(effects.WriteStates(1, (write,), term.epoch_znode_version - 1))
    with pytest.raises(Deposed):
        await nodes.delete_topics(["t"], term.epoch_znode_version - 1)
    assert await known.stored() == known.state


async def test_a_controller_without_a_session_does_not_allocate_producer_ids(
    known: Known, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The broker that requested the ids then retries with the new controller."""
    controller = known.cluster.controller

    async def over(path: str, watch: object = None) -> None:
        raise SessionExpired

    monkeypatch.setattr(controller.store, "get", over)
    request = AllocateProducerIdsRequest(broker_id=known.follower, broker_epoch=0)
    answer = await known.cluster.send(controller.broker_id, ApiKey.ALLOCATE_PRODUCER_IDS, 0, request)
    assert answer.error_code == ErrorCode.NOT_CONTROLLER
    monkeypatch.undo()


async def test_fetches_with_a_different_leader_epoch_are_rejected(known: Known) -> None:
    known.cut_off_followers()
    third = known.state._replace(leader_epoch=3, partition_epoch=known.state.partition_epoch + 1)
    assert await known.lead(third) == (ErrorCode.NONE, [ErrorCode.NONE])
    before = known.held.high_watermark
    assert await known.cluster.produce(known.state.leader, "t", b"second", acks=1) == ErrorCode.NONE
    end = known.held.log.log_end_offset
    for epoch, code in ((2, ErrorCode.FENCED_LEADER_EPOCH), (4, ErrorCode.UNKNOWN_LEADER_EPOCH)):
        for broker_id in ALL:
            if broker_id != known.state.leader:
                assert await fetch(known, broker_id, epoch, end) == code
    assert known.held.high_watermark == before


async def fetch(known: Known, broker_id: int, leader_epoch: int, offset: int) -> ErrorCode:
    """Fetch from the leader with this leader epoch, and return the error code."""
    partition = FetchPartition(
        partition=0, current_leader_epoch=leader_epoch, fetch_offset=offset, partition_max_bytes=1000
    )
    request = FetchRequest(
        replica_id=broker_id,
        replica_state=ReplicaState(replica_id=broker_id),
        max_wait_ms=0,
        min_bytes=0,
        max_bytes=1000,
        topics=[FetchTopic(topic="t", topic_id=UUID(int=0), partitions=[partition])],
    )
    answer = await known.cluster.send(known.state.leader, ApiKey.FETCH, 12, request)
    return ErrorCode(answer.responses[0].partitions[0].error_code)


async def test_acks_all_producers_and_consumers_wait_for_every_in_sync_replica(known: Known) -> None:
    known.cut_off_followers()
    leader = known.state.leader
    answer = await known.cluster.produce(leader, "t", b"second", timeout_ms=300)
    assert answer == ErrorCode.REQUEST_TIMED_OUT
    assert await known.cluster.values(leader, "t") == [b"first"]
