"""kafka-compat pipeline copy: the target topic as read_committed consumers (confluent-kafka) read it."""

import itertools
import random
import threading
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from kafka_compat.cli import main
from kafka_compat.pipelines.errors import JobFailed
from kafka_compat.pipelines.transactional_writer import Slices, write_slice
from tests.pipelines.cluster import Cluster
from tests.pipelines.comparisons import assert_same, committed_records
from tests.pipelines.flights import FLIGHTS, PARTITIONS, flights
from tests.pipelines.job import Job, batch_of, kill_and_finish, run_here
from tests.support.campaign import enabled

SAMPLE = FLIGHTS if enabled() else 12_000
WHEN = 1_700_000_000_000


@pytest.mark.timeout(1800)
@pytest.mark.skipif(not enabled(), reason="acceptance test: needs --campaign")
def test_a_copy_is_exact_after_a_kill_and_a_rerun(
    kafka: Cluster, connector_jars: Path, tmp_path: Path
) -> None:
    """After kills of the job and the broker, each record is committed exactly once."""
    topic, copy = kafka.create_topic(partitions=PARTITIONS), kafka.create_topic(partitions=PARTITIONS)
    kafka.fill(topic, PARTITIONS, flights(SAMPLE))
    arguments = ["--bootstrap-server", kafka.address, "--topic", topic, "--to-topic", copy]
    arguments += ["--to", str(tmp_path / "copy"), "--group", f"{copy}-position"]
    arguments += ["--jars", str(connector_jars), "--master", "local[2]"]
    arguments += ["--offsets-per-batch", str(batch_of(SAMPLE))]
    report = kill_and_finish("copy", arguments, kafka.server)
    assert report["copied_total"] == SAMPLE
    assert_same(kafka, topic, copy, SAMPLE)
    position = Consumer({"bootstrap.servers": kafka.address, "group.id": f"{copy}-position"})
    shown = position.committed([TopicPartition(topic, p) for p in range(PARTITIONS)], 30)
    position.close()
    assert [entry.offset for entry in shown] == [SAMPLE // PARTITIONS] * PARTITIONS


@pytest.mark.timeout(3600)
@pytest.mark.skipif(not enabled(), reason="acceptance test: needs --campaign")
def test_a_hundred_thousand_records_are_copied_despite_twenty_kills(
    kafka: Cluster, connector_jars: Path, tmp_path: Path
) -> None:
    """Kill the job 20 times and the broker 5 times, at random moments."""
    topic, copy = kafka.create_topic(partitions=PARTITIONS), kafka.create_topic(partitions=PARTITIONS)
    kafka.fill(topic, PARTITIONS, itertools.islice(flights(), 100_000))
    arguments = ["--bootstrap-server", kafka.address, "--topic", topic, "--to-topic", copy]
    arguments += ["--to", str(tmp_path / "copy"), "--jars", str(connector_jars), "--master", "local[2]"]
    arguments += ["--offsets-per-batch", "4000"]
    for kill in range(20):
        job = Job("copy", *arguments)
        job.await_message("offsets to read")
        if kill % 4 == 1:
            threading.Event().wait(random.uniform(0, 2))
            kafka.server.restart(kill=True)
        if kill % 2 == 1:
            job.await_message(": batch ")
        threading.Event().wait(random.uniform(0, 2))
        job.kill(whole_group=kill % 3 != 0)
    report = run_here("copy", *arguments)
    assert report["copied_total"] == 100_000
    assert_same(kafka, topic, copy, 100_000)


def slice_of(topic: str, count: int) -> Any:
    """Return the first `count` records of partition 0, in Spark's format."""
    kind = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))
    columns = {
        "topic": pa.array([topic] * count),
        "partition": pa.array([0] * count, pa.int32()),
        "offset": pa.array(range(count), pa.int64()),
        "timestamp": pa.array([WHEN * 1000] * count, pa.timestamp("us", "UTC")),
        "key": pa.array([None] * count, pa.binary()),
        "value": pa.array([str(i).encode() for i in range(count)], pa.binary()),
        "headers": pa.array([None] * count, kind),
    }
    return pa.RecordBatch.from_pydict(columns)


def test_a_zombie_writer_cannot_add_records(kafka: Cluster) -> None:
    """A writer is suspended in its transaction, its successor completes the work, and then the first writer
    resumes.
    """
    topic, copy = kafka.create_topic(), kafka.create_topic()
    kafka.fill(topic, 1, [(None, b"v", WHEN, [])] * 10)
    plan = Slices({"bootstrap.servers": kafka.address}, f"{copy}-group", copy, True, {topic: {0: 10}})
    group = Consumer({"bootstrap.servers": kafka.address, "group.id": plan.group})
    group.commit(offsets=[TopicPartition(topic, 0, 0)], asynchronous=False)
    group.close()

    def until_the_successor_is_done() -> Any:
        yield slice_of(topic, 5)
        done = list(write_slice(iter([slice_of(topic, 10)]), plan))
        assert done[0].to_pydict() == {"copied": [10], "skipped": [0]}
        yield slice_of(topic, 10).slice(5)

    with pytest.raises(KafkaException) as refused:
        list(write_slice(until_the_successor_is_done(), plan))
    # _FATAL: librdkafka detected the fencing before it received the next record.
    fenced = (KafkaError._FENCED, KafkaError.PRODUCER_FENCED, KafkaError._STATE, KafkaError._FATAL)
    assert refused.value.args[0].code() in fenced
    again = list(write_slice(iter([slice_of(topic, 10)]), plan))
    assert again[0].to_pydict() == {"copied": [0], "skipped": [10]}
    values = [message.value() for message in committed_records(kafka, copy, 1, 10)[0]]
    assert values == [str(i).encode() for i in range(10)]


