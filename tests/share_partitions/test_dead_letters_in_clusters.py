"""Dead letters in a cluster of three brokers: topics led by other brokers, created topics, and restarts."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from uuid import UUID

import pytest

from kafka_compat.protocol.api_keys import ApiKey
from kafka_compat.protocol.messages.find_coordinator import FindCoordinatorRequest
from kafka_compat.protocol.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from kafka_compat.protocol.messages.share_acknowledge import (
    AcknowledgePartition,
    AcknowledgeTopic,
    ShareAcknowledgeRequest,
)
from kafka_compat.protocol.messages.share_fetch import (
    AcknowledgementBatch,
    FetchPartition,
    FetchTopic,
    ShareFetchRequest,
)
from kafka_compat.protocol.messages.share_group_heartbeat import ShareGroupHeartbeatRequest
from kafka_compat.share_partitions.led_share_partition import LedSharePartition
from tests.cluster.embedded import EmbeddedCluster, until

TOPIC, LETTERS, GROUP = "a", "dlq.a", "g"
SETTINGS = {
    "kafka.compat.share.version": "2",
    "group.share.assignment.interval.ms": "0",
    "group.share.min.heartbeat.interval.ms": "100",
    "share.coordinator.state.topic.num.partitions": "3",
    "share.coordinator.state.topic.replication.factor": "3",
    "share.coordinator.state.topic.min.isr": "1",
    "errors.deadletterqueue.auto.create.topics.enable": "true",
}
MEMBER = "AAAAAAAAAAAAAAAAAAAAAQ"
GROUP_RESOURCE, REJECT = 32, 3
_JOIN_S = 60


class Cluster(EmbeddedCluster):
    """Three brokers, and one member of a share group. Broker 1 leads the group's topic."""

    async def begin(self) -> None:
        """Create the topic, produce one record, and join."""
        await self.create_topic(TOPIC, assignment=[1])
        await until(lambda: self.leader(TOPIC) == 1)
        settings = {
            "share.auto.offset.reset": "earliest",
            "errors.deadletterqueue.topic.name": LETTERS,
            "errors.deadletterqueue.copy.record.enable": "true",
        }
        configs = [AlterableConfig(name=name, value=value) for name, value in settings.items()]
        resource = AlterConfigsResource(resource_type=GROUP_RESOURCE, resource_name=GROUP, configs=configs)
        request = IncrementalAlterConfigsRequest(resources=[resource])
        answer = await self.send(self.controller.broker_id, ApiKey.INCREMENTAL_ALTER_CONFIGS, 1, request)
        assert not answer.responses[0].error_code
        assert not await self.produce(1, TOPIC, b"first")
        await until(self._joins, _JOIN_S)

    async def _joins(self) -> bool:
        find = FindCoordinatorRequest(key_type=0, coordinator_keys=[GROUP])
        (found,) = (await self.send(1, ApiKey.FIND_COORDINATOR, 4, find)).coordinators
        if found.error_code or found.node_id not in self.brokers:
            return False
        request = ShareGroupHeartbeatRequest(
            group_id=GROUP, member_id=MEMBER, member_epoch=0, subscribed_topic_names=[TOPIC]
        )
        answer = await self.send(found.node_id, ApiKey.SHARE_GROUP_HEARTBEAT, 1, request)
        return not answer.error_code

    @property
    def _topic_id(self) -> UUID:
        return self.brokers[1].metadata.topics[TOPIC].topic_id

    async def acquire(self) -> list[tuple[int, int]]:
        """Open a session, and return the ranges that it acquires."""
        request = ShareFetchRequest(
            group_id=GROUP,
            member_id=MEMBER,
            max_wait_ms=200,
            min_bytes=1,
            max_records=100,
            batch_size=100,
            topics=[FetchTopic(topic_id=self._topic_id, partitions=[FetchPartition(partition_index=0)])],
        )
        answer = await self.send(1, ApiKey.SHARE_FETCH, 2, request)
        return [
            (each.first_offset, each.last_offset)
            for topic in answer.responses
            for partition in topic.partitions
            for each in partition.acquired_records
        ]

    async def reject(self) -> None:
        """Acquire the only record, and reject it."""
        await until(self.acquire, _JOIN_S)
        batch = AcknowledgementBatch(first_offset=0, last_offset=0, acknowledge_types=[REJECT])
        partition = AcknowledgePartition(partition_index=0, acknowledgement_batches=[batch])
        request = ShareAcknowledgeRequest(
            group_id=GROUP,
            member_id=MEMBER,
            share_session_epoch=1,
            topics=[AcknowledgeTopic(topic_id=self._topic_id, partitions=[partition])],
        )
        answer = await self.send(1, ApiKey.SHARE_ACKNOWLEDGE, 2, request)
        assert not answer.error_code
        assert not answer.responses[0].partitions[0].error_code

    async def letters(self) -> list[bytes]:
        """Return the values of the dead letters, or nothing if the topic has no leader."""
        leader = self.leader(LETTERS)
        return await self.values(leader, LETTERS) if leader > 0 else []

    @property
    def led(self) -> LedSharePartition:
        """The share-partition."""
        shares = self.brokers[1].services.share_partitions
        found = shares.get(GROUP, self._topic_id, 0)
        assert found is not None
        return found

    def is_archived(self) -> bool:
        machine = self.led.machine
        return machine is not None and machine.start_offset == 1 and self.led.is_settled


