"""Requests that write and read records."""

from __future__ import annotations

from typing import Any

from kafka_compat.protocol.api_keys import ApiKey
from tests.conformance.differential import Pair
from tests.conformance.wire import Plain
from tests.support.process import wait_until


def produce_request(
    topic: str,
    records: bytes | None,
    *,
    acks: int = -1,
    partition: int = 0,
    transactional_id: str | None = None,
) -> Plain:
    data = [{"name": topic, "partition_data": [{"index": partition, "records": records}]}]
    return {"transactional_id": transactional_id, "acks": acks, "timeout_ms": 10_000, "topic_data": data}


def fetch_request(
    topic: str, offset: int, *, partition: int = 0, max_bytes: int = 1 << 20, **more: Any
) -> Plain:
    part = {"partition": partition, "fetch_offset": offset, "partition_max_bytes": max_bytes}
    part |= {name: more.pop(name) for name in ("current_leader_epoch", "last_fetched_epoch") if name in more}
    request = {"max_wait_ms": 0, "min_bytes": 0, "max_bytes": 1 << 24, **more}
    return {**request, "topics": [{"topic": topic, "partitions": [part]}]}


def fill(pair: Pair, topic: str, *batches: bytes, partition: int = 0) -> None:
    for data in batches:
        answers = pair.both(ApiKey.PRODUCE, 9, produce_request(topic, data, partition=partition))
        for answer in answers:
            assert answer["responses"][0]["partition_responses"][0]["error_code"] == 0, answer


def offsets_request(
    topic: str, timestamp: int, *, partition: int = 0, isolation: int = 0, epoch: int = -1
) -> Plain:
    part = {
        "partition_index": partition,
        "timestamp": timestamp,
        "max_num_offsets": 5,
        "current_leader_epoch": epoch,
    }
    return {"replica_id": -1, "isolation_level": isolation, "topics": [{"name": topic, "partitions": [part]}]}


def await_producer_ids(pair: Pair) -> None:
    """Wait until both brokers can allocate producer ids. Apache Kafka fetches its first block of ids on the
    first request.
    """
    request = {"transactional_id": None, "transaction_timeout_ms": 60_000}

    def given() -> bool:
        return all(answer["error_code"] == 0 for answer in pair.both(ApiKey.INIT_PRODUCER_ID, 1, request))

    wait_until(given, 20, "producer ids")
