"""The topic of committed offsets, which a broker makes when somebody first asks for a group."""

from __future__ import annotations

from confluent_kafka import Consumer, TopicPartition


def make_offsets_topic(bootstrap: str) -> None:
    """Let it be there: not every client waits for it."""
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "first"})
    try:
        consumer.committed([TopicPartition("first", 0)], timeout=60)
    finally:
        consumer.close()
