"""Three brokers in one process: topics, replication, broker failures, controllers and sessions. The metadata
store is embedded or, in campaigns, that of a quorum.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from kafka_compat.cluster.broker_client import BrokerClient
from kafka_compat.coordination.nodes import znodes
from kafka_compat.coordination.store.metadata_store import ANY_VERSION
from kafka_compat.errors import ErrorCode
from kafka_compat.protocol.api_keys import ApiKey
from kafka_compat.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest
from kafka_compat.protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from kafka_compat.protocol.messages.describe_cluster import DescribeClusterRequest
from kafka_compat.protocol.messages.describe_topic_partitions import (
    DescribeTopicPartitionsRequest,
    TopicRequest,
)
from kafka_compat.protocol.messages.elect_leaders import ElectLeadersRequest
from kafka_compat.protocol.messages.find_coordinator import FindCoordinatorRequest
from kafka_compat.protocol.messages.init_producer_id import InitProducerIdRequest
from kafka_compat.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from tests.cluster.embedded import SETTLE_S, EmbeddedCluster, until, until_missing
from tests.quorum.cluster import QuorumCluster
from tests.quorum.kinds import KINDS

ALL = {1, 2, 3}


@pytest.fixture(params=KINDS, ids=lambda kind: kind.__name__)
async def cluster(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[EmbeddedCluster]:
    cluster: EmbeddedCluster = request.param(tmp_path)
    await cluster.start()
    yield cluster
    await cluster.stop()


async def test_acknowledged_records_survive_the_loss_of_their_leader(cluster: EmbeddedCluster) -> None:
    assert await cluster.create_topic("t") == ErrorCode.NONE
    first = cluster.leader("t")
    for number in range(5):
        assert await cluster.produce(first, "t", b"%d" % number) == ErrorCode.NONE
    await cluster.stop_broker(first, controlled=False)
    await until(lambda: cluster.leader("t") not in (-1, first))
    second = cluster.leader("t")
    assert await cluster.produce(second, "t", b"5") == ErrorCode.NONE
    assert await cluster.values(second, "t") == [b"%d" % number for number in range(6)]
    assert first not in cluster.isr("t")

    await cluster.start_broker(first)
    await until(lambda: cluster.isr("t") == ALL)
    logs = [broker.replicas.get("t", 0) for broker in cluster.brokers.values()]
    assert {held.log.log_end_offset for held in logs if held is not None} == {6}


async def test_a_preferred_election_restores_the_preferred_leader(cluster: EmbeddedCluster) -> None:
    await cluster.create_topic("t")
    first = cluster.leader("t")
    await cluster.stop_broker(first)
    await until(lambda: cluster.leader("t") not in (-1, first))
    await cluster.start_broker(first)
    await until(lambda: cluster.isr("t") == ALL)
    request = ElectLeadersRequest(topic_partitions=None)
    response = await cluster.send(cluster.controller.broker_id, ApiKey.ELECT_LEADERS, 2, request)
    assert response.error_code == ErrorCode.NONE
    await until(lambda: cluster.leader("t") == first)


async def test_clients_are_not_sent_to_a_leader_that_is_not_registered(cluster: EmbeddedCluster) -> None:
    await cluster.create_topic("t")
    first = cluster.leader("t")
    other = next(iter(ALL - {first}))
    # A new controller announces the live brokers before the partitions. Between both requests, the leader is
    # unknown.
    del cluster.brokers[other].metadata.brokers[first]
    wanted = MetadataRequest(topics=[MetadataRequestTopic(name="t")])
    response = await cluster.send(other, ApiKey.METADATA, 12, wanted)
    assert first not in {broker.node_id for broker in response.brokers}
    (partition,) = response.topics[0].partitions
    assert (partition.error_code, partition.leader_id) == (ErrorCode.LEADER_NOT_AVAILABLE, -1)
    described = await cluster.send(
        other,
        ApiKey.DESCRIBE_TOPIC_PARTITIONS,
        0,
        DescribeTopicPartitionsRequest(topics=[TopicRequest(name="t")]),
    )
    (partition,) = described.topics[0].partitions
    assert (partition.error_code, partition.leader_id) == (ErrorCode.LEADER_NOT_AVAILABLE, -1)


@pytest.mark.parametrize(
    ("api_key", "version", "request_message"),
    [
        (ApiKey.METADATA, 12, MetadataRequest(topics=[])),
        (ApiKey.DESCRIBE_CLUSTER, 1, DescribeClusterRequest(endpoint_type=1)),
    ],
)
async def test_a_newly_started_broker_returns_all_brokers_in_metadata(
    cluster: EmbeddedCluster, api_key: ApiKey, version: int, request_message: Any
) -> None:
    """The first response waits for the controller: without any broker in it, librdkafka would forget all
    brokers.
    """
    await cluster.stop_broker(3, controlled=False)
    port = cluster.port(3)
    starting = asyncio.create_task(cluster.start_broker(3))
    response = None
    async with asyncio.timeout(SETTLE_S):
        while response is None:
            client = BrokerClient(
                "127.0.0.1", port, "test"
            )  # the same client would wait before it reconnects
            with contextlib.suppress(ConnectionError):
                response = await client.send(api_key, version, request_message)
            await client.close()
    ids = {broker.node_id if api_key is ApiKey.METADATA else broker.broker_id for broker in response.brokers}
    assert ids == ALL
    await starting


async def test_another_broker_takes_over_from_a_lost_controller(cluster: EmbeddedCluster) -> None:
    await cluster.create_topic("t")
    first = cluster.controller.broker_id
    term = cluster.epoch()
    await cluster.stop_broker(first, controlled=False)
    await until(lambda: any(broker.controller.is_active for broker in cluster.brokers.values()))
    second = cluster.epoch()
    assert term is not None and second is not None
    assert second.controller_epoch == term.controller_epoch + 1
    await until(lambda: len(cluster.controller.metadata.brokers) == 2)
    assert await cluster.create_topic("u", replicas=2) == ErrorCode.NONE
    await until(lambda: cluster.leader("u") >= 0)
    assert await cluster.produce(cluster.leader("u"), "u", b"x") == ErrorCode.NONE


async def test_a_broker_registers_again_after_its_session_expires(cluster: EmbeddedCluster) -> None:
    await cluster.create_topic("t")
    broker = cluster.brokers[cluster.leader("t")]
    epoch = broker.broker_epoch
    await cluster.expire_session(broker.broker_id)
    await until(lambda: broker.broker_epoch > epoch)
    await until(lambda: cluster.leader("t") >= 0)

    # Retry like a client: requests may fail until the controller knows the new registration.
    async def is_produced() -> bool:
        return await cluster.produce(cluster.leader("t"), "t", b"x") == ErrorCode.NONE

    await until(is_produced)
    await until(lambda: cluster.isr("t") == ALL)


async def test_a_deleted_controller_node_causes_an_election(cluster: EmbeddedCluster) -> None:
    before = cluster.epoch()
    await cluster.brokers[1].store.delete(znodes.CONTROLLER, ANY_VERSION)
    await until(
        lambda: any(cluster.epoch(broker) not in (None, before) for broker in cluster.brokers.values())
    )
    await cluster.create_topic("t")
    assert cluster.isr("t") == ALL


async def test_a_controlled_shutdown_keeps_partitions_available(cluster: EmbeddedCluster) -> None:
    await cluster.create_topic("t")
    first = cluster.leader("t")
    leaving = cluster.brokers[first]
    await leaving.stop()
    known = [
        broker.metadata.partition("t", 0)
        for broker_id, broker in cluster.brokers.items()
        if broker_id != first
    ]
    assert all(found is not None and found.leader not in (-1, first) for found in known)
    del cluster.brokers[first]


async def test_a_controller_that_is_shutting_down_notifies_the_new_leaders(
    cluster: EmbeddedCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    await cluster.create_topic("t", 6)
    leaving = cluster.controller
    led = [held.partition for held in leaving.replicas if held.is_leader]
    assert led
    others = [broker for broker in cluster.brokers.values() if broker is not leaving]
    for broker in others:
        orders = broker.membership.orders
        monkeypatch.setattr(orders, "lead_and_follow", partial(_late, orders.lead_and_follow))
    await leaving.shut_down_controlled()
    held = [broker.replicas.get("t", partition) for broker in others for partition in led]
    assert {item.partition for item in held if item is not None and item.is_leader} == set(led)


async def _late(call: Callable[..., Awaitable[Any]], *request: object) -> Any:
    await asyncio.sleep(0.2)  # the request to the brokers is late
    return await call(*request)


async def test_acks_all_requires_min_insync_replicas(cluster: EmbeddedCluster) -> None:
    await cluster.create_topic("t", configs={"min.insync.replicas": "3"})
    leader = cluster.leader("t")
    assert await cluster.produce(leader, "t", b"x") == ErrorCode.NONE
    lost = next(broker_id for broker_id in ALL if broker_id != leader)
    await cluster.stop_broker(lost, controlled=False)
    await until(lambda: cluster.isr("t") == ALL - {lost})
    assert await cluster.produce(cluster.leader("t"), "t", b"y") == ErrorCode.NOT_ENOUGH_REPLICAS
    assert await cluster.produce(cluster.leader("t"), "t", b"z", acks=1) == ErrorCode.NONE


async def test_a_topic_deletion_reaches_every_broker(cluster: EmbeddedCluster) -> None:
    await cluster.create_topic("t")
    request = DeleteTopicsRequest(topics=[DeleteTopicState(name="t")], timeout_ms=10_000)
    response = await cluster.send(cluster.controller.broker_id, ApiKey.DELETE_TOPICS, 6, request)
    assert response.responses[0].error_code == ErrorCode.NONE
    await until(lambda: all(not broker.log_dirs.logs for broker in cluster.brokers.values()))
    # The topic name is available again once the controller has deleted the nodes.
    tree = cluster.brokers[1].store
    await until_missing(tree, znodes.delete_topic_path("t"))
    assert await cluster.create_topic("t") == ErrorCode.NONE


async def test_only_the_controller_creates_topics_except_on_a_quorum(cluster: EmbeddedCluster) -> None:
    other = next(item for item in ALL if item != cluster.controller.broker_id)
    request = CreateTopicsRequest(topics=[CreatableTopic(name="t", num_partitions=1, replication_factor=1)])
    response = await cluster.send(other, ApiKey.CREATE_TOPICS, 7, request)
    is_accepted = isinstance(cluster, QuorumCluster)
    assert response.topics[0].error_code == (ErrorCode.NONE if is_accepted else ErrorCode.NOT_CONTROLLER)


async def test_a_groups_coordinator_moves_with_the_leader_of_its_offsets_partition(
    cluster: EmbeddedCluster,
) -> None:
    request = FindCoordinatorRequest(key_type=0, coordinator_keys=["g"])
    found = {
        (await cluster.send(item, ApiKey.FIND_COORDINATOR, 4, request)).coordinators[0].node_id
        for item in sorted(ALL)
    }
    assert len(found) == 1
    first = found.pop()
    await cluster.stop_broker(first)
    left = next(iter(cluster.brokers))
    moved = await cluster.send(left, ApiKey.FIND_COORDINATOR, 4, request)
    assert moved.coordinators[0].node_id not in (-1, first)


async def test_producer_ids_are_never_reused(cluster: EmbeddedCluster) -> None:
    request = InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=60_000)
    given = [
        (await cluster.send(item, ApiKey.INIT_PRODUCER_ID, 4, request)).producer_id
        for item in (1, 2, 3, 1, 2, 3)
    ]
    assert len(set(given)) == len(given)
    assert min(given) >= 0
