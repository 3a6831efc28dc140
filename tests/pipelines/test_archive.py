"""kafka-compat pipeline archive: killed with kill -9, restarted, and read by pyarrow and kafka-python."""

import json
import re
import signal
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow.dataset as dataset
import pyarrow.parquet as pq
import pytest
from confluent_kafka import TopicPartition
from confluent_kafka.admin import AdminClient

from kafka_compat.pipelines.archive import ArchiveJob, ArchiveReport, run_archive
from kafka_compat.pipelines.errors import NotStarted, RecordsLost
from kafka_compat.pipelines.session import SparkSettings
from tests.pipelines.cluster import Cluster
from tests.pipelines.comparisons import COLUMNS, assert_equals_log
from tests.pipelines.flights import FLIGHTS, PARTITIONS, flights
from tests.pipelines.job import Job, batch_of, kill_and_finish
from tests.support.campaign import enabled
from tests.support.ports import free_port
from tests.support.servers import GenuineKafka

SAMPLE = FLIGHTS if enabled() else 24_000
FILE_NAME = re.compile(r"topic_dir=([^/]+)/day_utc=(\d{4}-\d\d-\d\d)/(\d+)-(\d+)-(\d+)\.parquet")


def archive_of(directory: Path) -> Any:
    """Return the archive as a plain Parquet reader sees it, or None if it has no files."""
    if not any(directory.glob("topic_dir=*/*/*.parquet")):
        return None
    return dataset.dataset(directory, format="parquet", partitioning="hive").to_table()


def assert_none_twice(directory: Path) -> None:
    table = archive_of(directory)
    if table is not None:
        keys = table.select(["topic", "partition", "offset"])
        assert keys.group_by(["topic", "partition", "offset"]).aggregate([]).num_rows == table.num_rows


def assert_layout(directory: Path) -> None:
    """Check that paths match the contents (topic, day, partition, first and last offset), and check the
    columns and the order of offsets.
    """
    for path in directory.glob("topic_dir=*/*/*"):
        match = FILE_NAME.fullmatch(str(path.relative_to(directory)))
        assert match, f"unexpected name {path}"
        topic, day, partition, first, last = match.groups()
        table = pq.ParquetFile(path).read()
        assert table.column_names == COLUMNS
        assert set(table.column("topic").to_pylist()) == {topic}
        assert set(table.column("partition").to_pylist()) == {int(partition)}
        assert {str(timestamp.date()) for timestamp in table.column("timestamp").to_pylist()} == {day}
        offsets = table.column("offset").to_pylist()
        assert offsets == sorted(offsets)
        assert (offsets[0], offsets[-1]) == (int(first), int(last))
        leaves = pq.read_metadata(path).schema
        types = {leaves.column(i).path: leaves.column(i) for i in range(len(leaves))}
        assert types["timestamp"].converted_type == "TIMESTAMP_MICROS"


@pytest.mark.timeout(1200)  # starts a Spark driver in every round, possibly on a busy machine
def test_an_archive_is_complete_after_a_kill_and_a_rerun(
    kafka: Cluster, connector_jars: Path, tmp_path: Path
) -> None:
    """After kills of the job and the broker, the archive never contains duplicates and is complete at the
    end.
    """
    archive, topic = tmp_path / "archive", kafka.create_topic(partitions=PARTITIONS)
    kafka.fill(topic, PARTITIONS, flights(SAMPLE))
    arguments = ["--bootstrap-server", kafka.address, "--topic", topic, "--to", str(archive)]
    arguments += ["--jars", str(connector_jars), "--master", "local[2]"]
    arguments += ["--offsets-per-batch", str(batch_of(SAMPLE))]
    report = kill_and_finish("archive", arguments, kafka.server, killed=lambda: assert_none_twice(archive))
    assert report["complete"]
    size = SAMPLE // PARTITIONS
    assert [
        (
            p["topic"],
            p["partition"],
            p["first_offset"],
            p["last_offset"],
            p["rows"],
            p["gaps"],
            p["offsets_behind"],
        )
        for p in report["partitions"]
    ] == [(topic, partition, 0, size - 1, size, 0, 0) for partition in range(PARTITIONS)]
    assert_none_twice(archive)
    assert_layout(archive)
    assert assert_equals_log(archive, kafka, topic, PARTITIONS) == SAMPLE


