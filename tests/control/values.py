"""Values written by a test, and values stored by the broker."""

from __future__ import annotations

from confluent_kafka import Consumer, KafkaError, Producer

from kafka_compat.testing import KafkaBroker


def sent(client: Producer, topic: str, *values: bytes) -> list[str | None]:
    """Produce the values, and return the error of each, or None."""
    errors: list[str | None] = []

    def delivered(error: KafkaError | None, _: object) -> None:
        errors.append(None if error is None else error.name())

    for value in values:
        client.produce(topic, value, on_delivery=delivered)
        client.flush(30)
    return errors


def stored(broker: KafkaBroker, topic: str) -> list[bytes | str]:
    """Return all values of the topic's only partition."""
    return received(broker, topic, broker.control.await_records(topic, 0))


def received(broker: KafkaBroker, topic: str, count: int, **more: object) -> list[bytes | str]:
    """Consume `count` values of a topic, with the consumer's errors in between."""
    settings = {"group.id": "reader", "auto.offset.reset": "earliest", "log_level": 0, **more}
    client = Consumer({"bootstrap.servers": broker.bootstrap_servers, **settings})
    client.subscribe([topic])
    found: list[bytes | str] = []
    while count:
        message = client.poll(20)
        assert message is not None
        error = message.error()
        if error is None:
            count -= 1
        found.append((message.value() or b"") if error is None else error.name())
    client.close()
    return found
