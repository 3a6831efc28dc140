"""kafka-compat pipeline replay: the records in the target topic, compared with the original records by
confluent-kafka.
"""

from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from kafka_compat.pipelines.archive import ArchiveJob, run_archive
from kafka_compat.pipelines.errors import NotStarted
from kafka_compat.pipelines.exact_sink import Target, Written, write_exactly_once
from kafka_compat.pipelines.exact_sink_writer import JOB_HEADER as JOB
from kafka_compat.pipelines.replay import ReplayJob, ReplayReport, run_replay
from kafka_compat.pipelines.session import SparkSettings
from tests.pipelines.cluster import Cluster
from tests.pipelines.flights import FLIGHTS, PARTITIONS, flights
from tests.pipelines.job import batch_of, kill_and_finish, run_here
from tests.support.campaign import enabled

SAMPLE = FLIGHTS if enabled() else 24_000
OWN_HEADERS = 2


@pytest.fixture(scope="module")
def sample(kafka: Cluster) -> str:
    """A topic with the first flights (all flights in a campaign) in 4 partitions."""
    topic = kafka.create_topic(partitions=PARTITIONS)
    kafka.fill(topic, PARTITIONS, flights(SAMPLE))
    return topic


@pytest.fixture(scope="module")
def archive(
    kafka: Cluster, sample: str, connector_jars: Path, spark: Any, tmp_path_factory: pytest.TempPathFactory
) -> Path:
    """An archive of the sample topic."""
    directory = tmp_path_factory.mktemp("replay") / "archive"
    run_archive(ArchiveJob(kafka.address, directory, [sample], spark=SparkSettings(jars=connector_jars)))
    return directory


@pytest.fixture
def replay(kafka: Cluster, archive: Path, connector_jars: Path) -> Callable[..., ReplayReport]:
    """`replay(to_topic=…, …)` runs the job in this process's Spark session."""

    def run(**settings: Any) -> ReplayReport:
        job = {
            "directory": archive,
            "bootstrap_servers": kafka.address,
            "spark": SparkSettings(jars=connector_jars),
        }
        return run_replay(ReplayJob(**{**job, **settings}))

    return run


def assert_same(kafka: Cluster, original: str, copy: str, per_partition: int) -> None:
    """Check that `copy` has every record of `original` once, in order and unchanged, with a header for its
    origin.
    """
    end = Counter({partition: per_partition for partition in range(PARTITIONS)})
    assert kafka.ends(copy) == end
    for partition in range(PARTITIONS):
        first = kafka.read(original, partition, per_partition)
        second = kafka.read(copy, partition, per_partition)
        for old, new in zip(first, second, strict=True):
            assert (new.key(), new.value(), new.timestamp()) == (old.key(), old.value(), old.timestamp())
            headers = new.headers()
            assert headers[:-OWN_HEADERS] == (old.headers() or [])
            origin = f"{original}/{partition}/{old.offset()}".encode()
            assert headers[-1] == ("kafka-compat-origin", origin)


