"""kafka-compat pipeline audit: it detects an inserted loss and an inserted duplicate, and reports their
hours.
"""

import csv
import json
from collections import Counter
from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from kafka_compat.cli import main
from kafka_compat.pipelines.archive import ArchiveJob, run_archive
from kafka_compat.pipelines.audit import AuditJob, AuditReport, Tier, count_rows, run_audit
from kafka_compat.pipelines.errors import NotStarted
from kafka_compat.pipelines.session import SparkSettings
from tests.pipelines.cluster import Cluster
from tests.pipelines.flights import FLIGHTS, PARTITIONS, flights
from tests.pipelines.job import Job, kill_repeatedly, kills_of_a_campaign
from tests.support.campaign import enabled

SAMPLE = FLIGHTS if enabled() else 16_000
HOUR_MS = 3_600_000
LOST, TWICE, CHANGED = 7_001, 12_345, 15_000


def hour_of(number: int) -> tuple[int, int]:
    """Return the partition and the hour of a flight."""
    *_, (_, _, when, _) = flights(number + 1)
    return number % PARTITIONS, when - when % HOUR_MS


def fill(kafka: Cluster, topic: str, numbers: Iterable[int]) -> None:
    """Write flights by number, each to its partition. A negative number writes a changed value."""
    everything = list(flights(SAMPLE))
    producer: Any = kafka.producer(**{"queue.buffering.max.messages": 1_000_000})
    for number in numbers:
        key, value, when, headers = everything[abs(number)]
        value = b"another" if number < 0 else value
        producer.produce(topic, value, key, abs(number) % PARTITIONS, timestamp=when, headers=headers)
    assert producer.flush(120) == 0


@pytest.fixture(scope="module")
def source(kafka: Cluster) -> str:
    topic = kafka.create_topic(partitions=PARTITIONS)
    fill(kafka, topic, range(SAMPLE))
    return topic


@pytest.fixture(scope="module")
def damaged(kafka: Cluster) -> str:
    """A mirror with one missing, one duplicate and one changed flight."""
    topic = kafka.create_topic(partitions=PARTITIONS)
    numbers = [number for number in range(SAMPLE) if number != LOST]
    numbers[numbers.index(CHANGED)] = -CHANGED
    fill(kafka, topic, [*numbers, TWICE])
    return topic


@pytest.fixture
def audit(kafka: Cluster, spark: Any, connector_jars: Path) -> Callable[..., AuditReport]:
    """`audit(tier, tier, …)` runs the job in this process's Spark session."""

    def run(*tiers: Tier, **settings: Any) -> AuditReport:
        return run_audit(AuditJob(tiers, spark=SparkSettings(jars=connector_jars), **settings))

    return run


def test_losses_and_duplicates_are_reported_by_hour(
    kafka: Cluster, spark: Any, source: str, damaged: str, connector_jars: Path, tmp_path: Path, capsys: Any
) -> None:
    """The command line returns exit code 1, and writes the differing buckets, a valid image and a page."""
    counts = Counter((i % PARTITIONS, when) for i, (_, _, when, _) in enumerate(flights(SAMPLE)))
    with (tmp_path / "produced.csv").open("w", newline="") as file:
        lines = csv.writer(file)
        lines.writerow(["partition", "time_ms", "rows"])
        lines.writerows([partition, when, rows] for (partition, when), rows in counts.items())
    run_archive(
        ArchiveJob(kafka.address, tmp_path / "archive", [source], spark=SparkSettings(jars=connector_jars))
    )
    arguments = ["pipeline", "audit", "--jars", str(connector_jars), "--json"]
    arguments += ["--plot", str(tmp_path / "plots" / "audit")]
    arguments += ["--tier", f"producer=counts:{tmp_path / 'produced.csv'}"]
    arguments += ["--tier", f"broker=kafka:{kafka.address}/{source}"]
    arguments += ["--tier", f"archive=archive:{tmp_path / 'archive'}/{source}"]
    capsys.readouterr()
    assert main([*arguments, "--tier", f"mirror=kafka:{kafka.address}/{damaged}"]) == 1
    report = json.loads(capsys.readouterr().out)
    assert [tier["rows"] for tier in report["tiers"]] == [SAMPLE] * 4
    found = {
        (d["tier"], d["partition"], d["bucket"], d["expected"] - d["found"]) for d in report["differences"]
    }
    assert found == {("mirror", *named(LOST), 1), ("mirror", *named(TWICE), -1)}
    assert (tmp_path / "plots" / "audit.png").read_bytes().startswith(b"\x89PNG")
    page = (tmp_path / "plots" / "audit.html").read_text()
    assert "data:image/png;base64," in page and named(LOST)[1] in page and "lost" in page


