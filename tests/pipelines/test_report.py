"""kafka-compat pipeline report and spark.read.format("kafka-log"): log directories, compared with the records
written.
"""

import functools
import json
import shutil
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kafka_compat.pipelines.errors import JobFailed, NotStarted
from kafka_compat.pipelines.kafka_log import KafkaLog
from kafka_compat.pipelines.report import ReportJob, SegmentLine, Sizes, partition_lines, run_report
from kafka_compat.storage.directories.checkpoints import encode_offsets
from kafka_compat.storage.records.kinds import CompressionType
from kafka_compat.storage.records.records import Record, build_batch
from tests.pipelines.cluster import Cluster
from tests.pipelines.flights import FLIGHTS, PARTITIONS, flights
from tests.pipelines.job import Job, kill_repeatedly, kills_of_a_campaign, run_here
from tests.support import campaign
from tests.support.campaign import enabled
from tests.support.servers import GenuineKafka, KafkaCompatBroker

SAMPLE = FLIGHTS if enabled() else 12_000
DAY_MS = 86_400_000


@pytest.fixture(scope="module", params=campaign.sides())
def folder(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The log directory of a broker with the sample in small segments, after a clean shutdown."""
    directory = tmp_path_factory.mktemp("report")
    settings = {"log.segment.bytes": str(SAMPLE * 10 // 3), "log.retention.ms": "-1"}
    server = (GenuineKafka if request.param == "genuine" else KafkaCompatBroker)(directory, settings)
    server.start()
    cluster = Cluster(server)
    cluster.create_topic("flights", PARTITIONS)
    # A batch must fit into a segment.
    batches = {"compression.type": "lz4", "batch.num.messages": 200}
    producer: Any = cluster.producer(**batches, **{"queue.buffering.max.messages": 1_000_000})
    refused: list[str] = []
    for i, (key, value, when, headers) in enumerate(flights(SAMPLE)):
        record = {"partition": i % PARTITIONS, "timestamp": when, "headers": headers}
        told = functools.partial(_told, refused)
        producer.produce("flights", value, key, **record, on_delivery=told)
    assert producer.flush(60) == 0 and not refused
    server.stop()
    yield next(path.parent for path in directory.rglob("meta.properties"))


def _told(refused: list[str], error: Any, _: Any) -> None:
    if error is not None:
        refused.append(error.str())


def load(spark: Any, folder: Path, **options: str) -> Any:
    spark.dataSource.register(KafkaLog)
    return spark.read.format("kafka-log").options(path=str(folder), topic="flights", **options).load()


def test_every_record_is_read_back_unchanged(spark: Any, folder: Path) -> None:
    """The partitions have several segments each. Key, value, headers and timestamp are compared by offset."""
    rows = load(spark, folder).toArrow().to_pylist()
    found = {(row["partition"], row["offset"]): row for row in rows}
    assert len(found) == len(rows) == SAMPLE
    for i, (key, value, when, headers) in enumerate(flights(SAMPLE)):
        row = found[i % PARTITIONS, i // PARTITIONS]
        assert (row["key"], row["value"]) == (key, value)
        assert [(h["key"], h["value"]) for h in row["headers"]] == headers
        assert int(row["timestamp"].timestamp() * 1000) == when
        assert (row["key_bytes"], row["value_bytes"]) == (len(key), len(value))
    assert {row["compression"] for row in rows} == {"lz4"}
    assert len({row["segment"] for row in rows if row["partition"] == 0}) > 1


def test_the_report_agrees_with_the_files(spark: Any, folder: Path, tmp_path: Path) -> None:
    """Sizes match the files, hot keys match a plain count, and the chart is a valid image."""
    job = ReportJob([folder], ["flights"], hot_keys=3, plot=tmp_path / "report")
    report = run_report(job)
    assert {line.partition: line.rows for line in report.partitions} == dict.fromkeys(
        range(PARTITIONS), SAMPLE // PARTITIONS
    )
    for line in report.partitions:
        files = (folder / f"flights-{line.partition}").glob("*.log")
        assert line.size_bytes == sum(file.stat().st_size for file in files)
        assert line.raw_bytes > line.size_bytes and line.codecs == ("lz4",)
        # The flights are from 2013, so time-based retention applies to all of them.
        assert (line.due_rows, line.due_bytes) == (line.rows, line.size_bytes)
    keys = Counter(key.decode() for key, _, _, _ in flights(SAMPLE))
    top = sorted(keys.items(), key=lambda item: (-item[1], item[0]))[:3]
    assert [(line.key, line.rows) for line in report.keys] == top
    sizes = sorted(len(value) for i, (_, value, _, _) in enumerate(flights(SAMPLE)) if i % PARTITIONS == 0)
    assert report.partitions[0].value_bytes_max == sizes[-1]
    assert abs(report.partitions[0].value_bytes_p50 - sizes[len(sizes) // 2]) <= 1
    assert report.skew("flights") == 1.0
    assert json.loads(json.dumps(report.as_json()))["hot_keys"][0]["key"] == top[0][0]
    assert report.as_text().splitlines()[1].split()[:2] == ["flights", "0"]
    assert (tmp_path / "report.png").read_bytes().startswith(b"\x89PNG")
    assert top[0][0] in (tmp_path / "report.html").read_text()


@pytest.mark.timeout(1800)
@pytest.mark.skipif(not enabled(), reason="acceptance test: needs --campaign")
def test_a_report_is_correct_after_a_kill_and_a_rerun(spark: Any, folder: Path, tmp_path: Path) -> None:
    """The job does not modify the log directory, and its output files are never incomplete."""

    def files() -> dict[Path, tuple[int, int]]:
        return {path: (path.stat().st_size, path.stat().st_mtime_ns) for path in folder.rglob("*")}

    def whole() -> None:
        for file, end in ((tmp_path / "report.png", b"IEND"), (tmp_path / "report.html", b"</html>")):
            assert not file.exists() or end in file.read_bytes()[-12:]
        assert files() == before

    before = files()
    arguments = ["--log-dir", str(folder), "--topic", "flights", "--plot", str(tmp_path / "report")]
    hit = kill_repeatedly(
        lambda: Job("report", *arguments, "--master", "local[2]"),
        kills_of_a_campaign(),
        6.0,
        whole,
        began="segments to read",
    )
    print(f"report: killed {hit} times at its work")
    partitions = run_here("report", *arguments)["partitions"]
    assert [line["rows"] for line in partitions] == [SAMPLE // PARTITIONS] * PARTITIONS
    whole()


def test_a_directory_in_use_is_read_up_to_its_high_watermark(spark: Any, tmp_path: Path) -> None:
    """Records above the high watermark or below the log start offset are not read, and a torn tail is
    ignored.
    """
    log = tmp_path / "flights-0"
    log.mkdir()
    batches = [
        build_batch(
            [Record(0, 1000, b"k", b"v", [("h", None)])] * 5,
            base_offset=5 * i,
            compression=CompressionType.GZIP,
        )
        for i in range(4)
    ]
    (log / f"{0:020}.log").write_bytes(b"".join(batches[:2]))
    (log / f"{10:020}.log").write_bytes(batches[2] + batches[3][:-7])
    (tmp_path / "meta.properties").write_text("version=0\n")
    assert load(spark, tmp_path).count() == 0
    for high_watermark, start, expected in ((8, 0, range(8)), (15, 7, range(7, 15)), (10, 0, range(10))):
        (tmp_path / "replication-offset-checkpoint").write_bytes(
            encode_offsets({("flights", 0): high_watermark})
        )
        (tmp_path / "log-start-offset-checkpoint").write_bytes(encode_offsets({("flights", 0): start}))
        rows = load(spark, tmp_path, payload="keys").collect()
        assert sorted(row["offset"] for row in rows) == list(expected)
        assert {(bytes(row["key"]), row["value"], row["headers"]) for row in rows} == {(b"k", None, None)}
    (tmp_path / "replication-offset-checkpoint").write_bytes(encode_offsets({("flights", 0): 20}))
    with pytest.raises(JobFailed, match="incomplete"):
        run_report(ReportJob([tmp_path]))
    shutil.rmtree(log)
    assert run_report(ReportJob([tmp_path])).as_text() == "No records."
    with pytest.raises(NotStarted, match="Unknown topics"):
        run_report(ReportJob([tmp_path], ["flights"]))
    with pytest.raises(NotStarted, match="not a broker's data directory"):
        run_report(ReportJob([log]))


def test_records_due_for_deletion_are_counted() -> None:
    """Counting starts at the oldest segment and stops at the first one to be kept, by time and by size."""
    now = 100 * DAY_MS
    segments = [
        SegmentLine("t", 0, number, 10, 1000, 2000, now - age * DAY_MS)
        for number, age in ((0, 9), (10, 8), (20, 3), (30, 12), (40, -2))
    ]
    sizes = {("t", 0): Sizes(1, 2, 3, ("none",))}

    def due(**settings: Any) -> tuple[int, int | None, int]:
        line = partition_lines(ReportJob([], now_ms=now, **settings), segments, sizes)[0]
        return line.due_rows, line.next_due_ms, line.future_rows

    assert due() == (20, now + 4 * DAY_MS, 10)
    assert due(retention_ms=None) == (0, None, 10)
    assert due(retention_bytes=2000)[0] == 40
    assert due(retention_bytes=2001)[0] == 20
    assert due(retention_ms=None, retention_bytes=0)[0] == 40


@pytest.mark.skipif(not enabled(), reason="benchmark: needs --campaign")
def test_the_kafka_log_source_agrees_with_the_connector(
    spark: Any, kafka: Cluster, flights_topic: str, read_batch: Any, capsys: Any
) -> None:
    """Count all flights by key, through the broker with the connector and from its log directory."""
    folder = next(path.parent for path in kafka.server.directory.rglob("meta.properties"))
    spark.dataSource.register(KafkaLog)

    def from_folder() -> Any:
        reader = spark.read.format("kafka-log").options(path=str(folder), topic=flights_topic)
        return reader.option("payload", "keys").load()

    for _ in range(3):
        counts = {}
        ways: dict[str, Any] = {"connector": lambda: read_batch(flights_topic), "kafka-log": from_folder}
        for name, make in ways.items():
            started = time.perf_counter()
            counts[name] = {bytes(r["key"]): r["count"] for r in make().groupBy("key").count().collect()}
            with capsys.disabled():
                print(f"{name}: {FLIGHTS / (time.perf_counter() - started):,.0f} records/s")
        assert counts["connector"] == counts["kafka-log"]