@pytest.mark.timeout(1200)
@pytest.mark.skipif(not enabled(), reason="acceptance test: needs --campaign")
def test_a_replay_is_exact_after_a_kill_and_a_rerun(
    kafka: Cluster, sample: str, archive: Path, connector_jars: Path, tmp_path: Path
) -> None:
    """After several kills of the job and one of the broker, the topic contains every record once, in
    order.
    """
    copy = kafka.create_topic(partitions=PARTITIONS)
    arguments = ["--from", str(archive), "--bootstrap-server", kafka.address, "--to-topic", copy]
    arguments += ["--jars", str(connector_jars), "--master", "local[2]", "--state", str(tmp_path / "state")]
    arguments += ["--offsets-per-batch", str(batch_of(SAMPLE))]
    kill_and_finish("replay", arguments, kafka.server, longest_s=2.0)
    assert_same(kafka, sample, copy, SAMPLE // PARTITIONS)
    again = run_here("replay", *arguments)
    assert (again["was_complete"], again["rows"]) == (True, 0)
    assert_same(kafka, sample, copy, SAMPLE // PARTITIONS)


def test_records_of_an_earlier_attempt_are_not_written_again(
    spark: Any, kafka: Cluster, tmp_path: Path
) -> None:
    """A batch whose writer died is written again. Records that are already in the topic are skipped by their
    origin header; foreign records are ignored.
    """
    topic, target = kafka.create_topic(partitions=2), Target({"bootstrap.servers": kafka.address})
    kafka.fill(topic, 2, [(None, b"foreign", 1_700_000_000_000, [])] * 4)
    begun = target.ends([topic])
    rows = spark.range(1000).selectExpr(
        f"'{topic}' to_topic",
        "cast(id % 2 as int) to_partition",
        "cast(null as binary) key",
        "cast(cast(id as string) as binary) value",
        "cast(null as array<struct<key: string, value: binary>>) headers",
        "timestamp_millis(1356998400000 + id) timestamp",
        "'from' topic_from",
        "cast(id % 2 as int) partition_from",
        "id div 2 offset_from",
    )
    left = write_exactly_once(rows.where("offset_from < 300"), target, "job", begun, tmp_path)
    assert left == Written(written=600, written_before=0)
    other = write_exactly_once(rows.where("offset_from < 10"), target, "another", begun, tmp_path)
    assert other == Written(written=20, written_before=0)
    assert write_exactly_once(rows, target, "job", begun, tmp_path) == Written(
        written=400, written_before=600
    )
    for partition in (0, 1):
        values = [
            m.value() for m in kafka.read(topic, partition, 512) if dict(m.headers() or []).get(JOB) == b"job"
        ]
        assert values == [str(i).encode() for i in range(partition, 1000, 2)]
    assert kafka.ends(topic) == Counter({0: 512, 1: 512})


def test_records_are_replayed_by_offset_and_timestamp_range(
    kafka: Cluster, sample: str, replay: Callable[..., ReplayReport], tmp_path: Path
) -> None:
    copy = kafka.create_topic(partitions=PARTITIONS)
    middle = kafka.read(sample, 1, 5000)[4000].timestamp()[1]
    chosen = {1: (100, 6000), 3: (None, 50)}
    report = replay(to_topic=copy, offsets=chosen, until_ms=middle, dry_run=True)
    before = [m for m in kafka.read(sample, 1, 6000)[100:] if m.timestamp()[1] < middle]
    early = [m for m in kafka.read(sample, 3, 50) if m.timestamp()[1] < middle]
    assert report.rows == {(sample, 1): len(before), (sample, 3): len(early)}
    assert sum(kafka.ends(copy).values()) == 0
    assert replay(to_topic=copy, offsets=chosen, until_ms=middle).rows == report.rows
    assert [m.value() for m in kafka.read(copy, 1, len(before))] == [m.value() for m in before]
    assert kafka.ends(copy) == Counter({1: len(before), 3: len(early)})


def test_a_replay_creates_its_topic_and_can_be_repeated(
    kafka: Cluster, replay: Callable[..., ReplayReport], sample: str
) -> None:
    settings: dict[str, Any] = {"to_topic": f"{sample}-anew", "offsets": {0: (0, 100)}, "create": True}
    assert sum(replay(**settings).rows.values()) == 100
    assert replay(**settings).was_complete
    assert sum(replay(**settings, again=True).rows.values()) == 100
    values = [m.value() for m in kafka.read(f"{sample}-anew", 0, 200)]
    assert values[:100] == values[100:]


def test_a_job_that_cannot_start_reports_the_reason(
    kafka: Cluster, sample: str, replay: Callable[..., ReplayReport], tmp_path: Path
) -> None:
    with pytest.raises(NotStarted, match="does not exist; 4 are needed"):
        replay(to_topic="absent")
    with pytest.raises(NotStarted, match="has 1 partitions; 4 are needed"):
        replay(to_topic=kafka.create_topic())
    with pytest.raises(NotStarted, match="no matching records of other"):
        replay(topics=["other"], to_topic=sample)
    with pytest.raises(NotStarted, match="not an archive"):
        replay(directory=tmp_path, to_topic=sample)
