"""All of a broker's data that clients can see, read by the same client from any broker, for comparison."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any, NamedTuple

from confluent_kafka import Consumer, ConsumerGroupTopicPartitions, KafkaError, TopicPartition
from confluent_kafka.admin import AdminClient

from tests.support.process import wait_until

_OFFSET_BEGINNING = -2
_CLIENT = {"log_level": 0, "socket.connection.setup.timeout.ms": 10_000}

Place = tuple[str, int]
"""(topic, partition)"""


class Stored(NamedTuple):
    """A record as a consumer receives it."""

    offset: int
    timestamp: tuple[int, int]
    """The timestamp type (1 for CreateTime or 2 for LogAppendTime), and the time in ms."""
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...]


@dataclass
class Contents:
    """The data of a broker."""

    cluster_id: str = ""
    topic_ids: dict[str, str] = field(default_factory=dict)
    ends: dict[Place, tuple[int, int]] = field(default_factory=dict)
    """The start and end offset of each partition."""
    records: dict[Place, list[Stored]] = field(default_factory=dict)
    committed: dict[Place, list[Stored]] = field(default_factory=dict)
    """The records that a read_committed consumer receives, by partition."""
    by_time: dict[tuple[str, int, int], int] = field(default_factory=dict)
    """The offset found for a topic, a partition and a timestamp."""
    groups: dict[str, dict[Place, tuple[int, str | None]]] = field(default_factory=dict)
    """The committed offset and metadata of each group."""


def read_contents(
    address: str, partitions: Mapping[str, int], groups: Sequence[str], times: Sequence[int] = ()
) -> Contents:
    """Read all records of `topics` (partition counts by name) with both isolation levels, and the groups'
    offsets.
    """
    places = [(topic, index) for topic, count in partitions.items() for index in range(count)]
    wait_until_led(address, partitions)
    found = Contents(
        cluster_id=cluster_id(address),
        topic_ids=topic_ids(address, list(partitions)),
        records=read_records(address, places, "read_uncommitted"),
        committed=read_records(address, places, "read_committed"),
        groups={group: group_offsets(address, group) for group in groups},
    )
    consumer = _consumer(address, "read_uncommitted")
    for topic, index in places:
        found.ends[topic, index] = consumer.get_watermark_offsets(TopicPartition(topic, index), timeout=30)
        for time_ms in times:
            (answer,) = consumer.offsets_for_times([TopicPartition(topic, index, time_ms)], timeout=30)
            found.by_time[topic, index, time_ms] = answer.offset
    consumer.close()
    return found


def wait_until_led(address: str, partitions: Mapping[str, int]) -> None:
    """Wait until every partition has a leader. Apache Kafka logs "started" before it leads any partition."""
    client = admin(address)

    def led() -> bool:
        topics = client.list_topics(timeout=10).topics
        return all(
            topic in topics and sum(part.leader >= 0 for part in topics[topic].partitions.values()) == count
            for topic, count in partitions.items()
        )

    wait_until(led, 30, "a leader of every partition", 0.05)


def read_records(
    address: str, places: Sequence[Place], isolation_level: str = "read_uncommitted"
) -> dict[Place, list[Stored]]:
    """Return all records of each partition."""
    consumer = _consumer(address, isolation_level)
    consumer.assign([TopicPartition(topic, index, _OFFSET_BEGINNING) for topic, index in places])
    found: dict[Place, list[Stored]] = {place: [] for place in places}
    unread = set(places)
    while unread:
        message: Any = consumer.poll(20)
        assert message is not None, f"no record for 20 s; not read to the end: {unread}"
        place = message.topic(), message.partition()
        if message.error() is None:
            found[place].append(_stored(message))
        else:
            assert message.error().code() == KafkaError._PARTITION_EOF, message.error()
            unread.discard(place)
    consumer.close()
    return found


def group_offsets(address: str, group: str) -> dict[Place, tuple[int, str | None]]:
    """Return the committed offsets of a group."""
    client = admin(address)
    futures = client.list_consumer_group_offsets([ConsumerGroupTopicPartitions(group)])
    answer = futures[group].result(30)
    return {
        (item.topic, item.partition): (item.offset, item.metadata)
        for item in answer.topic_partitions
        if item.offset >= 0
    }


def cluster_id(address: str) -> str:
    client = admin(address)
    return str(client.describe_cluster().result(30).cluster_id)


def topic_ids(address: str, topics: list[str]) -> dict[str, str]:
    """Return the id of each topic, as Kafka prints it."""
    from confluent_kafka import TopicCollection

    client = admin(address)
    futures = client.describe_topics(TopicCollection(topics))
    return {topic: str(future.result(30).topic_id) for topic, future in futures.items()}


def differences(ours: Contents, theirs: Contents) -> list[str]:
    """Return descriptions of the differences between two contents."""
    found = []
    for item in fields(Contents):
        left, right = getattr(ours, item.name), getattr(theirs, item.name)
        if not isinstance(left, dict):
            left, right = {"": left}, {"": right}
        found += [
            f"{item.name} {name}: {left.get(name)!r:.300} and {right.get(name)!r:.300}"
            for name in left.keys() | right.keys()
            if left.get(name) != right.get(name)
        ]
    return sorted(found)


def admin(address: str) -> AdminClient:
    """Return an admin client that does not log. Keep a reference while its futures are pending, because they
    end with it.
    """
    return AdminClient({"bootstrap.servers": address, **_CLIENT})


def _consumer(address: str, isolation_level: str) -> Consumer:
    return Consumer(
        {
            "bootstrap.servers": address,
            "group.id": "contents",
            "enable.auto.commit": False,
            "enable.partition.eof": True,
            "auto.offset.reset": "error",
            "isolation.level": isolation_level,
            "fetch.wait.max.ms": 50,
            **_CLIENT,
        }
    )


def _stored(message: Any) -> Stored:
    headers = tuple((name, value) for name, value in message.headers() or ())
    return Stored(message.offset(), message.timestamp(), message.key(), message.value(), headers)
