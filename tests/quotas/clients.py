"""Raw clients of brokers with quotas, and functions that set quotas."""

from __future__ import annotations

import secrets
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from kafka_compat.protocol.api_keys import ApiKey
from kafka_compat.storage.records.records import Record, build_batch
from tests.conformance.wire import Connection, Plain
from tests.support.process import wait_until

Who = tuple[str | None, str | None]
"""The user and client id of a quota: "" if the quota does not depend on it, None for the default."""


def unique(name: str) -> str:
    return f"{name}-{secrets.token_hex(4)}"


def alter(address: str, who: Who, **rates: float | None) -> None:
    """Set quotas, or remove those that are None."""
    kinds = zip(("user", "client-id"), who, strict=True)
    entity = [{"entity_type": kind, "entity_name": name} for kind, name in kinds if name != ""]
    ops: list[dict[str, Any]] = [
        {"key": key, "value": rate or 0.0, "remove": rate is None} for key, rate in rates.items()
    ]
    with Connection(address) as connection:
        request = {"entries": [{"entity": entity, "ops": ops}], "validate_only": False}
        answer = connection.ask(ApiKey.ALTER_CLIENT_QUOTAS, 1, request)
    assert [entry["error_code"] for entry in answer["entries"]] == [0]


def await_notices(address: str, by: str = "") -> None:
    """Wait until the broker applies all quotas set through broker `by` before. Changes are applied in order,
    so a later quota takes effect only after them.
    """
    marker = unique("marker")
    alter(by or address, ("", marker), request_percentage=0.000001)

    def is_throttled() -> bool:
        with Connection(address, client_id=marker) as connection:
            answer = connection.ask(ApiKey.METADATA, 9, {"topics": []})
            return bool(answer["throttle_time_ms"] > 0)

    wait_until(is_throttled, 20, "application of a quota")
    alter(by or address, ("", marker), request_percentage=None)


@contextmanager
def quotas(address: str, who: Who, **rates: float) -> Iterator[None]:
    """Apply quotas within the block."""
    alter(address, who, **rates)
    await_notices(address)
    try:
        yield
    finally:
        alter(address, who, **dict.fromkeys(rates))


def create_topic(address: str, name: str, partitions: int = 1) -> None:
    request = {
        "topics": [{"name": name, "num_partitions": partitions, "replication_factor": 1}],
        "timeout_ms": 15_000,
    }
    with Connection(address) as connection:
        answer = connection.ask(ApiKey.CREATE_TOPICS, 5, request)
        assert [topic["error_code"] for topic in answer["topics"]] == [0]
        wait_until(lambda: _is_led(connection, name), 20, f"a leader of {name}")


def _is_led(connection: Connection, name: str) -> bool:
    answer = connection.ask(ApiKey.METADATA, 9, {"topics": [{"name": name}]})
    (topic,) = answer["topics"]
    return topic["error_code"] == 0 and all(part["error_code"] == 0 for part in topic["partitions"])


def records(size_bytes: int) -> bytes:
    value = secrets.token_bytes(size_bytes)
    now_ms = int(time.time() * 1000)
    return build_batch([Record(offset=0, timestamp=now_ms, key=None, value=value, headers=())])


def produce_request(topic: str, size_bytes: int, acks: int = 1) -> Plain:
    data = {"index": 0, "records": records(size_bytes)}
    return {
        "acks": acks,
        "timeout_ms": 10_000,
        "topic_data": [{"name": topic, "partition_data": [data]}],
    }


def produce(connection: Connection, topic: str, size_bytes: int) -> int:
    """Produce `size_bytes` bytes, and return the throttle time in the response."""
    answer = connection.ask(ApiKey.PRODUCE, 9, produce_request(topic, size_bytes))
    (partition,) = answer["responses"][0]["partition_responses"]
    assert partition["error_code"] == 0
    told: int = answer["throttle_time_ms"]
    return told


def fetch_request(topic: str, offset: int, max_bytes: int, session: tuple[int, int] = (0, -1)) -> Plain:
    partition = {"partition": 0, "fetch_offset": offset, "partition_max_bytes": max_bytes}
    session_id, epoch = session
    return {
        "max_wait_ms": 100,
        "min_bytes": 1,
        "max_bytes": 50_000_000,
        "session_id": session_id,
        "session_epoch": epoch,
        "topics": [{"topic": topic, "partitions": [partition]}],
    }


def assert_alike(ours: list[int], genuine: list[int]) -> None:
    """Assert that throttle times differ by at most a fifth."""
    assert len(ours) == len(genuine)
    for mine, theirs in zip(ours, genuine, strict=True):
        assert (mine > 0) == (theirs > 0), (ours, genuine)
        assert abs(mine - theirs) <= 0.2 * theirs, (ours, genuine)
