"""What connections leave behind when they end."""

from __future__ import annotations

from kafka_compat.protocol.api_keys import ApiKey
from tests.conformance import wire
from tests.support.servers import KafkaCompatBroker

CONNECTIONS = 60
REQUEST_BYTES = 1024 * 1024


def test_memory_of_large_requests_is_freed_when_clients_disconnect(broker: KafkaCompatBroker) -> None:
    """A connection keeps the buffer of a large request for the next one, and not beyond its end."""
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
