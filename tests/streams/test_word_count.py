"""Kafka Streams counts words with exactly_once_v2 while the broker is killed: the counts of each word are 1,
2, 3, … without gaps or repetitions.
"""

from __future__ import annotations

import random
import subprocess
from collections import Counter, defaultdict
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition

from tests.support import campaign, java, kafka_jars
from tests.support.process import wait_until
from tests.support.servers import StartBroker
from tests.transactions.programs import create_topic, new_consumer

PROGRAM = Path(__file__).with_name("WordCount.java")
WORDS = [f"word-{number}" for number in range(50)]
PARTITIONS = 2
SETTLE_S = 120

pytestmark = pytest.mark.timeout(900)


def counts(address: str) -> dict[str, list[int]]:
    """Return the values of `counts` by word and in order, read with read_committed."""
    consumer = new_consumer(address, "reader")
    found: dict[str, list[int]] = defaultdict(list)
    ended: set[int] = set()
    try:
        consumer.assign([TopicPartition("counts", index, 0) for index in range(PARTITIONS)])
        while len(ended) < PARTITIONS:
            for message in consumer.consume(500, 1.0):
                if message.error() is not None:
                    ended.add(message.partition() or 0)
                else:
                    found[(message.key() or b"").decode()].append(int(message.value() or b"0"))
    finally:
        consumer.close()
    return found


def counted(consumer: Consumer) -> int:
    """Return the number of records in `counts`, including markers and aborted records."""
    return sum(
        consumer.get_watermark_offsets(TopicPartition("counts", index), 5)[1] for index in range(PARTITIONS)
    )


@pytest.mark.parametrize("version", ["3.9.1", "4.1.0"] if campaign.enabled() else ["4.1.0"])
def test_word_count_is_correct_with_exactly_once_v2(
    start_broker: StartBroker, tmp_path: Path, version: str
) -> None:
    lines, kills = campaign.rounds(300, 20_000), campaign.rounds(1, 5)
    broker = start_broker({"kafka.compat.transaction.version": "2", "offsets.topic.num.partitions": "2"})
    for topic in ("lines", "counts"):
        create_topic(broker.address, topic, PARTITIONS)
    line = java.command(
        str(PROGRAM),
        broker.address,
        str(tmp_path / "state"),
        version=version,
        extra_class_path=[f"{kafka_jars.streams(version)}/*"],
    )
    choice = random.Random(7)
    expected: Counter[str] = Counter()
    log = tmp_path / "streams.log"
    with log.open("w") as output:
        streams = subprocess.Popen(line, stdin=subprocess.PIPE, stdout=output, stderr=output)
    progress = Consumer({"bootstrap.servers": broker.address, "group.id": "progress", "log_level": 2})
    try:
        producer = Producer({"bootstrap.servers": broker.address, "enable.idempotence": True, "log_level": 2})
        for part in range(kills + 1):
            for number in range(lines // (kills + 1)):
                words = choice.choices(WORDS, k=5)
                expected.update(words)
                producer.produce("lines", " ".join(words), partition=number % PARTITIONS)
            assert producer.flush(60) == 0
            wait_until(lambda: counted(progress) > expected.total() // 2, SETTLE_S, "half of the counts")
            if part < kills:
                broker.restart(kill=True)

        def complete() -> bool:
            assert streams.poll() is None, log.read_text()[-3000:]
            return sum(map(len, counts(broker.address).values())) >= expected.total()

        wait_until(complete, SETTLE_S, "all counts", 1.0)
        found = counts(broker.address)
        everything = counted(progress)
    finally:
        progress.close()
        assert streams.stdin is not None
        streams.stdin.close()
        try:
            streams.wait(30)
        finally:
            streams.kill()
    assert found == {word: list(range(1, count + 1)) for word, count in expected.items()}
    print(f"{version}: {expected.total()} words, {kills} kills, {everything} records including aborted ones")
