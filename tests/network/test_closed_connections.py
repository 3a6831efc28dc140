"""State of connections after they are closed."""

from __future__ import annotations

from typing import Any

from kafka_compat.protocol.api_keys import ApiKey
from tests.conformance import wire
from tests.support.process import wait_until
from tests.support.servers import KafkaCompatBroker

CONNECTIONS = 60
REQUEST_BYTES = 1024 * 1024


def test_memory_of_large_requests_is_freed_when_clients_disconnect(broker: KafkaCompatBroker) -> None:
    """A connection reuses the buffer of a large request, and frees it when the connection closes."""
    data = {"index": 0, "records": bytes(REQUEST_BYTES)}
    request = {"acks": -1, "timeout_ms": 1000, "topic_data": [{"name": "nobody", "partition_data": [data]}]}

    def ask() -> None:
        with wire.Connection(broker.address) as connection:
            connection.ask(ApiKey.PRODUCE, 7, request)

    ask()
    before = broker.resident_bytes()
    for _ in range(CONNECTIONS):
        ask()
    assert broker.resident_bytes() - before < CONNECTIONS * REQUEST_BYTES / 10


def test_a_long_fetch_is_canceled_when_its_connection_closes(broker: KafkaCompatBroker) -> None:
    """A request with many partitions is decoded in a different thread and served afterwards."""
    count = 2500
    wanted = {"name": "many", "num_partitions": count, "replication_factor": 1}
    partitions = [{"partition": number, "fetch_offset": 0} for number in range(count)]
    fetch: dict[str, Any] = {"max_wait_ms": 2**31 - 1, "min_bytes": 1, "session_epoch": -1}
    fetch["topics"] = [{"topic": "many", "partitions": partitions}]
    with wire.Connection(broker.address, 60) as connection:
        connection.ask(ApiKey.CREATE_TOPICS, 5, {"topics": [wanted], "timeout_ms": 60_000})

    def leave() -> None:
        with wire.Connection(broker.address) as connection:
            connection.begin(ApiKey.FETCH, 11, fetch)
            assert connection.hears_nothing(0.2)

    for _ in range(5):
        leave()
    before = broker.resident_bytes()
    for _ in range(20):
        leave()
    # Each waiting fetch of this many partitions uses some 750 KB.
    wait_until(lambda: broker.resident_bytes() - before < 5 * 2**20, 20, "release of the fetches")
