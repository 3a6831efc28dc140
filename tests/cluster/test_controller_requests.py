"""Requests for the controller in a cluster with a quorum: every broker accepts them, and names itself."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from kafka_compat.errors import ErrorCode
from kafka_compat.metadata.cache import BrokerMetadata, MetadataCache
from kafka_compat.protocol.api_keys import ApiKey
from kafka_compat.protocol.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    ReassignablePartition,
    ReassignableTopic,
)
from kafka_compat.protocol.messages.delete_topics import DeleteTopicsRequest
from kafka_compat.protocol.messages.elect_leaders import ElectLeadersRequest, TopicPartitions
from kafka_compat.protocol.messages.list_partition_reassignments import ListPartitionReassignmentsRequest
from kafka_compat.protocol.messages.metadata import MetadataRequest
from kafka_compat.protocol.messages.update_features import FeatureUpdateKey, UpdateFeaturesRequest
from tests.cluster.embedded import until
from tests.quorum.cluster import QuorumCluster, patient_cluster


@pytest.fixture
async def cluster(tmp_path: Path) -> AsyncIterator[QuorumCluster]:
    async with patient_cluster(tmp_path) as running:
        yield running


def _other(cluster: QuorumCluster) -> int:
    """Return a broker that is not the controller."""
    return next(each for each, broker in cluster.brokers.items() if not broker.controller.is_active)


def test_a_broker_of_a_quorum_names_itself_once_it_knows_a_controller() -> None:
    metadata = MetadataCache("c", 1)
    metadata.serves_for_controller = True
    assert metadata.controller_for_clients == -1
    change = metadata.change()
    change.set_controller(2)
    change.publish()
    assert metadata.controller_for_clients == 2
    change = metadata.change()
    change.set_brokers({each: BrokerMetadata(each, {}, None) for each in (1, 2)})
    change.publish()
    assert metadata.controller_for_clients == 1
    metadata.serves_for_controller = False
    assert metadata.controller_for_clients == 2


async def test_every_broker_of_a_quorum_accepts_the_requests_for_the_controller(
    cluster: QuorumCluster,
) -> None:
    for broker_id in cluster.brokers:
        found = await cluster.send(broker_id, ApiKey.METADATA, 9, MetadataRequest(topics=[]))
        assert found.controller_id == broker_id
    other = _other(cluster)
    created = await cluster.brokers[other].services.topics.create(
        "orders", assignments={0: (1, 2)}, timeout_ms=60_000
    )
    assert created.partitions[0].replicas == (1, 2)

    move = ReassignablePartition(partition_index=0, replicas=[2, 3])
    moves = [ReassignableTopic(name="orders", partitions=[move])]
    request = AlterPartitionReassignmentsRequest(topics=moves, timeout_ms=60_000)
    moved = await cluster.send(other, ApiKey.ALTER_PARTITION_REASSIGNMENTS, 0, request)
    assert (moved.error_code, moved.responses[0].partitions[0].error_code) == (0, 0)
    listing = ListPartitionReassignmentsRequest(topics=None)
    listed = await cluster.send(other, ApiKey.LIST_PARTITION_REASSIGNMENTS, 0, listing)
    assert listed.error_code == ErrorCode.NONE

    partitions = [TopicPartitions(topic="missing", partitions=[0])]
    election = ElectLeadersRequest(election_type=0, topic_partitions=partitions, timeout_ms=60_000)
    for version in (0, 2):
        elected = await cluster.send(other, ApiKey.ELECT_LEADERS, version, election)
        (result,) = elected.replica_election_results[0].partition_result
        assert result.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION

    update = FeatureUpdateKey(feature="group.version", max_version_level=0, upgrade_type=2)
    features = UpdateFeaturesRequest(feature_updates=[update])
    changed = await cluster.send(other, ApiKey.UPDATE_FEATURES, 2, features)
    assert changed.error_code == ErrorCode.NONE
    brokers = cluster.brokers.values()
    await until(lambda: all(each.metadata.feature_level("group.version") == 0 for each in brokers))

    deletion = DeleteTopicsRequest(topic_names=["orders"], timeout_ms=60_000)
    deleted = await cluster.send(other, ApiKey.DELETE_TOPICS, 5, deletion)
    assert deleted.responses[0].error_code == ErrorCode.NONE


async def test_a_forwarded_request_waits_for_the_next_controller(cluster: QuorumCluster) -> None:
    other = _other(cluster)
    former = next(each for each, broker in cluster.brokers.items() if broker.controller.is_active)
    listing = ListPartitionReassignmentsRequest(topics=None)
    stopping = asyncio.create_task(cluster.stop_broker(former))
    answers = [await cluster.send(other, ApiKey.LIST_PARTITION_REASSIGNMENTS, 0, listing)]
    await stopping
    answers.append(await cluster.send(other, ApiKey.LIST_PARTITION_REASSIGNMENTS, 0, listing))
    assert [answer.error_code for answer in answers] == [ErrorCode.NONE, ErrorCode.NONE]


async def test_the_creation_of_a_topic_does_not_wait_for_leaders_on_brokers_that_have_died(
    tmp_path: Path,
) -> None:
    cluster = QuorumCluster(tmp_path, count=1, controllers=1)
    await cluster.start()
    broker = cluster.brokers[1]
    await until(lambda: broker.metadata.controller_id == 1)
    assigned = {0: (1,), 1: (9,)}
    created = await broker.services.topics.create("orders", assignments=assigned, timeout_ms=60_000)
    assert [partition.replicas for partition in created.partitions] == [(1,), (9,)]
    await cluster.stop()
