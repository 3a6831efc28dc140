"""The broker that the Spark jobs read from and write to."""

from __future__ import annotations

import uuid
from collections import Counter, defaultdict
from dataclasses import dataclass, field
from typing import Any

from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewPartitions, NewTopic

from tests.support.process import wait_until
from tests.support.servers import GenuineKafka, Server


@dataclass(frozen=True)
class Cluster:
    """A broker that tests may kill and restart, and operations on it with clients other than Spark."""

    server: Server
    written: dict[str, dict[int, list[bytes]]] = field(default_factory=dict)
    """Maps each topic and partition to the values written by `fill`."""

    @property
    def address(self) -> str:
        return self.server.address

    @property
    def is_genuine(self) -> bool:
        return isinstance(self.server, GenuineKafka)

    def create_topic(self, name: str = "", partitions: int = 1) -> str:
        """Create a topic without time-based retention, with a new name unless `name` is set."""
        name = name or f"t-{uuid.uuid4().hex[:10]}"
        admin = AdminClient({"bootstrap.servers": self.address})
        topic = NewTopic(name, partitions, 1, config={"retention.ms": "-1"})
        wait_until(lambda: self._created(admin, topic), 60, f"creation of {name}")
        return name

    def _created(self, admin: AdminClient, topic: NewTopic) -> bool:
        """Try to create the topic. Apache Kafka sometimes does not respond to the first requests after
        startup.
        """
        try:
            admin.create_topics([topic], request_timeout=10)[topic.topic].result(15)
        except TimeoutError:
            return False
        except KafkaException as error:
            return bool(error.args[0].code() == KafkaError.TOPIC_ALREADY_EXISTS)
        return True

    def delete_topic(self, name: str) -> None:
        """Delete a topic, and wait until its name is available again."""
        admin = AdminClient({"bootstrap.servers": self.address})
        admin.delete_topics([name])[name].result(30)
        wait_until(lambda: self._is_free(admin, name), 30, f"deletion of {name}")

    def _is_free(self, admin: AdminClient, name: str) -> bool:
        try:
            admin.create_topics([NewTopic(name, 1, 1)], validate_only=True)[name].result(30)
        except KafkaException:
            return False
        return True

    def add_partitions(self, name: str, total: int) -> None:
        admin = AdminClient({"bootstrap.servers": self.address})
        admin.create_partitions([NewPartitions(name, total)])[name].result(30)

    def producer(self, **settings: Any) -> Producer:
        defaults = {"bootstrap.servers": self.address, "enable.idempotence": True, "linger.ms": 20}
        return Producer({**defaults, **settings})

    def fill(self, topic: str, partitions: int, records: Any) -> None:
        """Write (key, value, timestamp, headers) round robin: record i is written to partition i %
        partitions.
        """
        producer = self.producer(**{"queue.buffering.max.messages": 1_000_000})
        values: dict[int, list[bytes]] = defaultdict(list)
        for i, (key, value, timestamp, headers) in enumerate(records):
            partition = i % partitions
            values[partition].append(value)
            producer.produce(topic, value, key, partition, timestamp=timestamp, headers=headers)
            if i % 10_000 == 0:
                producer.poll(0)
        assert producer.flush(120) == 0
        self.written[topic] = dict(values)

    def read(self, topic: str, partition: int, count: int, **settings: Any) -> list[Any]:
        """Read the first `count` messages of a partition with confluent-kafka."""
        consumer = Consumer(
            {
                "bootstrap.servers": self.address,
                "group.id": f"g-{uuid.uuid4().hex}",
                "auto.offset.reset": "earliest",
                "enable.auto.commit": False,
                **settings,
            }
        )
        consumer.assign([TopicPartition(topic, partition, 0)])
        messages: list[Any] = []
        while len(messages) < count:
            batch = consumer.consume(count - len(messages), 30)
            assert batch, f"read only {len(messages)} of {count} messages of {topic}-{partition}"
            assert all(message.error() is None for message in batch)
            messages += batch
        consumer.close()
        return messages

    def ends(self, topic: str) -> Counter[int]:
        """Map each partition to its end offset. Partitions without records are omitted, as in a Counter."""
        consumer = Consumer({"bootstrap.servers": self.address, "group.id": f"g-{uuid.uuid4().hex}"})
        partitions = consumer.list_topics(topic, 30).topics[topic].partitions
        ends = Counter(
            {
                p: consumer.get_watermark_offsets(TopicPartition(topic, p), 30, cached=False)[1]
                for p in partitions
            }
        )
        consumer.close()
        return ends
