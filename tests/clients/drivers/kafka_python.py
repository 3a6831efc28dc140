"""kafka-python behind the line protocol of channel.py."""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any

import kafka.errors
from kafka import (
    KafkaAdminClient,
    KafkaConsumer,
    KafkaProducer,
    OffsetAndMetadata,
    OffsetSpec,
    TopicPartition,
)
from kafka.admin import ConfigResource, ConfigResourceType, NewTopic
from kafka.coordinator.assignors.cooperative_sticky import CooperativeStickyAssignor
from kafka.coordinator.assignors.range import RangePartitionAssignor
from kafka.coordinator.assignors.roundrobin import RoundRobinPartitionAssignor

from tests.clients.drivers.channel import Answer, MemberLog, serve, to_bytes, to_text
from tests.support.client_security import for_kafka_python

STRATEGIES = {
    "range": RangePartitionAssignor,
    "roundrobin": RoundRobinPartitionAssignor,
    "cooperative-sticky": CooperativeStickyAssignor,
}


def code_of(error: BaseException) -> int | None:
    if isinstance(error, kafka.errors.MessageSizeTooLargeError):  # rejected by the client
        return 10
    return getattr(error, "errno", None)


def _raise_for(code: int) -> None:
    if code != 0:
        raise kafka.errors.for_code(code)()


class Member:
    """A group member that polls, commits and closes its consumer in its own thread."""

    def __init__(self, consumer: KafkaConsumer, topics: list[str], poll_ms: int) -> None:
        self.log = MemberLog()
        self._poll_ms = poll_ms
        self._jobs: queue.Queue[tuple[Callable[[KafkaConsumer], Any], Future[Any]]] = queue.Queue()
        self._stopped = False
        self._consumer = consumer
        self._consumer.subscribe(topics)
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        while not self._stopped:
            try:
                polled = self._consumer.poll(timeout_ms=self._poll_ms)
            except Exception as failure:
                self.log.error = repr(failure)
                continue
            with self.log.lock:
                self.log.assignment = [(part.topic, part.partition) for part in self._consumer.assignment()]
                for records in polled.values():
                    self.log.received += [(found.topic, found.partition, found.offset) for found in records]
            while not self._jobs.empty():
                job, future = self._jobs.get()
                try:
                    future.set_result(job(self._consumer))
                except Exception as failure:
                    future.set_exception(failure)
        self._consumer.close(autocommit=False)

    def run(self, job: Callable[[KafkaConsumer], Any]) -> Any:
        future: Future[Any] = Future()
        self._jobs.put((job, future))
        return future.result(30)

    def stop(self) -> None:
        self._stopped = True
        self._thread.join(30)


