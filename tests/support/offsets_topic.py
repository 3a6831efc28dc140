"""The offsets topic, which a broker creates on the first request for a group."""

from __future__ import annotations

from confluent_kafka import Consumer, TopicPartition


def make_offsets_topic(bootstrap: str) -> None:
    """Create the topic, because not every client waits for its creation."""
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "first"})
    try:
        consumer.committed([TopicPartition("first", 0)], timeout=60)
    finally:
        consumer.close()