@pytest.fixture
def archive(spark: Any, kafka: Cluster, connector_jars: Path, tmp_path: Path) -> Callable[..., ArchiveReport]:
    """`archive(topic, …)` runs the job in this process's Spark session, with the output directory tmp_path /
    "archive".
    """

    def run(*topics: str, to: Path = tmp_path / "archive", **settings: Any) -> ArchiveReport:
        job = {
            "bootstrap_servers": kafka.address,
            "directory": to,
            "topics": topics,
            "spark": SparkSettings(jars=connector_jars),
        }
        return run_archive(ArchiveJob(**{**job, **settings}))

    return run


def test_a_rerun_continues_an_archive_where_it_stopped(
    kafka: Cluster, archive: Callable[..., ArchiveReport], tmp_path: Path
) -> None:
    topic = kafka.create_topic(partitions=2)
    midnight = 1_700_006_400_000
    back_and_forth = [(b"k", str(i).encode(), midnight + (-1) ** i * 1000, [("h", None)]) for i in range(40)]
    kafka.fill(topic, 2, back_and_forth)
    assert archive(topic).rows == 40
    assert archive(topic).rows == 0
    kafka.add_partitions(topic, 3)
    kafka.fill(topic, 3, [(None, None, midnight + i, []) for i in range(30)])
    report = archive(topic)
    assert report.rows == 30
    lines = report.as_text().splitlines()
    assert lines[0].split() == ["TOPIC", "PARTITION", "FIRST-OFFSET", "LAST-OFFSET", "ROWS", "GAPS"]
    assert [line.split() for line in lines[1:4]] == [
        [topic, "0", "0", "29", "30", "0"],
        [topic, "1", "0", "29", "30", "0"],
        [topic, "2", "0", "9", "10", "0"],
    ]
    assert_layout(tmp_path / "archive")
    assert assert_equals_log(tmp_path / "archive", kafka, topic, 3) == 70


def test_topics_are_archived_by_pattern_and_with_source_options(
    kafka: Cluster, archive: Callable[..., ArchiveReport], spark: Any, tmp_path: Path
) -> None:
    for name in ("metrics-a", "metrics-b", "other-metrics-a"):
        kafka.create_topic(name, 2)
        kafka.fill(name, 2, [(None, str(i).encode(), 1_700_000_000_000, []) for i in range(1000)])
    options = ["minPartitions=7", "max.poll.records=100", "kafka.fetch.max.bytes=1000000"]
    report = archive(pattern="metrics-.*", kafka_options=options)
    assert {entry["topic"] for entry in report.as_json()["partitions"]} == {"metrics-a", "metrics-b"}
    assert_layout(tmp_path / "archive")
    assert assert_equals_log(tmp_path / "archive", kafka, "metrics-a", 2) == 1000
    by_spark = spark.read.parquet(str(tmp_path / "archive"))
    assert by_spark.select("topic", "partition", "offset").distinct().count() == by_spark.count() == 2000


def test_records_deleted_before_they_were_archived_are_reported(
    kafka: Cluster, archive: Callable[..., ArchiveReport]
) -> None:
    topic = kafka.create_topic()
    kafka.fill(topic, 1, [(None, b"v", 1_700_000_000_000, [])] * 10)
    archive(topic)
    kafka.fill(topic, 1, [(None, b"v", 1_700_000_000_000, [])] * 10)
    partition = TopicPartition(topic, 0, 15)
    admin = AdminClient({"bootstrap.servers": kafka.address})
    admin.delete_records([partition])[partition].result(30)
    with pytest.raises(RecordsLost, match=f"{topic}-0: offsets 10 to 14 were deleted") as lost:
        archive(topic)
    assert "--accept-loss" in lost.value.hint
    entry = archive(topic, accept_loss=True).as_json()["partitions"][0]
    assert (entry["rows"], entry["gaps"], entry["gap_ranges"]) == (15, 5, [[10, 14]])