def test_a_record_rejected_by_the_target_fails_the_job(kafka: Cluster) -> None:
    """No record of its batch is committed, and the job's position is unchanged."""
    topic, copy = kafka.create_topic(), f"{kafka.create_topic()}-small"
    admin = AdminClient({"bootstrap.servers": kafka.address})
    admin.create_topics([NewTopic(copy, 1, 1, config={"max.message.bytes": "1000"})])[copy].result(30)
    plan = Slices({"bootstrap.servers": kafka.address}, f"{copy}-group", copy, True, {topic: {0: 10}})
    group = Consumer({"bootstrap.servers": kafka.address, "group.id": plan.group})
    group.commit(offsets=[TopicPartition(topic, 0, 0)], asynchronous=False)
    small = slice_of(topic, 10)
    values = pa.array([b"v"] * 9 + [random.randbytes(5000)], pa.binary())
    large = small.set_column(small.schema.get_field_index("value"), "value", values)
    with pytest.raises(KafkaException, match=r"MSG_SIZE_TOO_LARGE|too large"):
        list(write_slice(iter([large]), plan))
    committed_records(kafka, copy, 1, 0)
    assert group.committed([TopicPartition(topic, 0)], 30)[0].offset == 0
    group.close()


def test_a_batch_is_not_copied_if_the_group_has_no_committed_offset(kafka: Cluster) -> None:
    """After the group's offsets have expired, for example, the job cannot determine which records are already
    copied.
    """
    topic, copy = kafka.create_topic(), kafka.create_topic()
    plan = Slices({"bootstrap.servers": kafka.address}, f"{copy}-group", copy, True, {topic: {0: 10}})
    with pytest.raises(JobFailed, match=f"no longer has an offset for {topic}-0"):
        list(write_slice(iter([slice_of(topic, 10)]), plan))
    assert kafka.ends(copy).total() == 0


def test_aborted_records_are_not_copied_and_new_partitions_are_copied(
    spark: Any, kafka: Cluster, connector_jars: Path, tmp_path: Path
) -> None:
    """Copy from transactions to a new topic. Then add partitions to the source, and the job adds them to the
    target.
    """
    topic = kafka.create_topic(partitions=2)
    producer = kafka.producer(**{"transactional.id": f"{topic}-source"})
    producer.init_transactions(30)
    for value, commit in ((b"yes", True), (b"no", False), (b"also", True)):
        producer.begin_transaction()
        for partition in (0, 1):
            producer.produce(topic, value, partition=partition, timestamp=WHEN, headers=[("h", None)])
        producer.flush(30)
        producer.commit_transaction(30) if commit else producer.abort_transaction(30)
    arguments = ["--bootstrap-server", kafka.address, "--topic", topic, "--to-topic", f"{topic}-copy"]
    arguments += ["--to", str(tmp_path / "copy"), "--jars", str(connector_jars), "--create"]
    assert run_here("copy", *arguments)["copied"] == 4
    kafka.add_partitions(topic, 3)
    kafka.fill(topic, 3, [(b"k", b"new", WHEN, [])] * 3)
    assert run_here("copy", *arguments)["copied"] == 3
    found = committed_records(kafka, f"{topic}-copy", 3, 7)
    values = [[message.value() for message in messages] for messages in found]
    assert values == [[b"yes", b"also", b"new"], [b"yes", b"also", b"new"], [b"new"]]
    assert found[0][0].headers() == [("h", None)] and found[0][0].timestamp()[1] == WHEN


def test_a_job_that_cannot_start_reports_the_reason(kafka: Cluster, tmp_path: Path, capsys: Any) -> None:
    topic = kafka.create_topic()
    arguments = ["pipeline", "copy", "--bootstrap-server", kafka.address, "--topic", topic]
    arguments += ["--to", str(tmp_path / "copy")]
    expected: dict[str, list[str]] = {"--to-topic, or another": [], "into itself": ["--to-topic", topic]}
    for message, more in expected.items():
        assert main([*arguments, *more]) == 2
        assert message in capsys.readouterr().err
    split = ["--to-topic", "x", "--kafka-option", "minPartitions=4"]
    assert main([*arguments, *split]) == 2
    assert "one task" in capsys.readouterr().err
    assert not (tmp_path / "copy").exists()
