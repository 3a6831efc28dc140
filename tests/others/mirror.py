"""MirrorMaker 2 copies topics from or to an Apache Kafka cluster while the broker under test is killed."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from confluent_kafka import ConsumerGroupTopicPartitions, Message, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, ConfigResource, NewTopic, ResourceType

from tests.others import connect_worker
from tests.others.flow import PARTITIONS, create_topics, read_messages
from tests.others.program import WAIT_S, Program
from tests.others.servers import SMALL, START_TIMEOUT_S, kill_and_start
from tests.support.kafka_jars import NEWEST_VERSION
from tests.support.ports import free_port
from tests.support.process import wait_until
from tests.support.servers import GenuineKafka, Server
from tests.transactions.programs import new_consumer

_RECORDS = 3_000
_READ = 1_000
_GROUP = "readers"


def to_broker(broker: Server, directory: Path, *, version: str) -> None:
    """Copy from Apache Kafka to the broker, which is killed."""
    with _other_cluster(directory) as other:
        _mirror(other, broker, broker, directory, version, f"to-{version}")


def from_broker(broker: Server, directory: Path, *, version: str) -> None:
    """Copy from the broker, which is killed, to Apache Kafka."""
    with _other_cluster(directory) as other:
        _mirror(broker, other, broker, directory, version, f"from-{version}")


@contextmanager
def _other_cluster(directory: Path) -> Iterator[Server]:
    other = GenuineKafka(directory / "other", SMALL, version=NEWEST_VERSION, mode="kraft")
    other.start(START_TIMEOUT_S)
    try:
        yield other
    finally:
        other.stop()


def _mirror(
    source: Server, target: Server, killed: Server, directory: Path, version: str, topic: str
) -> None:
    config = {"retention.ms": "123456789", "max.message.bytes": "654321"}
    create_topics(source.address, NewTopic(topic, PARTITIONS, 1, config=config))
    copy = f"source.{topic}"
    _produce(source.address, topic, 0, _RECORDS // 2)
    _consume(source.address, topic)
    program = _start(source, target, directory, version, topic)
    try:
        _await_records(target.address, copy, _RECORDS // 4, program)
        _produce(source.address, topic, _RECORDS // 2, _RECORDS)
        kill_and_start(killed)
        _await_records(target.address, copy, _RECORDS, program)
        _await_offsets(source.address, target.address, topic, copy, program)
        _await_config(target.address, copy, config)
        original, copied = _contents(source.address, topic), _contents(target.address, copy)
        assert original == copied
        assert len(original) == _RECORDS
        topics = AdminClient({"bootstrap.servers": target.address}).list_topics(timeout=60).topics
        assert {"heartbeats", "source.checkpoints.internal"} <= set(topics)
    finally:
        program.stop()


def _start(source: Server, target: Server, directory: Path, version: str, topic: str) -> Program:
    settings = {
        "clusters": "source, target",
        "source.bootstrap.servers": source.address,
        "target.bootstrap.servers": target.address,
        "source->target.enabled": "true",
        "source->target.topics": topic,
        "source->target.groups": _GROUP,
        "target->source.enabled": "false",
        "tasks.max": "2",
        "replication.factor": "1",
        **{f"{kind}.topic.replication.factor": "1" for kind in ("checkpoints", "heartbeats", "offset-syncs")},
        **{f"{kind}.storage.replication.factor": "1" for kind in ("config", "offset", "status")},
        "target.exactly.once.source.support": "enabled",
        "dedicated.mode.enable.internal.rest": "true",
        "listeners": f"http://127.0.0.1:{free_port()}",
        "offset.lag.max": "0",
        "sync.group.offsets.enabled": "true",
        **{
            f"{what}.interval.seconds": "2"
            for what in ("sync.group.offsets", "emit.checkpoints", "refresh.topics", "refresh.groups")
        },
        "sync.topic.configs.interval.seconds": "5",
    }
    name = "org.apache.kafka.connect.mirror.MirrorMaker"
    return connect_worker.started(name, version, settings, directory / "mirror.log")


def _produce(address: str, topic: str, first: int, end: int) -> None:
    producer = Producer({"bootstrap.servers": address, "enable.idempotence": True, "log_level": 2})
    for number in range(first, end):
        headers: list[tuple[str, str | bytes | None]] = [("number", str(number)), ("empty", None)]
        producer.produce(
            topic, f"value {number}", f"key {number}", partition=number % PARTITIONS, headers=headers
        )
    assert producer.flush(60) == 0


def _consume(address: str, topic: str) -> None:
    """Read and commit some records of the group."""
    consumer = new_consumer(address, _GROUP)
    consumer.subscribe([topic])
    read: list[Message] = []
    try:
        while len(read) < _READ:
            read += [each for each in consumer.consume(_READ - len(read), 1.0) if each.error() is None]
        consumer.commit(asynchronous=False)
    finally:
        consumer.close()


def _contents(address: str, topic: str) -> list[tuple[object, ...]]:
    """Return the partition, key, value and headers of each record, sorted, with read_committed."""
    return sorted(
        (each.partition(), each.key(), each.value(), str(each.headers()))
        for each in read_messages(address, topic)
    )


def _await_records(address: str, topic: str, count: int, program: Program) -> None:
    admin = AdminClient({"bootstrap.servers": address, "log_level": 2})

    def enough() -> bool:
        assert program.running, "MirrorMaker 2 ended"
        return topic in admin.list_topics(timeout=60).topics and len(read_messages(address, topic)) >= count

    wait_until(enough, WAIT_S, f"{count} records in {topic}", 1.0)


def _await_offsets(source: str, target: str, topic: str, copy: str, program: Program) -> None:
    """Wait until the group has offsets in the copy. Each must point to the record at which the group goes on,
    or to an earlier one.
    """

    def translated() -> bool:
        assert program.running, "MirrorMaker 2 ended"
        return any(offset > 0 for offset in _committed(target, copy).values())

    wait_until(translated, WAIT_S, f"offsets of {_GROUP} in {copy}", 1.0)
    for partition, offset in _committed(source, topic).items():
        goes_on = _value_at(target, copy, partition, _committed(target, copy).get(partition, 0))
        assert goes_on <= _value_at(source, topic, partition, offset)


def _committed(address: str, topic: str) -> dict[int, int]:
    """Return the committed offsets of the group by partition."""
    admin = AdminClient({"bootstrap.servers": address, "log_level": 2})
    request = [ConsumerGroupTopicPartitions(_GROUP)]
    found = admin.list_consumer_group_offsets(request)[_GROUP].result(60).topic_partitions
    return {each.partition: each.offset for each in found if each.topic == topic and each.offset >= 0}


def _value_at(address: str, topic: str, partition: int, offset: int) -> int:
    """Return the number of the first record at or after an offset."""
    consumer = new_consumer(address, "contents")
    consumer.assign([TopicPartition(topic, partition, offset)])
    try:
        while True:
            message = consumer.poll(60)
            assert message is not None and message.error() is None, f"no record at {topic} {offset}"
            return int((message.value() or b"").decode().removeprefix("value "))
    finally:
        consumer.close()


def _await_config(address: str, topic: str, config: dict[str, str]) -> None:
    admin = AdminClient({"bootstrap.servers": address, "log_level": 2})
    resource = ConfigResource(ResourceType.TOPIC, topic)

    def synced() -> bool:
        found = admin.describe_configs([resource])[resource].result(60)
        return all(found[name].value == value for name, value in config.items())

    wait_until(synced, WAIT_S, f"settings of {topic}", 1.0)
