"""confluent-kafka (librdkafka) behind the line protocol of channel.py."""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, Producer, TopicPartition
from confluent_kafka import ConsumerGroupTopicPartitions as GroupPartitions
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewPartitions,
    NewTopic,
    OffsetSpec,
)

from tests.clients.drivers.channel import Answer, MemberLog, serve, to_bytes, to_text
from tests.support.client_security import for_librdkafka

_OWN = {KafkaError._FENCED: KafkaError.PRODUCER_FENCED}
"""Maps librdkafka's own error codes to Kafka's."""


def _code(error: KafkaError) -> int:
    code = int(error.code())
    return int(_OWN.get(code, code))


def code_of(error: BaseException) -> int | None:
    if isinstance(error, KafkaException) and isinstance(error.args[0], KafkaError):
        return _code(error.args[0])
    return None


def _described(message: Any) -> Answer:
    kind, timestamp = message.timestamp()
    return {
        "partition": message.partition(),
        "offset": message.offset(),
        "key": to_text(message.key()),
        "value": to_text(message.value()),
        "timestamp": timestamp,
        "timestamp_type": int(kind) - 1,
        "headers": [[name, to_text(value)] for name, value in message.headers() or []],
    }


class Member:
    """A group member that polls, commits and closes its consumer in its own thread."""

    def __init__(self, settings: dict[str, Any], topics: list[str]) -> None:
        self.log = MemberLog()
        self._jobs: queue.Queue[tuple[Callable[[Consumer], Any], Future[Any]]] = queue.Queue()
        self._stopped = False
        self._consumer = Consumer({**settings, **for_librdkafka()})
        self._consumer.subscribe(topics)
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        while not self._stopped:
            message: Any = self._consumer.poll(0.05)
            assigned = [(part.topic, part.partition) for part in self._consumer.assignment()]
            with self.log.lock:
                self.log.assignment = assigned
                if message is not None and (error := message.error()) is not None:
                    self.log.error = str(error) if error.code() != KafkaError._PARTITION_EOF else None
                elif message is not None:
                    self.log.received.append((message.topic(), message.partition(), message.offset()))
            while not self._jobs.empty():
                job, future = self._jobs.get()
                try:
                    future.set_result(job(self._consumer))
                except Exception as failure:
                    future.set_exception(failure)
        self._consumer.close()

    def run(self, job: Callable[[Consumer], Any]) -> Any:
        future: Future[Any] = Future()
        self._jobs.put((job, future))
        return future.result(30)

    def stop(self) -> None:
        self._stopped = True
        self._thread.join(30)


