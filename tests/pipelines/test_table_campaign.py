"""Acceptance test: Iceberg and Delta tables of all flights, after kills, read by Spark and other readers."""

import json
import statistics
import subprocess
import sys
import time
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow.dataset
import pytest
from deltalake import DeltaTable
from pyiceberg.table import StaticTable

from kafka_compat.pipelines.archive_store import TABLE
from kafka_compat.pipelines.archive_table import APPLICATION
from kafka_compat.pipelines.environment import spark_release
from kafka_compat.pipelines.iceberg_table import IcebergArchive
from tests.decoding.schema_registry import SchemaRegistry
from tests.pipelines.archive_batches import EXPECTED, Killed, archive_two_batches, kill_at, offsets_of
from tests.pipelines.cluster import Cluster
from tests.pipelines.comparisons import assert_equals_log, assert_table_equals_log
from tests.pipelines.decode.values import FLIGHT, FLIGHT_2, avro
from tests.pipelines.flights import FLIGHTS, PARTITIONS, flights
from tests.pipelines.job import batch_of, kill_and_finish, run_here
from tests.support.campaign import enabled

pytestmark = pytest.mark.skipif(not enabled(), reason="acceptance test: needs --campaign")
TABLES = ("iceberg", "delta")
ROUNDS = 3
_PACKAGES = {"4.0": "io.delta:delta-spark_2.13:4.0.1", "4.1": "io.delta:delta-spark_4.1_2.13:4.1.0"}
_READ = """\
import sys
from pyspark.sql import SparkSession

format, package, table, to, *more = sys.argv[1:]
session = (
    SparkSession.builder.master("local[2]").config("spark.jars.packages", package)
    .config("spark.ui.enabled", "false").config("spark.sql.session.timeZone", "UTC")
)
if format == "delta":
    session.config("spark.sql.extensions", "io.delta.sql.DeltaSparkSessionExtension")
    session.config("spark.sql.catalog.spark_catalog", "org.apache.spark.sql.delta.catalog.DeltaCatalog")
rows = session.getOrCreate().read.format(format).load(table)
columns = ["key", "value", "headers", "topic", "partition", "offset", "timestamp", "timestampType"]
rows.select(*columns, *more).write.parquet(to)
"""


def read_by_others(format: str, table: Path) -> Any:
    """Return the table as Arrow, read by pyiceberg or delta-rs."""
    if format == "delta":
        return DeltaTable(str(table)).to_pyarrow_table()
    return StaticTable.from_metadata(str(table)).scan().to_arrow()


def read_by_spark(format: str, table: Path, to: Path, *columns: str) -> None:
    """Read the table in a Spark of its own, with the package of the format, and write it as Parquet files.
    `columns` are read in addition to those of every archive."""
    release = spark_release()
    package = release.iceberg if format == "iceberg" else _PACKAGES[release.version[:3]]
    command = [sys.executable, "-c", _READ, format, package, str(table), str(to), *columns]
    done = subprocess.run(command, capture_output=True, text=True, timeout=900, check=False)
    assert done.returncode == 0, done.stderr[-5000:]


def last_batch(format: str, table: Path) -> int:
    if format == "delta":
        return DeltaTable(str(table)).transaction_version(APPLICATION) or 0
    return int(StaticTable.from_metadata(str(table)).properties[APPLICATION])


