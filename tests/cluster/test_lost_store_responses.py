"""Admin requests when the controller loses its ZooKeeper connection in the middle: they complete, and the
client gets a response.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from kafka_compat.coordination.nodes import znodes
from kafka_compat.errors import ErrorCode
from kafka_compat.protocol.api_keys import ApiKey
from kafka_compat.protocol.messages.alter_client_quotas import (
    AlterClientQuotasRequest,
    EntityData,
    EntryData,
    OpData,
)
from kafka_compat.protocol.messages.create_partitions import CreatePartitionsRequest, CreatePartitionsTopic
from kafka_compat.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest
from kafka_compat.protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from kafka_compat.protocol.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from tests.cluster.embedded import EmbeddedBroker, EmbeddedCluster, until
from tests.coordination.losing_answers import LosingAnswers


@pytest.fixture
async def cluster(tmp_path: Path) -> AsyncIterator[EmbeddedCluster]:
    cluster = EmbeddedCluster(tmp_path)
    await cluster.start()
    await cluster.create_topic("there", partitions=1)
    yield cluster
    await cluster.stop()


class Asked(NamedTuple):
    """A request, and functions that return the error code of its response and whether a broker has applied
    it.
    """

    key: ApiKey
    version: int
    request: Any
    error_code: Callable[[Any], int]
    is_done: Callable[[EmbeddedBroker], bool]


def requests() -> Iterator[Asked]:
    yield Asked(
        ApiKey.CREATE_TOPICS,
        7,
        CreateTopicsRequest(
            topics=[CreatableTopic(name="new", num_partitions=1, replication_factor=3)], timeout_ms=10_000
        ),
        lambda answer: answer.topics[0].error_code,
        lambda broker: "new" in broker.metadata.topics,
    )
    yield Asked(
        ApiKey.CREATE_PARTITIONS,
        3,
        CreatePartitionsRequest(
            topics=[CreatePartitionsTopic(name="there", count=3, assignments=None)], timeout_ms=10_000
        ),
        lambda answer: answer.results[0].error_code,
        lambda broker: len(broker.metadata.topics["there"].partitions) == 3,
    )
    yield Asked(
        ApiKey.INCREMENTAL_ALTER_CONFIGS,
        1,
        IncrementalAlterConfigsRequest(
            resources=[
                AlterConfigsResource(
                    resource_type=2,
                    resource_name="there",
                    configs=[AlterableConfig(name="retention.ms", value="7200000")],
                )
            ]
        ),
        lambda answer: answer.responses[0].error_code,
        lambda broker: broker.overrides("there") == {"retention.ms": "7200000"},
    )
    yield Asked(
        ApiKey.ALTER_CLIENT_QUOTAS,
        1,
        AlterClientQuotasRequest(
            entries=[
                EntryData(
                    entity=[EntityData(entity_type="client-id", entity_name="c")],
                    ops=[OpData(key="producer_byte_rate", value=1e6)],
                )
            ]
        ),
        lambda answer: answer.entries[0].error_code,
        lambda broker: True,
    )
    yield Asked(
        ApiKey.DELETE_TOPICS,
        6,
        DeleteTopicsRequest(topics=[DeleteTopicState(name="there")], timeout_ms=10_000),
        lambda answer: answer.responses[0].error_code,
        lambda broker: "there" not in broker.metadata.topics,
    )


@pytest.mark.parametrize("lost", [[True], [False], [True, False, True]], ids=["response", "request", "both"])
@pytest.mark.parametrize("asked", list(requests()), ids=lambda asked: asked.key.name)
async def test_a_request_succeeds_even_if_a_store_request_or_response_is_lost(
    cluster: EmbeddedCluster, asked: Asked, lost: list[bool]
) -> None:
    current = cluster.controller.store
    session = LosingAnswers(current.session)
    current.session = session
    session.lost = list(lost)
    answer = await cluster.send(cluster.controller.broker_id, asked.key, asked.version, asked.request)
    assert asked.error_code(answer) == ErrorCode.NONE
    assert not session.lost
    await until(lambda: all(asked.is_done(broker) for broker in cluster.brokers.values()))


async def test_a_topic_created_by_another_client_is_not_mistaken_for_the_brokers_own(
    cluster: EmbeddedCluster,
) -> None:
    """A different client creates the topic while the controller is disconnected."""
    current, other = cluster.controller.store, cluster.tree.connect()

    class Meanwhile(LosingAnswers):
        async def multi(self, operations: Any) -> Any:
            if self.lost:
                data = operations[1].data.replace(b'"topic_id":"', b'"topic_id":"x')
                assert data != operations[1].data
                await other.create(znodes.topic_path("new"), data)
            return await super().multi(operations)

    session = Meanwhile(current.session)
    current.session = session
    session.lost = [False]
    assert await cluster.create_topic("new") == ErrorCode.TOPIC_ALREADY_EXISTS
