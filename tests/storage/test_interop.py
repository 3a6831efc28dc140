"""Log directories shared with Apache Kafka 3.9.1: Kafka's dump tool reads the files written here, directories
written by Kafka are opened here after a clean shutdown and after kill -9, and Kafka continues on directories
written here.
"""

from __future__ import annotations

import os
import re
import struct
import time
from collections.abc import Iterator
from pathlib import Path
from uuid import uuid4

import pytest
from confluent_kafka import Consumer, KafkaError, Message, Producer, TopicPartition

from kafka_compat.clock import SystemClock
from kafka_compat.storage.config import LogConfig
from kafka_compat.storage.directories.directory_claim import stored_meta_properties
from kafka_compat.storage.directories.log_dirs import LogDirs
from kafka_compat.storage.log.log import Log
from kafka_compat.storage.records.batch import read_header
from kafka_compat.storage.records.kinds import CompressionType, ControlRecordType
from kafka_compat.storage.records.records import (
    EndTransactionMarker,
    Record,
    build_batch,
    build_marker,
    iter_records,
)
from tests.support import java
from tests.support.servers import GenuineKafka

SMALL_SEGMENTS = LogConfig(segment_bytes=30_000, index_interval_bytes=1_000)
CODECS = list(CompressionType)


def open_dirs(directory: Path, config: LogConfig = SMALL_SEGMENTS) -> LogDirs:
    stored = stored_meta_properties([str(directory)])
    dirs = LogDirs(
        [str(directory)],
        broker_id=int(stored.get("broker.id", "1")),
        cluster_id=stored.get("cluster.id", "interop"),
        clock=SystemClock(),
        config_for=lambda _: config,
    )
    dirs.load()
    return dirs


def append(log: Log, values: list[bytes], **batch: int | bool) -> int:
    """Append one batch with these values, and return its first offset."""
    now_ms = SystemClock().now_ms()
    records = [
        Record(timestamp=now_ms - 37 * (index % 5), key=b"k%d" % index, value=value, headers=[("h", b"1")])
        for index, value in enumerate(values)
    ]
    content = memoryview(bytearray(build_batch(records, **batch)))  # type: ignore[arg-type]
    return log.append_as_leader(content, leader_epoch=0, now_ms=now_ms).first_offset


def values_of(log: Log) -> dict[int, bytes | None]:
    """Map each offset to its value, without control records."""
    values = {}
    offset = log.log_start_offset
    while offset < log.log_end_offset:
        part = log.read(offset, 100_000)
        assert part is not None
        data = memoryview(part.read())
        while data:
            header = read_header(data)
            if not header.is_control:
                values.update({record.offset: record.value for record in iter_records(data)})
            offset = header.next_offset
            data = data[header.size_bytes :]
    return values


@pytest.fixture
def written(tmp_path: Path) -> Path:
    """Write and cleanly close a log directory with every codec, idempotent batches, and a committed and an
    aborted transaction.
    """
    dirs = open_dirs(tmp_path / "data")
    log = dirs.create("t", 0, uuid4())
    sequence = 0
    for number in range(200):
        values = [os.urandom(20 + number) for _ in range(1 + number % 7)]
        codec = CODECS[number % len(CODECS)]
        append(log, values, compression=codec, producer_id=7, producer_epoch=0, base_sequence=sequence)
        sequence += len(values)
    for number, marker in enumerate((ControlRecordType.COMMIT, ControlRecordType.ABORT)):
        append(
            log, [b"transactional"], producer_id=8, producer_epoch=1, base_sequence=number, transactional=True
        )
        now_ms = SystemClock().now_ms()
        end = EndTransactionMarker(marker, coordinator_epoch=0)
        content = build_marker(end, producer_id=8, producer_epoch=1, timestamp=now_ms)
        log.append_as_leader(memoryview(content), leader_epoch=0, now_ms=now_ms, internal=True)
    append(log, [b"last"])
    assert log.segment_count > 2
    dirs.close({("t", 0): log.log_end_offset})
    return tmp_path / "data" / "t-0"


def dump(files: list[Path], *options: str) -> str:
    """Run DumpLogSegments on the files, and return its output. Raises AssertionError if it reports a
    problem.
    """
    output = java.run(
        "kafka.tools.DumpLogSegments", "--files", ",".join(map(str, files)), *options, timeout_s=120
    ).stdout
    complaint = re.search(
        r"^.*(error|mismatch|non-consecutive|not found|corrupt|invalid|exception).*$", output, re.I | re.M
    )
    assert complaint is None, complaint.group()
    return output


def test_kafkas_dump_tool_reads_all_our_files(written: Path) -> None:
    files = sorted(written.glob("0*"))
    kinds = {file.suffix for file in files}
    assert kinds == {".log", ".index", ".timeindex", ".txnindex", ".snapshot"}
    output = dump(files, "--deep-iteration", "--print-data-log")
    offsets = [int(offset) for offset in re.findall(r"^\| offset: (\d+) ", output, re.M)]
    assert offsets == list(range(len(offsets)))
    assert "endTxnMarker: ABORT" in output
    assert re.search(r"producerId: 8 .*", output)
    assert len(re.findall(r"isvalid: true", output)) == 205
    assert "isvalid: false" not in output
    sane = dump(sorted(written.glob("*index")), "--index-sanity-check")
    assert sane.count("passed sanity check") == len(list(written.glob("*.index"))) + len(
        list(written.glob("*.timeindex"))
    )


