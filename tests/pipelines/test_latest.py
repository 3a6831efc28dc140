"""kafka-compat pipeline latest: the table, compared with the result of a plain loop over the topic."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from kafka_compat.pipelines.errors import NotStarted, RecordsLost
from kafka_compat.pipelines.latest import run_latest
from kafka_compat.pipelines.session import SparkSettings
from kafka_compat.pipelines.stream_job import StreamJob, StreamReport
from tests.pipelines.cluster import Cluster
from tests.pipelines.flights import FLIGHTS, PARTITIONS, flights
from tests.pipelines.job import batch_of, kill_and_finish
from tests.support.campaign import enabled

SAMPLE = FLIGHTS if enabled() else 12_000


def table_at(directory: Path) -> dict[bytes, tuple[int, int, bytes]]:
    """Map each key to (partition, offset, value), as a plain Parquet reader sees the table. Each key must
    occur once.
    """
    table = pq.read_table(directory / "latest", columns=["key", "partition", "offset", "value"])
    rows = table.to_pylist()
    found = {row["key"]: (row["partition"], row["offset"], row["value"]) for row in rows}
    assert len(found) == len(rows)
    return found


def latest_in(kafka: Cluster, topic: str) -> dict[bytes, tuple[int, int, bytes]]:
    """Compute the same map from the topic, with confluent-kafka."""
    found: dict[bytes, tuple[int, int, bytes]] = {}
    for partition, end in sorted(kafka.ends(topic).items()):
        for message in kafka.read(topic, partition, end):
            if message.key() is not None:
                found[message.key()] = (partition, message.offset(), message.value())
    return {key: row for key, row in found.items() if row[2] is not None}


def changes(count: int = SAMPLE) -> Any:
    """Yield flights keyed by tail number. Every tenth is a deletion, and every hundredth has no key."""
    for i, (key, value, when, headers) in enumerate(flights(count)):
        yield None if i % 100 == 99 else key, None if i % 10 == 7 else value, when, headers


@pytest.fixture
def latest(kafka: Cluster, spark: Any, connector_jars: Path, tmp_path: Path) -> Callable[..., StreamReport]:
    """`latest(topic, …)` runs the job in this process's Spark session, with the output directory tmp_path /
    "table".
    """

    def run(topic: str, **settings: Any) -> StreamReport:
        job = {"bootstrap_servers": kafka.address, "directory": tmp_path / "table", "topics": [topic]}
        return run_latest(StreamJob(**{**job, "spark": SparkSettings(jars=connector_jars), **settings}))

    return run


@pytest.mark.timeout(1200)
@pytest.mark.skipif(not enabled(), reason="acceptance test: needs --campaign")
def test_the_latest_values_are_correct_after_a_kill_and_a_rerun(
    kafka: Cluster, latest: Callable[..., StreamReport], connector_jars: Path, tmp_path: Path
) -> None:
    """After kills of the job and the broker, the table equals the one of an uninterrupted run."""
    topic, target = kafka.create_topic(partitions=PARTITIONS), tmp_path / "killed"
    kafka.fill(topic, PARTITIONS, changes())
    arguments = ["--bootstrap-server", kafka.address, "--topic", topic, "--to", str(target)]
    arguments += ["--jars", str(connector_jars), "--master", "local[2]"]
    arguments += ["--offsets-per-batch", str(batch_of(SAMPLE))]
    report = kill_and_finish("latest", arguments, kafka.server)
    expected = latest_in(kafka, topic)
    assert table_at(target) == expected
    assert (report["keys"], report["without_key"]) == (len(expected), SAMPLE // 100)
    at_once = latest(topic, offsets_per_batch=10 * SAMPLE)
    assert (at_once.figures["keys"], at_once.figures["deleted"]) == (report["keys"], report["deleted"])
    assert table_at(tmp_path / "table") == expected


def test_deleted_keys_can_return_and_be_deleted_again(
    kafka: Cluster, latest: Callable[..., StreamReport], tmp_path: Path
) -> None:
    """Over several runs, keys return after deletion. If a key is in two partitions, the higher partition wins
    regardless of the order.
    """
    topic = kafka.create_topic(partitions=2)
    when = 1_700_000_000_000
    kafka.fill(topic, 2, [(b"both", b"p0", when, []), (b"both", None, when, []), (b"a", b"1", when, [])])
    assert latest(topic).figures["keys"] == 1
    assert table_at(tmp_path / "table") == {b"a": (0, 1, b"1")}
    kafka.fill(
        topic, 2, [(b"both", b"later, lower", when, []), (b"b", b"2", when, []), (b"a", None, when, [])]
    )
    assert table_at(tmp_path / "table") == {b"a": (0, 1, b"1")}
    report = latest(topic)
    assert (report.figures["keys"], report.figures["deleted"], report.run.rows) == (1, 2, 3)
    kafka.fill(topic, 2, [(b"a", b"3", when, [])])
    assert latest(topic).figures["keys"] == 2
    assert table_at(tmp_path / "table") == {b"a": (0, 4, b"3"), b"b": (1, 1, b"2")}
    assert latest(topic).run.rows == 0
    assert len(list((tmp_path / "table" / "versions").iterdir())) <= 2


def test_a_job_that_cannot_continue_reports_the_reason(
    kafka: Cluster, latest: Callable[..., StreamReport], tmp_path: Path
) -> None:
    topic = kafka.create_topic()
    kafka.fill(topic, 1, [(b"k", b"v", 1_700_000_000_000, [])] * 3)
    latest(topic)
    with pytest.raises(NotStarted, match="other settings"):
        latest(kafka.create_topic())
    kafka.delete_topic(topic)
    kafka.create_topic(topic)
    with pytest.raises(RecordsLost, match="recreated"):
        latest(topic)
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "notes.txt").write_text("mine")
    with pytest.raises(NotStarted, match="not a job's directory"):
        latest(topic, directory=tmp_path / "mine")