@pytest.mark.timeout(1800)
@pytest.mark.skipif(not enabled(), reason="acceptance test: needs --campaign")
def test_an_audit_is_complete_after_a_kill_and_a_rerun(
    kafka: Cluster, source: str, damaged: str, connector_jars: Path, tmp_path: Path
) -> None:
    """Each run starts from scratch. It finds all differences, and the output files are never incomplete."""
    arguments = ["--jars", str(connector_jars), "--master", "local[2]", "--plot", str(tmp_path / "audit")]
    for name, topic in (("broker", source), ("mirror", damaged)):
        arguments += ["--tier", f"{name}=kafka:{kafka.address}/{topic}"]
    png, page = tmp_path / "audit.png", tmp_path / "audit.html"
    png.write_bytes(b"\x89PNG of an earlier run IEND")
    page.write_text("<!doctype html> of an earlier run </html>")

    def whole() -> None:
        assert png.read_bytes().startswith(b"\x89PNG") and b"IEND" in png.read_bytes()[-12:]
        assert page.read_text().startswith("<!doctype html>") and page.read_text().rstrip().endswith(
            "</html>"
        )

    hit = kill_repeatedly(
        lambda: Job("audit", *arguments), kills_of_a_campaign(), 5.0, whole, began="tiers to count"
    )
    print(f"audit: killed {hit} times at its work")
    job = Job("audit", *arguments, "--json")
    job.await_message("tiers to count")
    kafka.server.restart(kill=True)
    report = job.finish(1)
    if not report:
        # The broker was down for longer than Spark's readers wait.
        assert job.await_message("Run it again")
        report = Job("audit", *arguments, "--json").finish(1)
    found = {(d["partition"], d["bucket"]): d["verdict"] for d in json.loads(report)["differences"]}
    assert found == {named(LOST): "lost", named(TWICE): "duplicated", named(CHANGED): "changed"}
    whole()


def named(number: int) -> tuple[int, str]:
    """Return the partition and the hour of a flight, as formatted in the report."""
    partition, hour = hour_of(number)
    return partition, datetime.fromtimestamp(hour / 1000, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


@pytest.mark.skipif(not enabled(), reason="acceptance test: needs --campaign")
def test_a_changed_value_in_the_same_hour_is_detected(
    kafka: Cluster, source: str, damaged: str, audit: Callable[..., AuditReport]
) -> None:
    """The counts are equal, but the checksums of both tiers differ."""
    tiers = [Tier("a", "kafka", kafka.address, source), Tier("b", "kafka", kafka.address, damaged)]
    report = audit(*tiers)
    verdicts = {(d.partition, d.bucket_ms): d.verdict for d in report.differences}
    assert verdicts == {hour_of(LOST): "lost", hour_of(TWICE): "duplicated", hour_of(CHANGED): "changed"}
    assert "lost" in report.as_text() and report.exit_code == 1
    before = min(hour_of(number)[1] for number in (LOST, TWICE, CHANGED))
    assert audit(*tiers, until_ms=before, by_partition=False).exit_code == 0


def test_sequence_numbers_in_a_header_reveal_losses_and_duplicates(
    kafka: Cluster, spark: Any, audit: Callable[..., AuditReport]
) -> None:
    """A missing number is reported as a loss in the hour of an adjacent number. A repeated number counts as
    one record sent.
    """
    topic = kafka.create_topic(partitions=2)
    producer: Any = kafka.producer()
    start = 1_700_000_000_000 - 1_700_000_000_000 % HOUR_MS
    for number in range(40):
        for _ in range(0 if number in (0, 17, 18) else 2 if number == 30 else 1):
            headers = [("kafka-compat-sequence", f"a:b:{number}".encode())]
            when = start + number // 10 * HOUR_MS
            producer.produce(topic, b"v", partition=number % 2, timestamp=when, headers=headers)
    producer.produce(topic, b"v", partition=0, timestamp=start + 9 * HOUR_MS, headers=[("other", b"a:1")])
    assert producer.flush(30) == 0
    sent, held = Tier("sent", "header", kafka.address, topic), Tier("held", "kafka", kafka.address, topic)
    report = audit(sent, held, by_partition=False)
    assert sum(count.rows for count in report.counts["sent"].values()) == 40
    assert [(d.bucket_ms - start, d.expected - d.found, d.verdict) for d in report.differences] == [
        (0, 1, "lost"),
        (HOUR_MS, 2, "lost"),
        (3 * HOUR_MS, -1, "duplicated"),
        (9 * HOUR_MS, -1, "duplicated"),
    ]


def test_rows_with_nulls_or_times_before_1970_are_counted_in_the_correct_buckets(spark: Any) -> None:
    rows = spark.sql(
        "SELECT CAST(null AS binary) key, CAST(v AS binary) value, 0 partition, timestamp_millis(t) timestamp"
        " FROM VALUES (null, -1L), ('', -3600000L), ('', 0L), (null, 3599999L) AS r(v, t)"
    )
    counted = {row["bucket"]: (row["rows"], row["checksum"]) for row in count_rows(rows, HOUR_MS).collect()}
    assert {bucket: rows for bucket, (rows, _) in counted.items()} == {-HOUR_MS: 2, 0: 2}
    assert counted[0][1] == counted[-HOUR_MS][1]
    one = count_rows(rows.where("timestamp < timestamp_millis(-1)"), HOUR_MS).collect()[0]
    other = count_rows(rows.where("timestamp = timestamp_millis(-1)"), HOUR_MS).collect()[0]
    assert one["checksum"] != other["checksum"]


def test_a_job_that_cannot_start_reports_the_reason(
    kafka: Cluster, source: str, audit: Callable[..., AuditReport], tmp_path: Path
) -> None:
    good = Tier("a", "kafka", kafka.address, source)
    with pytest.raises(NotStarted, match="at least two tiers"):
        audit(good)
    with pytest.raises(NotStarted, match="No such topic"):
        audit(good, Tier("b", "kafka", kafka.address, "absent"))
    with pytest.raises(NotStarted, match="not an archive"):
        audit(good, Tier("b", "archive", str(tmp_path), source))
    (tmp_path / "counts.csv").write_text("hour,rows\n1,2\n")
    with pytest.raises(NotStarted, match="time_ms"):
        audit(Tier("b", "counts", str(tmp_path / "counts.csv")), good)
