"""CreateTopics and DeleteTopics in a cluster: several topics in a request, timeouts, and offline brokers."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Sequence
from pathlib import Path

import pytest

from kafka_compat.coordination.nodes import znodes
from kafka_compat.coordination.store.journal import Journal
from kafka_compat.coordination.store.metadata_store import Operation, Stat
from kafka_compat.errors import ErrorCode
from kafka_compat.protocol.api_keys import ApiKey
from kafka_compat.protocol.messages.create_topics import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
)
from kafka_compat.protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from tests.cluster.embedded import EmbeddedCluster, until
from tests.quorum.cluster import QuorumCluster
from tests.quorum.kinds import KINDS


@pytest.fixture(params=KINDS, ids=lambda kind: kind.__name__)
async def cluster(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[EmbeddedCluster]:
    cluster: EmbeddedCluster = request.param(tmp_path)
    await cluster.start()
    yield cluster
    await cluster.stop()


async def create(
    cluster: EmbeddedCluster, topics: Sequence[CreatableTopic], timeout_ms: int = 10_000
) -> list[ErrorCode]:
    request = CreateTopicsRequest(topics=list(topics), timeout_ms=timeout_ms)
    response = await cluster.send(cluster.controller.broker_id, ApiKey.CREATE_TOPICS, 7, request)
    return [ErrorCode(topic.error_code) for topic in response.topics]


async def test_many_topics_are_created_in_one_request(cluster: EmbeddedCluster) -> None:
    names = [f"topic-{number}" for number in range(30)]
    wanted = [CreatableTopic(name=name, num_partitions=2, replication_factor=3) for name in names]
    assert await create(cluster, wanted) == [ErrorCode.NONE] * len(names)
    request = DeleteTopicsRequest(topics=[DeleteTopicState(name=name) for name in names], timeout_ms=10_000)
    response = await cluster.send(cluster.controller.broker_id, ApiKey.DELETE_TOPICS, 6, request)
    assert {topic.error_code for topic in response.responses} == {ErrorCode.NONE}
    await until(lambda: all(not broker.metadata.topics for broker in cluster.brokers.values()))


async def test_many_topics_share_the_syncs_of_the_journal(
    cluster: EmbeddedCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each change of a topic waits for a few syncs. On a slow disk, one topic after the other would take
    seconds per hundred topics.
    """
    names = [f"topic-{number}" for number in range(60)]
    syncs = 0
    append = Journal.append

    def counted(journal: Journal, lines: bytes) -> None:
        nonlocal syncs
        syncs += 1
        append(journal, lines)

    async def count(key: ApiKey, version: int, request: object) -> tuple[set[int], int]:
        nonlocal syncs
        syncs = 0
        response = await cluster.send(cluster.controller.broker_id, key, version, request)
        answers = getattr(response, {"CREATE_TOPICS": "topics", "DELETE_TOPICS": "responses"}[key.name])
        assert len(answers) == len(names)
        return {answer.error_code for answer in answers}, syncs

    monkeypatch.setattr(Journal, "append", counted)
    wanted = [CreatableTopic(name=name, num_partitions=2, replication_factor=1) for name in names]
    create_request = CreateTopicsRequest(topics=wanted, timeout_ms=10_000)
    codes, syncs_to_create = await count(ApiKey.CREATE_TOPICS, 7, create_request)
    assert codes == {ErrorCode.NONE}
    delete_request = DeleteTopicsRequest(
        topics=[DeleteTopicState(name=name) for name in names], timeout_ms=10_000
    )
    codes, syncs_to_delete = await count(ApiKey.DELETE_TOPICS, 6, delete_request)
    assert codes == {ErrorCode.NONE}
    assert syncs_to_create < 20
    assert syncs_to_delete < 30


async def delete(cluster: EmbeddedCluster, name: str) -> ErrorCode:
    request = DeleteTopicsRequest(topics=[DeleteTopicState(name=name)], timeout_ms=10_000)
    response = await cluster.send(cluster.controller.broker_id, ApiKey.DELETE_TOPICS, 6, request)
    return ErrorCode(response.responses[0].error_code)


async def test_a_deleted_topic_can_be_created_again_immediately(cluster: EmbeddedCluster) -> None:
    wanted = CreatableTopic(name="t", num_partitions=3, replication_factor=3)
    for _ in range(20):
        assert await create(cluster, [wanted]) == [ErrorCode.NONE]
        assert await delete(cluster, "t") == ErrorCode.NONE


