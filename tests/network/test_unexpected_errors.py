"""Unexpected errors in handlers are returned as the API's error response, and the connection stays open."""

from __future__ import annotations

import asyncio
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from kafka_compat.coordination.nodes import znodes
from kafka_compat.errors import ErrorCode
from kafka_compat.protocol.api_keys import ApiKey
from tests.conformance.batches import batch
from tests.conformance.wire import Plain
from tests.network.embedded import TOPIC_NAME, ask, lives, serving

TOPIC, BROKER = 2, 4
ANOTHER = {"name": "another", "num_partitions": 1, "replication_factor": 1}
RESOURCE = {"resource_type": TOPIC, "resource_name": TOPIC_NAME}
WITHOUT_A_STORE: list[tuple[ApiKey, int, Plain, str]] = [
    (ApiKey.CREATE_TOPICS, 7, {"topics": [ANOTHER]}, "topics"),
    (
        ApiKey.CREATE_PARTITIONS,
        3,
        {"topics": [{"name": TOPIC_NAME, "count": 5, "assignments": None}]},
        "results",
    ),
    (ApiKey.DELETE_TOPICS, 6, {"topics": [{"name": TOPIC_NAME}]}, "responses"),
    (ApiKey.DESCRIBE_CONFIGS, 4, {"resources": [{**RESOURCE, "configuration_keys": None}]}, "results"),
    (ApiKey.ALTER_CONFIGS, 2, {"resources": [RESOURCE]}, "responses"),
    (ApiKey.INCREMENTAL_ALTER_CONFIGS, 1, {"resources": [RESOURCE]}, "responses"),
]

OF_THE_CONTROLLER = (ApiKey.CREATE_TOPICS, ApiKey.CREATE_PARTITIONS, ApiKey.DELETE_TOPICS)


@pytest.mark.parametrize(
    ("api_key", "version", "request_", "answers"),
    WITHOUT_A_STORE,
    ids=lambda value: getattr(value, "name", ""),
)
async def test_requests_get_an_error_response_after_the_metadata_store_session_is_lost(
    tmp_path: Path, api_key: ApiKey, version: int, request_: Plain, answers: str
) -> None:
    async with serving(tmp_path) as (broker, connection):
        await broker.services.store.expire()  # type: ignore[attr-defined]
        answer = await ask(connection, api_key, version, request_)
        # A controller whose session expired resigns, and any broker may succeed it, so clients retry.
        lost = ErrorCode.NOT_CONTROLLER if api_key in OF_THE_CONTROLLER else ErrorCode.REQUEST_TIMED_OUT
        assert [item["error_code"] for item in answer[answers]] == [lost]
        assert await lives(connection)