class Client:
    def __init__(self) -> None:
        self._members: dict[str, Member] = {}
        self._admins: dict[str, AdminClient] = {}
        self._transactional: dict[str, Producer] = {}

    def _admin(self, bootstrap: str) -> AdminClient:
        if bootstrap not in self._admins:
            self._admins[bootstrap] = AdminClient({"bootstrap.servers": bootstrap, **for_librdkafka()})
        return self._admins[bootstrap]

    def _consumer(self, bootstrap: str, **settings: Any) -> Consumer:
        return Consumer(
            {
                "bootstrap.servers": bootstrap,
                "group.id": "unused",
                "enable.auto.commit": False,
                **for_librdkafka(),
                **settings,
            }
        )

    def produce(
        self,
        bootstrap: str,
        topic: str,
        records: list[Answer],
        codec: str = "none",
        acks: str = "all",
        idempotent: bool = False,
        max_request_bytes: int = 1_048_576,
    ) -> Answer:
        producer = Producer(
            {
                **for_librdkafka(),
                "bootstrap.servers": bootstrap,
                "compression.type": codec,
                "acks": acks,
                "enable.idempotence": idempotent,
                "message.max.bytes": max_request_bytes,
                "linger.ms": 20,
                "partitioner": "murmur2_random",
            }
        )
        return self._sent(producer, topic, records)

    def _sent(self, producer: Producer, topic: str, records: list[Answer]) -> Answer:
        results: list[Any] = [None] * len(records)

        def report(index: int) -> Callable[[KafkaError | None, Message], None]:
            def delivered(error: KafkaError | None, message: Message) -> None:
                results[index] = (
                    [message.partition(), message.offset()] if error is None else {"error": _code(error)}
                )

            return delivered

        for index, record in enumerate(records):
            try:
                producer.produce(
                    topic,
                    value=to_bytes(record.get("value")),
                    key=to_bytes(record.get("key")),
                    partition=record.get("partition", -1),
                    timestamp=record.get("timestamp", 0),
                    headers=[(name, to_bytes(value)) for name, value in record.get("headers", [])],
                    on_delivery=report(index),
                )
            except KafkaException as error:
                results[index] = {"error": code_of(error)}
        producer.flush(30)
        return {"results": results}

    def transaction_open(
        self, bootstrap: str, id: str, topic: str, records: list[Answer], timeout_ms: int = 60_000
    ) -> Answer:
        if id not in self._transactional:
            settings = {"bootstrap.servers": bootstrap, "transactional.id": id, "linger.ms": 20}
            settings["transaction.timeout.ms"] = timeout_ms
            producer = Producer({**for_librdkafka(), **settings})
            producer.init_transactions(30)
            self._transactional[id] = producer
        self._transactional[id].begin_transaction()
        return self._sent(self._transactional[id], topic, records)

    def transaction_end(self, id: str, end: str) -> Answer:
        producer = self._transactional[id]
        if end == "commit":
            producer.commit_transaction(30)
        else:
            producer.abort_transaction(30)
        return {}

    def transaction(self, end: str, **begin: Any) -> Answer:
        answer = self.transaction_open(**begin)
        self.transaction_end(begin["id"], end)
        return answer

    def consume(
        self,
        bootstrap: str,
        topic: str,
        partitions: list[int],
        start: str | int,
        count: int,
        reset: str = "none",
        isolation: str = "read_uncommitted",
        timeout_s: float = 20,
    ) -> Answer:
        resets = {"none": "error", "earliest": "earliest", "latest": "latest"}
        consumer = self._consumer(
            bootstrap, **{"auto.offset.reset": resets[reset], "isolation.level": isolation}
        )
        first = -2 if start == "earliest" else -1 if start == "latest" else int(start)
        consumer.assign([TopicPartition(topic, number, first) for number in partitions])
        found: list[Answer] = []
        deadline = time.monotonic() + timeout_s
        try:
            while len(found) < count and time.monotonic() < deadline:
                for message in consumer.consume(500, 0.2):
                    if (error := message.error()) is not None:
                        raise KafkaException(error)
                    found.append(_described(message))
        finally:
            consumer.close()
        return {"records": found}

    def offsets(self, bootstrap: str, topic: str, partitions: list[int], at: str | int) -> Answer:
        consumer = self._consumer(bootstrap)
        try:
            if isinstance(at, int):
                asked = [TopicPartition(topic, number, at) for number in partitions]
                found = consumer.offsets_for_times(asked, timeout=10)
                # librdkafka returns -1 (end) if no record is at or after the time.
                return {
                    "offsets": {part.partition: part.offset if part.offset >= 0 else None for part in found}
                }
            edge = 0 if at == "earliest" else 1
            return {
                "offsets": {
                    number: consumer.get_watermark_offsets(TopicPartition(topic, number), timeout=10)[edge]
                    for number in partitions
                }
            }
        finally:
            consumer.close()

    def commit(self, bootstrap: str, group: str, topic: str, offsets: dict[str, list[Any]]) -> Answer:
        consumer = self._consumer(bootstrap, **{"group.id": group})
        try:
            parts = [
                TopicPartition(topic, int(number), offset, metadata)
                for number, (offset, metadata) in offsets.items()
            ]
            for part in consumer.commit(offsets=parts, asynchronous=False) or []:
                if part.error is not None:
                    raise KafkaException(part.error)
        finally:
            consumer.close()
        return {}

    def committed(self, bootstrap: str, group: str, topic: str, partitions: list[int]) -> Answer:
        consumer = self._consumer(bootstrap, **{"group.id": group})
        try:
            found = consumer.committed([TopicPartition(topic, number) for number in partitions], timeout=10)
        finally:
            consumer.close()
        return {
            "committed": {
                part.partition: [part.offset, part.metadata or ""] if part.offset >= 0 else None
                for part in found
            }
        }

    def member_start(
        self,
        bootstrap: str,
        member: str,
        group: str,
        topics: list[str],
        strategy: str = "range",
        instance: str | None = None,
        session_timeout_ms: int = 6000,
    ) -> Answer:
        settings = {
            "bootstrap.servers": bootstrap,
            "group.id": group,
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
            "partition.assignment.strategy": strategy,
            "session.timeout.ms": session_timeout_ms,
            "heartbeat.interval.ms": 300,
            "topic.metadata.refresh.interval.ms": 1000,
        }
        if instance is not None:
            settings["group.instance.id"] = instance
        self._members[member] = Member(settings, topics)
        return {}

    def member_state(self, member: str) -> Answer:
        return self._members[member].log.state()

    def member_commit(self, member: str) -> Answer:
        def commit(consumer: Consumer) -> None:
            positions = [part for part in consumer.position(consumer.assignment()) if part.offset >= 0]
            if positions:
                consumer.commit(offsets=positions, asynchronous=False)

        self._members[member].run(commit)
        return {}

    def member_stop(self, member: str) -> Answer:
        self._members.pop(member).stop()
        return {}

    def create_topic(
        self,
        bootstrap: str,
        topic: str,
        partitions: int,
        replication: int = 1,
        configs: dict[str, str] | None = None,
    ) -> Answer:
        admin = self._admin(bootstrap)
        new = NewTopic(topic, num_partitions=partitions, replication_factor=replication, config=configs or {})
        admin.create_topics([new])[topic].result(15)
        return {}

    def delete_topic(self, bootstrap: str, topic: str) -> Answer:
        self._admin(bootstrap).delete_topics([topic])[topic].result(15)
        return {}

    def list_topics(self, bootstrap: str) -> Answer:
        return {"topics": sorted(self._admin(bootstrap).list_topics(timeout=10).topics)}

    def describe_topic(self, bootstrap: str, topic: str) -> Answer:
        described = self._admin(bootstrap).list_topics(topic, timeout=10).topics[topic]
        if described.error is not None:
            raise KafkaException(described.error)
        parts = described.partitions.values()
        return {"partitions": [[part.id, len(part.replicas), len(part.isrs)] for part in parts]}

    def topic_config(self, bootstrap: str, topic: str) -> Answer:
        resource = ConfigResource(ConfigResource.Type.TOPIC, topic)
        admin = self._admin(bootstrap)
        entries = admin.describe_configs([resource])[resource].result(15)
        return {"configs": {name: [entry.value, entry.is_default] for name, entry in entries.items()}}

    def set_topic_config(self, bootstrap: str, topic: str, configs: dict[str, str]) -> Answer:
        changes = [
            ConfigEntry(name, value, incremental_operation=AlterConfigOpType.SET)
            for name, value in configs.items()
        ]
        resource = ConfigResource(ConfigResource.Type.TOPIC, topic, incremental_configs=changes)
        admin = self._admin(bootstrap)
        admin.incremental_alter_configs([resource])[resource].result(15)
        return {}

    def add_partitions(self, bootstrap: str, topic: str, total: int) -> Answer:
        admin = self._admin(bootstrap)
        admin.create_partitions([NewPartitions(topic, total)])[topic].result(15)
        return {}

    def delete_records(self, bootstrap: str, topic: str, before: dict[str, int]) -> Answer:
        admin = self._admin(bootstrap)
        asked = [TopicPartition(topic, int(number), offset) for number, offset in before.items()]
        answers = admin.delete_records(asked)
        return {"low": {part.partition: future.result(15).low_watermark for part, future in answers.items()}}

    def list_groups(self, bootstrap: str) -> Answer:
        listed = self._admin(bootstrap).list_consumer_groups().result(15)
        return {"groups": sorted(group.group_id for group in listed.valid)}

    def describe_group(self, bootstrap: str, group: str) -> Answer:
        admin = self._admin(bootstrap)
        found = admin.describe_consumer_groups([group])[group].result(15)
        held = sorted(len(member.assignment.topic_partitions) for member in found.members)
        return {
            "state": found.state.name.replace("_", "").lower(),
            "members": held,
            "hosts": len(found.members),
        }

    def delete_group(self, bootstrap: str, group: str) -> Answer:
        self._admin(bootstrap).delete_consumer_groups([group])[group].result(15)
        return {}

    def group_offsets(self, bootstrap: str, group: str) -> Answer:
        admin = self._admin(bootstrap)
        found = admin.list_consumer_group_offsets([GroupPartitions(group)])[group].result(15)
        return {
            "offsets": sorted([part.topic, part.partition, part.offset] for part in found.topic_partitions)
        }

    def latest_by_admin(self, bootstrap: str, topic: str, partitions: list[int]) -> Answer:
        admin = self._admin(bootstrap)
        newest: Any = OffsetSpec
        asked = {TopicPartition(topic, number): newest.max_timestamp() for number in partitions}
        answers = admin.list_offsets(asked)
        return {"offsets": {part.partition: future.result(15).offset for part, future in answers.items()}}

    def describe_cluster(self, bootstrap: str) -> Answer:
        found = self._admin(bootstrap).describe_cluster().result(15)
        return {"nodes": len(found.nodes), "has_cluster_id": bool(found.cluster_id)}


if __name__ == "__main__":
    serve(Client(), code_of)