@pytest.fixture
async def cluster(tmp_path: Path) -> AsyncIterator[Cluster]:
    running = Cluster(tmp_path, settings=SETTINGS)
    await running.start()
    yield running
    await running.stop()


async def test_dead_letters_are_produced_to_another_broker(cluster: Cluster) -> None:
    enabled = {"errors.deadletterqueue.group.enable": "true"}
    await cluster.create_topic(LETTERS, assignment=[2], configs=enabled)
    await cluster.begin()
    await cluster.reject()
    await until(cluster.is_archived)
    assert await cluster.letters() == [b"first"]


async def test_settings_of_a_topic_without_a_local_replica_are_respected(cluster: Cluster) -> None:
    await cluster.create_topic(LETTERS, assignment=[2])
    await cluster.begin()
    await cluster.reject()
    await until(cluster.is_archived)
    assert await cluster.letters() == []


async def test_a_missing_topic_is_created(cluster: Cluster) -> None:
    await cluster.begin()
    await cluster.reject()
    await until(cluster.is_archived)
    assert await cluster.letters() == [b"first"]
    overrides = cluster.brokers[cluster.leader(LETTERS)].overrides(LETTERS)
    assert overrides["errors.deadletterqueue.group.enable"] == "true"
    assert overrides["message.timestamp.type"] == "CreateTime"


async def test_dead_letters_wait_for_a_leader_that_restarts(cluster: Cluster) -> None:
    enabled = {"errors.deadletterqueue.group.enable": "true"}
    await cluster.create_topic(LETTERS, assignment=[2], configs=enabled)
    await cluster.begin()
    await until(cluster.acquire, _JOIN_S)
    await cluster.stop_broker(2)
    await cluster.reject()
    assert not cluster.led.is_settled
    await cluster.start_broker(2)
    await until(cluster.is_archived)
    assert await cluster.letters() == [b"first"]


async def test_interrupted_dead_letters_are_produced_after_a_restart(cluster: Cluster) -> None:
    enabled = {"errors.deadletterqueue.group.enable": "true"}
    await cluster.create_topic(LETTERS, assignment=[2], configs=enabled)
    await cluster.begin()
    await until(cluster.acquire, _JOIN_S)
    await cluster.stop_broker(2)
    await cluster.reject()
    assert not cluster.led.is_settled
    await cluster.stop_broker(1)
    await cluster.start_broker(1)
    await cluster.start_broker(2)
    await until(lambda: cluster.leader(TOPIC) == 1)

    async def is_loaded() -> bool:
        # Each fetch acquires nothing, but makes the leader read the state.
        return not await cluster.acquire() and await cluster.letters() != []

    await until(is_loaded, _JOIN_S)
    await until(cluster.is_archived)
    assert await cluster.letters() == [b"first"]