async def test_a_deletion_succeeds_while_a_replica_is_offline(
    cluster: EmbeddedCluster,
) -> None:
    wanted = CreatableTopic(name="t", num_partitions=3, replication_factor=3)
    assert await create(cluster, [wanted]) == [ErrorCode.NONE]
    away = next(broker_id for broker_id in cluster.brokers if broker_id != cluster.controller.broker_id)
    await cluster.stop_broker(away)
    await until(lambda: away not in cluster.controller.metadata.brokers)
    assert await delete(cluster, "t") == ErrorCode.NONE
    again = CreatableTopic(name="t", num_partitions=3, replication_factor=2)
    assert await create(cluster, [again]) == [ErrorCode.TOPIC_ALREADY_EXISTS]


async def test_colliding_names_in_one_request_are_rejected(cluster: EmbeddedCluster) -> None:
    wanted = [CreatableTopic(name=name, num_partitions=1, replication_factor=1) for name in ("a.b", "a_b")]
    assert await create(cluster, wanted) == [ErrorCode.NONE, ErrorCode.INVALID_TOPIC_EXCEPTION]


@pytest.mark.parametrize("settings_go", [True, False])
async def test_a_topic_is_created_despite_a_concurrent_change_of_its_settings_node(
    cluster: EmbeddedCluster, monkeypatch: pytest.MonkeyPatch, settings_go: bool
) -> None:
    """This happens when the deletion of a topic with the same name completes at that moment."""
    path = znodes.config_path("topics", "t")
    other = cluster.brokers[1].store.session
    if settings_go:
        await other.create(path, znodes.encode_config({"retention.ms": "1"}))
    store = cluster.controller.store
    multi = store.multi

    async def at_first(operations: Sequence[Operation]) -> list[str | Stat | None]:
        monkeypatch.setattr(store, "multi", after_another)
        return await multi(operations)

    async def after_another(operations: Sequence[Operation]) -> list[str | Stat | None]:
        monkeypatch.setattr(store, "multi", multi)
        await (other.delete(path) if settings_go else other.create(path))
        return await multi(operations)

    monkeypatch.setattr(store, "multi", at_first if settings_go else after_another)
    config = CreatableTopicConfig(name="retention.ms", value="7200000")
    wanted = CreatableTopic(name="t", num_partitions=1, replication_factor=3, configs=[config])
    assert await create(cluster, [wanted]) == [ErrorCode.NONE]
    data, _ = await other.get(path)
    assert znodes.decode_config(path, data) == {"retention.ms": "7200000"}


async def test_a_topic_can_have_replicas_on_offline_brokers(cluster: EmbeddedCluster) -> None:
    """As in Apache Kafka with ZooKeeper, the topic is created, and gets a leader once one of its brokers is
    alive. On a quorum, the response does not wait for leaders on brokers that are offline.
    """
    away = next(broker_id for broker_id in cluster.brokers if broker_id != cluster.controller.broker_id)
    other = cluster.controller.broker_id
    await cluster.stop_broker(away)
    await until(lambda: away not in cluster.controller.metadata.brokers)

    def assigned(name: str, *brokers: int) -> CreatableTopic:
        assignment = CreatableReplicaAssignment(partition_index=0, broker_ids=list(brokers))
        return CreatableTopic(name=name, num_partitions=-1, replication_factor=-1, assignments=[assignment])

    assert await create(cluster, [assigned("half", away, other)]) == [ErrorCode.NONE]
    assert cluster.leader("half") == other
    begun = time.monotonic()
    expected = ErrorCode.NONE if isinstance(cluster, QuorumCluster) else ErrorCode.REQUEST_TIMED_OUT
    assert await create(cluster, [assigned("nobody", away)], 300) == [expected]
    assert time.monotonic() - begun < 5
    assert await create(cluster, [assigned("nobody", away)]) == [ErrorCode.TOPIC_ALREADY_EXISTS]
    await cluster.start_broker(away)
    await until(lambda: cluster.leader("nobody") == away)
    await until(lambda: cluster.isr("half") == {away, other})


async def test_replicas_are_spread_over_racks(tmp_path: Path) -> None:
    racks = {1: "a", 2: "a", 3: "b"}
    cluster = EmbeddedCluster(tmp_path, racks=racks)
    await cluster.start()
    try:
        wanted = [CreatableTopic(name="t", num_partitions=12, replication_factor=2)]
        assert await create(cluster, wanted) == [ErrorCode.NONE]
        for partition in cluster.controller.metadata.topics["t"].partitions:
            assert {racks[broker_id] for broker_id in partition.replicas} == {"a", "b"}
    finally:
        await cluster.stop()


async def test_explicit_assignments_are_required_if_only_some_brokers_have_racks(tmp_path: Path) -> None:
    cluster = EmbeddedCluster(tmp_path, racks={1: "a"})
    await cluster.start()
    try:
        wanted = CreatableTopic(name="t", num_partitions=1, replication_factor=1)
        assert await create(cluster, [wanted]) == [ErrorCode.UNKNOWN_SERVER_ERROR]
        assert await cluster.create_topic("t", assignment=(1, 3)) == ErrorCode.NONE
    finally:
        await cluster.stop()
