"""Testcontainers' Python module with this image, in its ZooKeeper and KRaft modes."""

import os

from confluent_kafka import Consumer, Producer
from testcontainers.community.kafka import KafkaContainer  # type: ignore[import-not-found]


def produced_is_consumed(address: str) -> list[bytes]:
    """Produce three records, and return the consumed values."""
    producer = Producer({"bootstrap.servers": address})
    for airport in (b"EWR", b"JFK", b"LGA"):
        producer.produce("flights", airport)
    assert producer.flush(20) == 0
    reading = {"bootstrap.servers": address, "group.id": "readers", "auto.offset.reset": "earliest"}
    consumer = Consumer(reading)
    consumer.subscribe(["flights"])
    found = [message.value() or b"" for message in consumer.consume(3, 30)]
    consumer.close()
    return found


IMAGE = os.environ["KAFKA_IMAGE"]
for mode, container in (("zookeeper", KafkaContainer(IMAGE)), ("kraft", KafkaContainer(IMAGE).with_kraft())):
    with container as kafka:
        records = produced_is_consumed(kafka.get_bootstrap_server())
        print(f"{mode}:", *(value.decode() for value in records))