class Client:
    def __init__(self) -> None:
        self._members: dict[str, Member] = {}
        self._admins: dict[str, KafkaAdminClient] = {}
        self._transactional: dict[str, KafkaProducer] = {}

    def _admin(self, bootstrap: str) -> KafkaAdminClient:
        if bootstrap not in self._admins:
            self._admins[bootstrap] = KafkaAdminClient(bootstrap_servers=bootstrap, **for_kafka_python())
        return self._admins[bootstrap]

    def _consumer(self, bootstrap: str, **settings: Any) -> KafkaConsumer:
        return KafkaConsumer(
            bootstrap_servers=bootstrap, enable_auto_commit=False, **for_kafka_python(), **settings
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
        producer = KafkaProducer(
            **for_kafka_python(),
            bootstrap_servers=bootstrap,
            compression_type=None if codec == "none" else codec,
            acks="all" if acks == "all" else int(acks),
            enable_idempotence=idempotent,
            max_request_size=max_request_bytes,
            linger_ms=20,
        )
        try:
            return self._sent(producer, topic, records)
        finally:
            producer.close()

    def _sent(self, producer: KafkaProducer, topic: str, records: list[Answer]) -> Answer:
        sent: list[Any] = []
        for record in records:
            future = producer.send(
                topic,
                value=to_bytes(record.get("value")),
                key=to_bytes(record.get("key")),
                partition=record.get("partition"),
                timestamp_ms=record.get("timestamp"),
                headers=[(name, to_bytes(value)) for name, value in record.get("headers", [])],
            )
            sent.append(future)
        results: list[Any] = []
        for future in sent:
            try:
                done = future.get(30)
                results.append([done.partition, done.offset])
            except kafka.errors.KafkaError as error:
                results.append({"error": code_of(error)})
        return {"results": results}

    def transaction_open(
        self, bootstrap: str, id: str, topic: str, records: list[Answer], timeout_ms: int = 60_000
    ) -> Answer:
        if id not in self._transactional:
            producer = KafkaProducer(
                **for_kafka_python(),
                bootstrap_servers=bootstrap,
                transactional_id=id,
                transaction_timeout_ms=timeout_ms,
                linger_ms=20,
            )
            producer.init_transactions()
            self._transactional[id] = producer
        self._transactional[id].begin_transaction()
        return self._sent(self._transactional[id], topic, records)

    def transaction_end(self, id: str, end: str) -> Answer:
        producer = self._transactional[id]
        if end == "commit":
            producer.commit_transaction()
        else:
            producer.abort_transaction()
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
        consumer = self._consumer(bootstrap, auto_offset_reset=reset, isolation_level=isolation)
        parts = [TopicPartition(topic, number) for number in partitions]
        found: list[Answer] = []
        deadline = time.monotonic() + timeout_s
        try:
            consumer.assign(parts)
            for part in parts:
                if start == "earliest":
                    consumer.seek_to_beginning(part)
                elif start == "latest":
                    consumer.seek_to_end(part)
                else:
                    consumer.seek(part, int(start))
            while len(found) < count and time.monotonic() < deadline:
                for part, records in consumer.poll(timeout_ms=200).items():
                    found += [
                        {
                            "partition": part.partition,
                            "offset": record.offset,
                            "key": to_text(record.key),
                            "value": to_text(record.value),
                            "timestamp": record.timestamp,
                            "timestamp_type": record.timestamp_type,
                            "headers": [[name, to_text(value)] for name, value in record.headers],
                        }
                        for record in records
                    ]
        finally:
            consumer.close()
        return {"records": found}

    def offsets(self, bootstrap: str, topic: str, partitions: list[int], at: str | int) -> Answer:
        consumer = self._consumer(bootstrap)
        parts = [TopicPartition(topic, number) for number in partitions]
        try:
            if isinstance(at, int):
                times = consumer.offsets_for_times(dict.fromkeys(parts, at))
                return {
                    "offsets": {
                        part.partition: None if hit is None else hit.offset for part, hit in times.items()
                    }
                }
            edges = consumer.beginning_offsets(parts) if at == "earliest" else consumer.end_offsets(parts)
            return {"offsets": {part.partition: offset for part, offset in edges.items()}}
        finally:
            consumer.close()

    def commit(self, bootstrap: str, group: str, topic: str, offsets: dict[str, list[Any]]) -> Answer:
        consumer = self._consumer(bootstrap, group_id=group)
        try:
            consumer.assign([TopicPartition(topic, int(number)) for number in offsets])
            consumer.commit(
                {
                    TopicPartition(topic, int(number)): OffsetAndMetadata(offset, metadata, -1)
                    for number, (offset, metadata) in offsets.items()
                }
            )
        finally:
            consumer.close()
        return {}

    def committed(self, bootstrap: str, group: str, topic: str, partitions: list[int]) -> Answer:
        consumer = self._consumer(bootstrap, group_id=group)
        try:
            found = {
                number: consumer.committed(TopicPartition(topic, number), metadata=True)
                for number in partitions
            }
        finally:
            consumer.close()
        return {
            "committed": {
                number: None if hit is None else [hit.offset, hit.metadata] for number, hit in found.items()
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
        poll_ms: int = 100,
    ) -> Answer:
        consumer = self._consumer(
            bootstrap,
            group_id=group,
            group_instance_id=instance,
            auto_offset_reset="earliest",
            partition_assignment_strategy=[STRATEGIES[strategy]],
            session_timeout_ms=session_timeout_ms,
            heartbeat_interval_ms=300,
            metadata_max_age_ms=1000,
        )
        self._members[member] = Member(consumer, topics, poll_ms)
        return {}

    def member_state(self, member: str) -> Answer:
        return self._members[member].log.state()

    def member_commit(self, member: str) -> Answer:
        self._members[member].run(lambda consumer: consumer.commit())
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
        self._admin(bootstrap).create_topics(
            [NewTopic(topic, partitions, replication, topic_configs=configs)]
        )
        return {}

    def delete_topic(self, bootstrap: str, topic: str) -> Answer:
        self._admin(bootstrap).delete_topics([topic])
        return {}

    def list_topics(self, bootstrap: str) -> Answer:
        return {"topics": sorted(self._admin(bootstrap).list_topics())}

    def describe_topic(self, bootstrap: str, topic: str) -> Answer:
        (described,) = self._admin(bootstrap).describe_topics([topic])
        _raise_for(described["error_code"])
        return {
            "partitions": sorted(
                [part["partition_index"], len(part["replica_nodes"]), len(part["isr_nodes"])]
                for part in described["partitions"]
            )
        }

    def topic_config(self, bootstrap: str, topic: str) -> Answer:
        resource = ConfigResource(ConfigResourceType.TOPIC, topic)
        found = self._admin(bootstrap).describe_configs([resource], config_filter="all")["topic"][topic]
        return {
            "configs": {
                name: [entry["value"], entry["config_source"] == "DEFAULT_CONFIG"]
                for name, entry in found.items()
            }
        }

    def set_topic_config(self, bootstrap: str, topic: str, configs: dict[str, str]) -> Answer:
        resource = ConfigResource(ConfigResourceType.TOPIC, topic, configs)
        outcome = self._admin(bootstrap).alter_configs([resource], raise_on_unknown=False)["topic"][topic]
        if outcome != "OK":
            _raise_for(int(outcome.partition("]")[0].removeprefix("[Error ")))
        return {}

    def add_partitions(self, bootstrap: str, topic: str, total: int) -> Answer:
        self._admin(bootstrap).create_partitions({topic: total})
        return {}

    def delete_records(self, bootstrap: str, topic: str, before: dict[str, int]) -> Answer:
        asked = {TopicPartition(topic, int(number)): offset for number, offset in before.items()}
        found = self._admin(bootstrap).delete_records(asked)
        return {"low": {part.partition: answer["low_watermark"] for part, answer in found.items()}}

    def list_groups(self, bootstrap: str) -> Answer:
        return {"groups": sorted(group["group_id"] for group in self._admin(bootstrap).list_groups())}

    def describe_group(self, bootstrap: str, group: str) -> Answer:
        found = self._admin(bootstrap).describe_groups([group])[group]
        held = [
            sum(len(topic["partitions"]) for topic in member["member_assignment"]["assigned_partitions"])
            for member in found["members"]
        ]
        return {
            "state": found["group_state"].lower(),
            "members": sorted(held),
            "hosts": len(found["members"]),
        }

    def delete_group(self, bootstrap: str, group: str) -> Answer:
        outcome = self._admin(bootstrap).delete_groups([group])[group]
        if outcome != "OK":
            raise getattr(kafka.errors, outcome)()
        return {}

    def group_offsets(self, bootstrap: str, group: str) -> Answer:
        found = self._admin(bootstrap).list_group_offsets([group])[group]
        return {"offsets": sorted([part.topic, part.partition, hit.offset] for part, hit in found.items())}

    def latest_by_admin(self, bootstrap: str, topic: str, partitions: list[int]) -> Answer:
        asked = {TopicPartition(topic, number): OffsetSpec.MAX_TIMESTAMP for number in partitions}
        found = self._admin(bootstrap).list_partition_offsets(asked)
        return {"offsets": {part.partition: hit.offset for part, hit in found.items()}}

    def describe_cluster(self, bootstrap: str) -> Answer:
        found = self._admin(bootstrap).describe_cluster()
        return {"nodes": len(found["brokers"]), "has_cluster_id": bool(found["cluster_id"])}


if __name__ == "__main__":
    serve(Client(), code_of)
