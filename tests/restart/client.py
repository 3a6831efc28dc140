"""Requests that these tests need, sent without a client library's retries and caches."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from kafka_compat.errors import ErrorCode
from kafka_compat.protocol.api_keys import ApiKey
from kafka_compat.storage.records.batch import BatchHeader, read_header
from kafka_compat.storage.records.records import Record, build_batch, iter_records
from tests.conformance.wire import Connection, Plain
from tests.support.process import wait_until


class Produced(NamedTuple):
    error: ErrorCode
    offset: int


class Fetched(NamedTuple):
    error: ErrorCode
    start: int
    high_watermark: int
    records: list[Record]
    headers: list[BatchHeader]


def create_topic(
    connection: Connection, name: str, partitions: int = 1, configs: Mapping[str, str] | None = None
) -> None:
    settings = [{"name": setting, "value": value} for setting, value in (configs or {}).items()]
    topic = {"name": name, "num_partitions": partitions, "replication_factor": 1, "configs": settings}
    answer = connection.ask(ApiKey.CREATE_TOPICS, 7, {"topics": [topic], "timeout_ms": 10_000})
    assert answer["topics"][0]["error_code"] == 0, answer


def delete_topic(connection: Connection, name: str) -> ErrorCode:
    request = {"topics": [{"name": name}], "timeout_ms": 10_000}
    answer = connection.ask(ApiKey.DELETE_TOPICS, 6, request)
    return ErrorCode(answer["responses"][0]["error_code"])


def produce(
    connection: Connection,
    topic: str,
    values: Sequence[bytes],
    *,
    partition: int = 0,
    acks: int = -1,
    timestamp_ms: int | None = None,
    producer: tuple[int, int, int] = (-1, -1, -1),
) -> Produced:
    """Append one batch. `producer` is the producer's id, epoch and first sequence number."""
    producer_id, producer_epoch, base_sequence = producer
    now_ms = int(time.time() * 1000) if timestamp_ms is None else timestamp_ms
    batch = build_batch(
        [Record(timestamp=now_ms, value=value) for value in values],
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        base_sequence=base_sequence,
    )
    answer = connection.ask(ApiKey.PRODUCE, 9, produce_request(topic, batch, partition=partition, acks=acks))
    found = answer["responses"][0]["partition_responses"][0]
    return Produced(ErrorCode(found["error_code"]), found["base_offset"])


def produce_request(topic: str, batch: bytes, *, partition: int = 0, acks: int = -1) -> Plain:
    data = [{"name": topic, "partition_data": [{"index": partition, "records": batch}]}]
    return {"acks": acks, "timeout_ms": 10_000, "topic_data": data}


def fetch(
    connection: Connection, topic: str, offset: int = 0, *, partition: int = 0, max_wait_ms: int = 0
) -> Fetched:
    answer = connection.ask(
        ApiKey.FETCH, 11, fetch_request(topic, offset, partition=partition, max_wait_ms=max_wait_ms)
    )
    found = answer["responses"][0]["partitions"][0]
    records: list[Record] = []
    headers: list[BatchHeader] = []
    data = memoryview(found["records"] or b"")
    while data:
        header = read_header(data)
        headers.append(header)
        records += iter_records(data[: header.size_bytes])
        data = data[header.size_bytes :]
    return Fetched(
        ErrorCode(found["error_code"]), found["log_start_offset"], found["high_watermark"], records, headers
    )


def fetch_request(topic: str, offset: int = 0, *, partition: int = 0, max_wait_ms: int = 0) -> Plain:
    where = {"partition": partition, "fetch_offset": offset, "partition_max_bytes": 10_000_000}
    return {
        "max_wait_ms": max_wait_ms,
        "min_bytes": 1,
        "max_bytes": 50_000_000,
        "topics": [{"topic": topic, "partitions": [where]}],
    }


def values_of(connection: Connection, topic: str, partition: int = 0) -> list[bytes | None]:
    """Return all values of a partition."""
    found = fetch(connection, topic, start_of(connection, topic, partition), partition=partition)
    assert found.error == ErrorCode.NONE
    records = found.records
    while records and records[-1].offset + 1 < found.high_watermark:
        records += fetch(connection, topic, records[-1].offset + 1, partition=partition).records
    return [record.value for record in records]


def start_of(connection: Connection, topic: str, partition: int = 0) -> int:
    where = {"partition_index": partition, "timestamp": -2}
    answer = connection.ask(ApiKey.LIST_OFFSETS, 7, {"topics": [{"name": topic, "partitions": [where]}]})
    found = answer["topics"][0]["partitions"][0]
    assert found["error_code"] == 0, answer
    offset: int = found["offset"]
    return offset


def topic_of(connection: Connection, name: str) -> Plain | None:
    """Return a topic as described by Metadata, or None if it does not exist."""
    request = {"topics": [{"name": name}], "allow_auto_topic_creation": False}
    answer = connection.ask(ApiKey.METADATA, 12, request)
    found: Plain = answer["topics"][0]
    return found if found["error_code"] == 0 else None


def new_producer_id(connection: Connection) -> tuple[int, int]:
    """Return a new producer id and its epoch."""
    request = {"transactional_id": None, "transaction_timeout_ms": 0}
    answer = connection.ask(ApiKey.INIT_PRODUCER_ID, 4, request)
    assert answer["error_code"] == 0, answer
    return answer["producer_id"], answer["producer_epoch"]


def alter_config(
    connection: Connection, resource_type: int, resource: str, settings: Mapping[str, str]
) -> None:
    """Set dynamic settings of a topic (type 2) or a broker (type 4)."""
    configs = [{"name": name, "config_operation": 0, "value": value} for name, value in settings.items()]
    request = {"resources": [{"resource_type": resource_type, "resource_name": resource, "configs": configs}]}
    answer = connection.ask(ApiKey.INCREMENTAL_ALTER_CONFIGS, 1, request)
    assert answer["responses"][0]["error_code"] == 0, answer


def config_of(connection: Connection, resource_type: int, resource: str) -> dict[str, tuple[str | None, int]]:
    """Return the value and source (1 topic, 2 broker, 4 static, 5 default) of each setting."""
    request = {"resources": [{"resource_type": resource_type, "resource_name": resource}]}
    answer = connection.ask(ApiKey.DESCRIBE_CONFIGS, 4, request)
    found = answer["results"][0]
    assert found["error_code"] == 0, answer
    return {item["name"]: (item["value"], item["config_source"]) for item in found["configs"]}


def commit_offset(connection: Connection, group: str, topic: str, offset: int, metadata: str = "") -> None:
    """Commit an offset without group membership, after waiting for the group's coordinator."""
    where = {"partition_index": 0, "committed_offset": offset, "committed_metadata": metadata}
    request = {"group_id": group, "topics": [{"name": topic, "partitions": [where]}]}

    def committed() -> bool:
        connection.ask(ApiKey.FIND_COORDINATOR, 3, {"key": group, "key_type": 0})
        answer = connection.ask(ApiKey.OFFSET_COMMIT, 8, request)
        return bool(answer["topics"][0]["partitions"][0]["error_code"] == 0)

    wait_until(committed, 10, f"offset commit of group {group}")


def committed_offset(connection: Connection, group: str, topic: str) -> tuple[int, str | None]:
    request = {"group_id": group, "topics": [{"name": topic, "partition_indexes": [0]}]}
    answer = connection.ask(ApiKey.OFFSET_FETCH, 7, request)
    assert answer["error_code"] == 0, answer
    found = answer["topics"][0]["partitions"][0]
    return found["committed_offset"], found["metadata"]
