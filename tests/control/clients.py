"""librdkafka clients of a broker under test."""

from __future__ import annotations

from typing import Protocol

from confluent_kafka import Producer

COMPACTED_ON_COMMAND = {"cleanup.policy": "compact", "min.cleanable.dirty.ratio": 1}
"""Settings of a compacted topic that is compacted only on request."""


class Serving(Protocol):
    """A running broker, of any kind."""

    @property
    def bootstrap_servers(self) -> str: ...


def producer(broker: Serving, **settings: object) -> Producer:
    given: dict[str, object] = {"bootstrap.servers": broker.bootstrap_servers, "linger.ms": 0, "log_level": 0}
    return Producer({**given, **settings})


def produce(broker: Serving, topic: str, count: int = 1) -> None:
    """Produce `count` records whose values are their numbers."""
    client = producer(broker)
    for number in range(count):
        client.produce(topic, b"%d" % number)
    assert client.flush(20) == 0