async def test_requests_get_an_error_response_if_the_metadata_journal_is_unwritable(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(self: object, lines: bytes) -> None:
        raise OSError(5, "Input/output error")

    async with serving(tmp_path) as (_, connection):
        monkeypatch.setattr("kafka_compat.coordination.store.journal.Journal.append", refuse)
        for api_key, version, request, answers in WITHOUT_A_STORE:
            answer = await ask(connection, api_key, version, request)
            codes = [item["error_code"] for item in answer[answers]]
            assert codes == [ErrorCode.KAFKA_STORAGE_ERROR], api_key.name
        assert await lives(connection)


async def test_an_error_for_one_topic_does_not_affect_other_topics(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with serving(tmp_path) as (broker, connection):
        create = broker.services.topics.create

        async def fail_for_one(name: str, **options: Any) -> Any:
            if name == "unlucky":
                raise ZeroDivisionError
            return await create(name, **options)

        monkeypatch.setattr(broker.services.topics, "create", fail_for_one)
        topics = [{**ANOTHER, "name": name} for name in ("unlucky", "lucky")]
        answer = await ask(connection, ApiKey.CREATE_TOPICS, 7, {"topics": topics})
        assert [item["error_code"] for item in answer["topics"]] == [ErrorCode.UNKNOWN_SERVER_ERROR, 0]


async def test_an_invalid_stored_setting_causes_an_error_only_for_its_resource(tmp_path: Path) -> None:
    """Internal errors are not reported to clients, as in Apache Kafka."""
    async with serving(tmp_path) as (broker, connection):
        payload = znodes.encode_config({"retention.ms": "for ever"})
        path = znodes.config_path("topics", TOPIC_NAME)
        await broker.services.store.ensure(path)
        await broker.services.store.set(path, payload)
        resources: list[dict[str, Any]] = [
            {"resource_type": TOPIC, "resource_name": TOPIC_NAME, "configuration_keys": None},
            {"resource_type": BROKER, "resource_name": "1", "configuration_keys": None},
        ]
        answer = await ask(connection, ApiKey.DESCRIBE_CONFIGS, 4, {"resources": resources})
        topic, other = answer["results"]
        assert topic["error_code"] == ErrorCode.UNKNOWN_SERVER_ERROR
        assert topic["error_message"] is None
        assert other["error_code"] == 0 and other["configs"]
        assert await lives(connection)


@pytest.mark.interpreted("replaces Partition.append")
@pytest.mark.parametrize("acks", [1, -1, 0])
async def test_an_unexpected_produce_error_is_returned_per_partition(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, acks: int
) -> None:
    """With acks=0, the connection is closed, as in Kafka, because the client receives no response."""

    def fail(*arguments: object, **options: object) -> None:
        raise ZeroDivisionError

    async with serving(tmp_path) as (_, connection):
        monkeypatch.setattr("kafka_compat.replication.partition.Partition.append", fail)
        data = [{"index": index, "records": batch(1)} for index in (0, 1)]
        request = {
            "acks": acks,
            "timeout_ms": 1000,
            "topic_data": [{"name": TOPIC_NAME, "partition_data": data}],
        }
        if acks == 0:
            connection.begin(ApiKey.PRODUCE, 9, request)
            assert await asyncio.to_thread(connection.closed_by_peer)
            return
        answer = await ask(connection, ApiKey.PRODUCE, 9, request)
        (topic,) = answer["responses"]
        assert [item["error_code"] for item in topic["partition_responses"]] == [-1, -1]
        assert await lives(connection)


async def test_responses_behind_a_failed_request_are_sent_in_order(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def fail(*arguments: object, **options: object) -> None:
        raise ZeroDivisionError

    async with serving(tmp_path) as (broker, connection):
        monkeypatch.setattr(broker.services.topics, "create", fail)
        connection.begin(ApiKey.CREATE_TOPICS, 7, {"topics": [ANOTHER]})
        connection.begin(ApiKey.METADATA, 9, {"topics": [{"name": TOPIC_NAME}]})
        raw = await asyncio.to_thread(connection.receive)
        assert raw[4 + 1 :].find(b"another") > 0
        second = await asyncio.to_thread(connection.finish, ApiKey.METADATA, 9)
        assert second["topics"][0]["name"] == TOPIC_NAME


class TooMany(list[Any]):
    """A list whose length does not fit in a response."""

    def __len__(self) -> int:
        return 1 << 40


async def test_a_connection_is_closed_if_a_late_response_cannot_be_encoded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The client would otherwise wait forever, because later responses wait for this response."""
    async with serving(tmp_path) as (broker, connection):
        create = broker.services.topics.create

        async def create_wrongly(name: str, **options: Any) -> Any:
            created = await create(name, **options)
            return SimpleNamespace(topic_id=created.topic_id, partitions=TooMany(created.partitions))

        monkeypatch.setattr(broker.services.topics, "create", create_wrongly)
        connection.begin(ApiKey.CREATE_TOPICS, 7, {"topics": [ANOTHER]})
        assert await asyncio.to_thread(connection.closed_by_peer)