class Cluster:
    """An Apache Kafka broker whose topics have small segments, and clients for it."""

    def __init__(self, directory: Path) -> None:
        self.broker = GenuineKafka(
            directory,
            {
                "log.segment.bytes": "30000",
                "log.index.interval.bytes": "1000",
                "auto.create.topics.enable": "true",
            },
        )
        self.broker.start()

    def produce(self, count: int) -> dict[int, bytes]:
        """Produce idempotent records with every codec, and an aborted transaction. Map each offset to its
        value.
        """
        found: dict[int, bytes] = {}

        def delivered(error: KafkaError | None, message: Message) -> None:
            assert error is None
            offset, value = message.offset(), message.value()
            assert offset is not None
            assert value is not None
            found[offset] = value

        for codec in ("none", "gzip", "snappy", "lz4", "zstd"):
            producer = Producer(
                {
                    "bootstrap.servers": self.broker.address,
                    "enable.idempotence": True,
                    "compression.type": codec,
                    "batch.num.messages": 20,
                    "linger.ms": 20,
                }
            )
            for _ in range(count // 5):
                producer.produce("t", os.urandom(60).hex().encode(), on_delivery=delivered)
            assert producer.flush(30) == 0
        settings = {"bootstrap.servers": self.broker.address, "transactional.id": "interop"}
        transactional = Producer(settings)
        transactional.init_transactions(30)
        transactional.begin_transaction()
        transactional.produce("t", b"aborted", on_delivery=delivered)
        transactional.flush(30)
        transactional.abort_transaction(30)
        # EndTxn responds before the markers are written; the next producer is accepted only afterwards.
        Producer(settings).init_transactions(30)
        return found

    def consume(self, count: int, isolation: str) -> dict[int, bytes]:
        """Consume `count` records from the start. Map each offset to its value."""
        consumer = Consumer(
            {
                "bootstrap.servers": self.broker.address,
                "group.id": "interop",
                "isolation.level": isolation,
                "enable.auto.commit": False,
                "check.crcs": True,
            }
        )
        consumer.assign([TopicPartition("t", 0, 0)])
        found: dict[int, bytes] = {}
        deadline = time.monotonic() + 60
        while len(found) < count and time.monotonic() < deadline:
            for message in consumer.consume(1000, 1.0):
                offset, value = message.offset(), message.value()
                assert message.error() is None
                assert offset is not None
                assert value is not None
                found[offset] = value
        consumer.close()
        return found


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    running = Cluster(tmp_path / "genuine")
    yield running
    running.broker.stop()


def test_log_directories_are_interchangeable_with_apache_kafka(cluster: Cluster) -> None:
    sent = cluster.produce(1_000)
    broker = cluster.broker
    # Stop only the broker, because its ZooKeeper stores the topic.
    assert broker.process.stop() in (0, 143)

    # After a clean shutdown, no log is scanned.
    config = LogConfig(segment_bytes=30_000, index_interval_bytes=1_000)
    dirs = open_dirs(broker.log_dir, config)
    log = dirs.logs["t", 0]
    assert log.topic_id is not None
    assert values_of(log) == sent
    assert log.segment_count > 3
    (aborted,) = log.aborted_transactions(0, log.log_end_offset)
    assert sent[aborted.first_offset] == b"aborted"
    assert log.last_stable_offset(log.log_end_offset) == log.log_end_offset
    assert len(log.producers.entries) == 6
    middle = sorted(sent)[len(sent) // 2]
    assert log.read(middle, 1) is not None

    # The sequence numbers of Kafka's idempotent producer are kept: its retry is recognized as a duplicate.
    (entry, *_) = log.producers.entries.values()
    assert entry.last_sequence >= 0

    ours = [b"ours %d" % number for number in range(500)]
    for start in range(0, 500, 50):
        append(log, ours[start : start + 50], compression=CODECS[start // 50 % len(CODECS)])
    expected = values_of(log)
    dirs.close({key: log.log_end_offset for key, log in dirs.logs.items()})

    # Kafka opens the log, reads all records, and appends.
    broker.start()
    more = cluster.produce(100)
    expected.update(more)
    committed = {offset: value for offset, value in expected.items() if value != b"aborted"}
    assert cluster.consume(len(committed), "read_committed") == committed
    errors = [
        line
        for line in broker.log.read_text().splitlines()
        if re.search(r" (ERROR|WARN) .*(t-0|index|snapshot)", line)
    ]
    assert errors == []

    # After a kill, with indexes preallocated by Kafka, every record is recovered.
    broker.kill()
    indexes = sorted((broker.log_dir / "t-0").glob("*.index"))
    assert indexes[-1].stat().st_size >= 10 * 1024 * 1024 // 2
    dirs = open_dirs(broker.log_dir, config)
    log = dirs.logs["t", 0]
    assert values_of(log) == expected
    dirs.close()
    assert struct.unpack(">i", indexes[-1].read_bytes()[-8:-4])[0] > 0 or indexes[-1].stat().st_size == 0