@pytest.mark.timeout(3600)
@pytest.mark.parametrize("format", TABLES)
def test_a_table_has_each_flight_once_after_kills_of_job_and_broker(
    format: str, kafka: Cluster, connector_jars: Path, spark: Any, tmp_path: Path
) -> None:
    archive, topic = tmp_path / "archive", kafka.create_topic(partitions=PARTITIONS)
    table = archive / TABLE
    kafka.fill(topic, PARTITIONS, flights())
    arguments = ["--bootstrap-server", kafka.address, "--topic", topic, "--to", str(archive)]
    arguments += ["--jars", str(connector_jars), "--master", "local[2]", "--format", format]
    arguments += ["--offsets-per-batch", str(batch_of(FLIGHTS)), "--compact-every", "10"]

    def assert_none_twice() -> None:
        if last_batch_or_none(format, table) is None:
            return
        keys = read_by_others(format, table).select(["partition", "offset"])
        assert keys.group_by(["partition", "offset"]).aggregate([]).num_rows == keys.num_rows

    report = kill_and_finish("archive", arguments, kafka.server, killed=assert_none_twice)
    assert report["complete"]
    assert [(p["rows"], p["gaps"]) for p in report["partitions"]] == [(FLIGHTS // PARTITIONS, 0)] * PARTITIONS
    assert assert_table_equals_log(read_by_others(format, table), kafka, topic, PARTITIONS) == FLIGHTS
    read_by_spark(format, table, tmp_path / "by-spark")
    assert assert_equals_log(tmp_path / "by-spark", kafka, topic, PARTITIONS) == FLIGHTS
    print(f"{format}: {last_batch(format, table) + 1} batches")


def last_batch_or_none(format: str, table: Path) -> int | None:
    marker = table / ("_delta_log" if format == "delta" else "metadata/version-hint.text")
    return last_batch(format, table) if marker.exists() else None


@pytest.mark.timeout(900)
def test_each_record_is_in_an_iceberg_table_once_after_a_kill_at_any_step(spark: Any, tmp_path: Path) -> None:
    """As for Delta in test_archive_tables. version-hint.text is lost too, as if the kill came before it."""
    tables = partial(IcebergArchive, spark=spark)
    with pytest.MonkeyPatch.context() as patch:
        steps = kill_at(patch, 1_000_000)
        archive_two_batches(tmp_path / "whole", "iceberg", tables)
    assert offsets_of(read_by_others("iceberg", tmp_path / "whole" / TABLE)) == EXPECTED
    for step in range(steps[0]):
        directory = tmp_path / str(step)
        hint = directory / TABLE / "metadata" / "version-hint.text"
        with pytest.MonkeyPatch.context() as patch, pytest.raises(Killed):
            kill_at(patch, step)
            archive_two_batches(directory, "iceberg", tables)
        if hint.exists():
            found = offsets_of(read_by_others("iceberg", directory / TABLE))
            assert all(times == 1 for times in found.values()), f"killed at step {step}"
            hint.unlink()
        archive_two_batches(directory, "iceberg", tables)
        found = offsets_of(read_by_others("iceberg", directory / TABLE))
        assert found == EXPECTED, f"killed at step {step}, then run again"
        assert last_batch("iceberg", directory / TABLE) == 1


@pytest.mark.timeout(900)
def test_an_iceberg_table_is_compacted_and_takes_new_columns(
    kafka: Cluster, connector_jars: Path, spark: Any, tmp_path: Path
) -> None:
    """A user adds a column between two runs. Earlier snapshots stay readable for as long as they are kept."""
    topic, table = kafka.create_topic(partitions=2), tmp_path / "archive" / TABLE
    arguments = ["--bootstrap-server", kafka.address, "--topic", topic, "--to", str(table.parent)]
    arguments += ["--jars", str(connector_jars), "--format", "iceberg", "--offsets-per-batch", "100"]
    midnight = 1_700_006_400_000
    kafka.fill(topic, 2, [(None, b"v", midnight + (-1) ** i, []) for i in range(400)])
    assert run_here("archive", *arguments, "--compact-every", "4")["rows"] == 400
    found = StaticTable.from_metadata(str(table))
    snapshots = found.metadata.snapshots
    summaries = [each.summary or {} for each in snapshots]
    ends = [json.loads(each.get(f"{APPLICATION}.end-offsets") or "{}") for each in summaries]
    assert [end.get(topic) for end in ends] == [{"0": n, "1": n} for n in (50, 100, 150, 200)] + [None]
    assert found.scan(snapshot_id=snapshots[0].snapshot_id).to_arrow().num_rows == 100
    assert len(list(found.scan().plan_files())) == 2
    jvm = IcebergArchive(table, spark)._tables.load(str(table))
    jvm.updateSchema().addColumn("note", spark._jvm.org.apache.iceberg.types.Types.StringType.get()).commit()
    kafka.fill(topic, 2, [(None, b"w", midnight, [])] * 100)
    assert run_here("archive", *arguments)["rows"] == 100
    rows = read_by_others("iceberg", table)
    assert rows.column("note").null_count == 500
    assert assert_table_equals_log(rows, kafka, topic, 2) == 500
    IcebergArchive(table, spark).compact(keep_ms=0)
    left = StaticTable.from_metadata(str(table))
    assert len(left.metadata.snapshots) == 1 and left.scan().to_arrow().num_rows == 500
    assert run_here("archive", *arguments)["rows"] == 0


@pytest.mark.timeout(3600)
def test_tables_are_written_about_as_fast_as_parquet_files(
    kafka: Cluster, connector_jars: Path, spark: Any, flights_topic: str, tmp_path: Path, capsys: Any
) -> None:
    """Archive all flights in each format, in alternating order. The medians of the rounds count."""
    seconds: dict[str, list[float]] = {}
    for round in range(ROUNDS + 1):
        for format in ("parquet", *TABLES)[:: -1 if round % 2 else 1]:
            arguments = ["--bootstrap-server", kafka.address, "--topic", flights_topic, "--format", format]
            arguments += ["--to", str(tmp_path / f"{format}-{round}"), "--jars", str(connector_jars)]
            started = time.perf_counter()
            assert run_here("archive", *arguments)["rows"] == FLIGHTS
            # The first round warms up Spark and the broker.
            if round:
                seconds.setdefault(format, []).append(time.perf_counter() - started)
    medians = {format: statistics.median(values) for format, values in seconds.items()}
    with capsys.disabled():
        for format in TABLES:
            print(f"{format}: {medians['parquet'] / medians[format]:.2f} of the throughput of Parquet files")
    assert all(medians[format] < 3 * medians["parquet"] for format in TABLES)


@pytest.mark.timeout(900)
@pytest.mark.parametrize("format", TABLES)
def test_decoded_values_are_columns_of_the_table(
    format: str, kafka: Cluster, connector_jars: Path, spark: Any, tmp_path: Path
) -> None:
    """Two topics with their own schemas, one of which evolves between two runs, and a broken value."""
    del spark
    topic, other = kafka.create_topic(), kafka.create_topic()
    table = tmp_path / "archive" / TABLE
    leg = {"type": "record", "name": "Leg", "fields": [{"name": "origin", "type": "string"}]}
    with SchemaRegistry().serve() as registry:
        registry.add(1, FLIGHT, subject=f"{topic}-value")
        registry.add(2, leg, subject=f"{other}-value")
        arguments = ["--bootstrap-server", kafka.address, "--topic", f"{topic},{other}", "--format", format]
        arguments += ["--jars", str(connector_jars), "--to", str(table.parent)]
        arguments += ["--value-format", "avro", "--schema-registry", registry.url]
        fill(kafka, topic, avro(1, FLIGHT, {"carrier": "AA", "distance": 5}), b"broken", None)
        fill(kafka, other, avro(2, leg, {"origin": "JFK"}))
        report = run_here("archive", *arguments)
        assert (report["rows"], report["undecoded"]) == (4, 1)
        registry.add(3, FLIGHT_2, subject=f"{topic}-value", version=2)
        fill(kafka, topic, avro(3, FLIGHT_2, {"carrier": "BB", "distance": 6, "origin": "LGA"}))
        assert run_here("archive", *arguments)["undecoded"] == 0
    read_by_spark(format, table, tmp_path / "by-spark", "decoded", "schema_id", "decode_error")
    for rows in (read_by_others(format, table), pyarrow.dataset.dataset(tmp_path / "by-spark").to_table()):
        found = {row["value"]: (row["decoded"], row["schema_id"]) for row in rows.to_pylist()}
        assert list(found.values()).count((None, None)) == 2
        decoded = sorted((value for value in found.values() if value[0]), key=lambda value: value[1])
        assert decoded == [
            ({"carrier": "AA", "distance": 5, "origin": None}, 1),
            ({"carrier": None, "distance": None, "origin": "JFK"}, 2),
            ({"carrier": "BB", "distance": 6, "origin": "LGA"}, 3),
        ]


def fill(kafka: Cluster, topic: str, *values: bytes | None) -> None:
    kafka.fill(topic, 1, [(None, value, 1_700_000_000_000, []) for value in values])
