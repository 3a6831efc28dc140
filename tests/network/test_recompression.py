"""Topics with a compression.type: large batches are recompressed in a thread, not on the event loop."""

from __future__ import annotations

import hashlib
from pathlib import Path

from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from kafka_compat.storage.records.batch import read_header
from kafka_compat.storage.records.kinds import CompressionType
from tests.support.servers import KafkaCompatBroker

TOPIC = "packed"
RECORDS = 2400


def value_of(number: int) -> bytes:
    """Return 10 KB that are expensive for gzip."""
    seed = hashlib.sha256(b"%d" % number).hexdigest().encode()
    return b"%d:" % number + b"".join(seed[turn % 64 :] + seed[: turn % 64] for turn in range(160))


def test_recompressed_pipelined_batches_stay_in_order(broker: KafkaCompatBroker) -> None:
    admin = AdminClient({"bootstrap.servers": broker.address})
    config = {"compression.type": "gzip", "max.message.bytes": "2000000"}
    admin.create_topics([NewTopic(TOPIC, 1, 1, config=config)])[TOPIC].result(30)
    before = _ticks_beside_the_loop(broker)
    producer = Producer(
        {
            "bootstrap.servers": broker.address,
            "enable.idempotence": True,
            "linger.ms": 20,
            "batch.size": 1_000_000,
            "message.max.bytes": 1_900_000,
        }
    )
    for number in range(RECORDS):
        producer.produce(TOPIC, value_of(number))
    assert producer.flush(60) == 0
    assert _read(broker.address) == [value_of(number) for number in range(RECORDS)]
    data = (broker.log_dir / f"{TOPIC}-0" / "00000000000000000000.log").read_bytes()
    header = read_header(data)
    assert header.compression is CompressionType.GZIP
    assert header.record_count > 10
    assert _ticks_beside_the_loop(broker) > before + 5, "no batch was compressed in a thread"


def _ticks_beside_the_loop(broker: KafkaCompatBroker) -> int:
    """Return the CPU time of all threads except the first."""
    ticks = 0
    for task in Path(f"/proc/{broker.pid}/task").iterdir():
        if int(task.name) != broker.pid:
            fields = (task / "stat").read_text().rsplit(")", 1)[1].split()
            ticks += int(fields[11]) + int(fields[12])
    return ticks


def _read(address: str) -> list[bytes]:
    consumer = Consumer({"bootstrap.servers": address, "group.id": "reader", "enable.auto.commit": False})
    consumer.assign([TopicPartition(TOPIC, 0, 0)])
    found: list[bytes] = []
    while len(found) < RECORDS:
        for message in consumer.consume(RECORDS, 5):
            assert message.error() is None
            value = message.value()
            assert value is not None
            found.append(value)
    consumer.close()
    return found