def test_a_recreated_topic_is_rejected(kafka: Cluster, archive: Callable[..., ArchiveReport]) -> None:
    topic = kafka.create_topic()
    kafka.fill(topic, 1, [(None, b"old", 1_700_000_000_000, [])] * 5)
    archive(topic)
    kafka.delete_topic(topic)
    kafka.create_topic(topic)
    kafka.fill(topic, 1, [(None, b"new", 1_700_000_000_000, [])] * 9)
    with pytest.raises(RecordsLost, match="deleted and recreated"):
        archive(topic)


def test_offset_gaps_left_by_transactions_are_reported(
    genuine: GenuineKafka, archive: Callable[..., ArchiveReport], tmp_path: Path
) -> None:
    """Control records and aborted records are gaps in the offsets, but not errors."""
    cluster = Cluster(genuine)
    topic = cluster.create_topic()
    producer = cluster.producer(**{"transactional.id": "archive-test"})
    producer.init_transactions(30)
    for commit in (True, False, True):
        producer.begin_transaction()
        for i in range(3):
            producer.produce(topic, str(i).encode())
        producer.flush(30)
        producer.commit_transaction(30) if commit else producer.abort_transaction(30)
    options = {"bootstrap_servers": cluster.address, "kafka_options": ["isolation.level=read_committed"]}
    entry = archive(topic, **options).as_json()["partitions"][0]
    assert (entry["first_offset"], entry["last_offset"], entry["rows"]) == (0, 10, 6)
    assert (entry["gaps"], entry["gap_ranges"]) == (6, [[3, 7], [11, 11]])
    assert archive(topic, **options).rows == 0
    assert archive_of(tmp_path / "archive").column("offset").to_pylist() == [0, 1, 2, 8, 9, 10]


def test_a_job_that_cannot_start_reports_the_reason_and_writes_nothing(
    kafka: Cluster, archive: Callable[..., ArchiveReport], tmp_path: Path
) -> None:
    target = tmp_path / "archive"
    topic = kafka.create_topic()
    with pytest.raises(NotStarted, match="No such topic"):
        archive("absent")
    with pytest.raises(NotStarted, match="matches"):
        archive(pattern="absent-.*")
    with pytest.raises(NotStarted, match="does not respond"):
        options = ["default.api.timeout.ms=1500", "request.timeout.ms=1000"]
        archive(topic, bootstrap_servers=f"127.0.0.1:{free_port()}", kafka_options=options)
    with pytest.raises(NotStarted, match="the job sets"):
        archive(topic, kafka_options=["failOnDataLoss=false"])
    with pytest.raises(NotStarted, match="name=value"):
        archive(topic, kafka_options=["nonsense"])
    assert not target.exists()
    target.mkdir()
    (target / "notes.txt").write_text("mine")
    with pytest.raises(NotStarted, match="not an archive"):
        archive(topic)
    assert [path.name for path in target.iterdir()] == ["notes.txt"]


def test_a_continuous_archive_runs_until_sigterm(
    kafka: Cluster,
    archive: Callable[..., ArchiveReport],
    connector_jars: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Stdout contains only the report, stderr only the job's own messages, and Spark's log file is
    deleted.
    """
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    topic, target = kafka.create_topic(), tmp_path / "archive"
    arguments = ["--bootstrap-server", kafka.address, "--topic", topic, "--to", str(target)]
    job = Job(
        "archive", *arguments, "--jars", str(connector_jars), "--continuous", "--interval-s", "0.5", "--json"
    )
    job.await_message("offsets to read")
    kafka.fill(topic, 1, [(None, b"v", 1_700_000_000_000, [])] * 5)
    job.await_message(" 5 rows")
    with pytest.raises(NotStarted, match=f"process {job.process.pid}"):
        archive(topic)
    kafka.fill(topic, 1, [(None, b"w", 1_700_000_000_000, [])] * 7)
    job.await_message(" 12 rows")
    job.process.send_signal(signal.SIGTERM)
    assert any(tmp_path.glob("kafka-compat-spark-*.log"))
    assert json.loads(job.finish())["rows"] == 12
    assert all(line.startswith("archive: ") for line in job.messages), job.messages
    assert not any(tmp_path.glob("kafka-compat-spark-*.log"))
    assert archive(topic).rows == 0
    assert Counter(archive_of(target).column("value").to_pylist()) == {b"v": 5, b"w": 7}
