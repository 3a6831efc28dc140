"""The jobs archive, latest and windows with values whose schemas are in a registry."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow.dataset
import pyarrow.parquet as pq
import pytest

from kafka_compat.cli import main
from tests.decoding.schema_registry import SchemaRegistry, framed
from tests.pipelines.cluster import Cluster
from tests.pipelines.decode.values import FLIGHT, FLIGHT_2, avro, proto_file, proto_message, protobuf
from tests.pipelines.job import run_here

WHEN = 1_700_000_000_000


@pytest.fixture
def registry() -> Iterator[SchemaRegistry]:
    with SchemaRegistry().serve() as served:
        yield served


@pytest.fixture
def arguments(kafka: Cluster, connector_jars: Path, spark: Any, registry: SchemaRegistry) -> list[str]:
    """Arguments of all jobs."""
    del spark
    jars = ["--jars", str(connector_jars), "--schema-registry", registry.url]
    return ["--bootstrap-server", kafka.address, *jars]


def flight(schema_id: int, carrier: str, distance: int, **more: Any) -> bytes:
    schema = FLIGHT_2 if more else FLIGHT
    return avro(schema_id, schema, {"carrier": carrier, "distance": distance, **more})


def fill(kafka: Cluster, topic: str, *values: tuple[str, bytes | None]) -> None:
    kafka.fill(topic, 1, [(key.encode(), value, WHEN, []) for key, value in values])


def test_an_archive_has_the_columns_of_the_newest_schema(
    kafka: Cluster, registry: SchemaRegistry, arguments: list[str], tmp_path: Path
) -> None:
    """Two topics with their own schemas, a schema that evolves between two runs, and a broken value."""
    topic, other = kafka.create_topic(), kafka.create_topic()
    registry.add(1, FLIGHT, subject=f"{topic}-value")
    leg = {"type": "record", "name": "Leg", "fields": [{"name": "origin", "type": "string"}]}
    registry.add(2, leg, subject=f"{other}-value")
    fill(kafka, topic, ("a", flight(1, "AA", 5)), ("b", b"broken"), ("c", None))
    fill(kafka, other, ("x", framed(2, b"\6JFK")))
    line = [
        *arguments,
        "--value-format",
        "avro",
        "--to",
        str(tmp_path / "archive"),
        "--topic",
        f"{topic},{other}",
    ]
    report = run_here("archive", *line)
    assert (report["rows"], report["undecoded"]) == (4, 1)
    registry.add(3, FLIGHT_2, subject=f"{topic}-value", version=2)
    fill(kafka, topic, ("d", flight(1, "BB", 6)), ("e", flight(3, "CC", 7, origin="LGA")))
    assert run_here("archive", *line)["undecoded"] == 0
    files = sorted((tmp_path / "archive" / f"topic_dir={topic}").rglob("*.parquet"))
    rows = [row for file in files for row in pq.ParquetFile(file).read().to_pylist()]
    assert [(row["key"], row["decoded"], row["schema_id"], row["decode_error"]) for row in rows] == [
        (b"a", {"carrier": "AA", "distance": 5}, 1, None),
        (b"b", None, None, "does not begin with 0 and a schema ID"),
        (b"c", None, None, None),
        (b"d", {"carrier": "BB", "distance": 6, "origin": "?"}, 1, None),
        (b"e", {"carrier": "CC", "distance": 7, "origin": "LGA"}, 3, None),
    ]
    assert rows[1]["value"] == b"broken"
    table = pyarrow.dataset.dataset(tmp_path / "archive" / f"topic_dir={other}", format="parquet").to_table()
    assert table.column("decoded").to_pylist() == [{"origin": "JFK"}]


def test_a_table_of_latest_values_has_their_columns(
    kafka: Cluster, registry: SchemaRegistry, arguments: list[str], tmp_path: Path
) -> None:
    topic = kafka.create_topic()
    first = proto_file(proto_message("Flight", "1 string carrier"))
    second = proto_file(proto_message("Flight", "1 string carrier, 2 int64 distance"))
    registry.add(1, first, "PROTOBUF", subject="air.Flight")
    one = protobuf(1, first, "Flight", {"carrier": "AA"})
    fill(kafka, topic, ("a", one), ("b", one), ("c", b"broken"), ("d", one), ("d", None))
    line = [*arguments, "--value-format", "protobuf", "--value-subject", "air.Flight"]
    line += ["--topic", topic, "--to", str(tmp_path / "table")]
    report = run_here("latest", *line)
    assert (report["keys"], report["undecoded"]) == (3, 1)
    registry.add(2, second, "PROTOBUF", subject="air.Flight", version=2)
    fill(kafka, topic, ("b", protobuf(2, second, "Flight", {"carrier": "BB", "distance": "9"})))
    assert run_here("latest", *line)["undecoded"] == 1
    rows = pq.read_table(tmp_path / "table" / "latest").to_pylist()
    assert {row["key"]: (row["decoded"], row["schema_id"], row["decode_error"]) for row in rows} == {
        b"a": ({"carrier": "AA", "distance": 0}, 1, None),
        b"b": ({"carrier": "BB", "distance": 9}, 2, None),
        b"c": (None, None, "does not begin with 0 and a schema ID"),
    }


def test_windows_count_decoded_values_and_set_others_aside(
    kafka: Cluster, registry: SchemaRegistry, arguments: list[str], tmp_path: Path, capsys: Any
) -> None:
    topic = kafka.create_topic()
    results, dead = f"{topic}-results", f"{topic}-dead"
    registry.add(1, FLIGHT, subject=f"{topic}-value")
    registry.add(3, FLIGHT_2, subject=f"{topic}-value", version=2)
    values = [flight(1, "AA", 5), flight(3, "AA", 1 << 40, origin="LGA"), flight(1, "BB", -1), b"broken"]
    fill(kafka, topic, *(("k", value) for value in values), ("k", None))
    line = [*arguments, "--topic", topic, "--to-topic", results, "--dead-letter-topic", dead, "--create"]
    line += ["--format", "avro", "--window", "1h", "--group-by", "carrier", "--sum", "distance"]
    line += ["--check", "distance > 0", "--to", str(tmp_path / "windows")]
    assert main(["pipeline", "windows", *line, "--sum", "distanz"]) == 2
    assert "no column distanz.\nIts columns: carrier, distance, origin." in capsys.readouterr().err
    report = run_here("windows", *line)
    assert (report["read_total"], report["open_rows"], report["dead_letters"]) == (5, 2, 3)
    assert report["reasons"] == {"no value": 1, "not avro of the schema": 1, "not so: distance > 0": 1}
    written = [
        json.loads(each.value())
        for p, end in kafka.ends(results).items()
        for each in kafka.read(results, p, end)
    ]
    assert [(value["carrier"], value["rows"], value["sum_distance"]) for value in written] == [
        ("AA", 2, (1 << 40) + 5)
    ]
    letters = {letter.value(): dict(letter.headers()) for letter in kafka.read(dead, 0, 3)}
    assert letters[b"broken"]["kafka-compat-reason"] == b"not avro of the schema"
    assert letters[b"broken"]["kafka-compat-detail"] == b"does not begin with 0 and a schema ID"
    assert "kafka-compat-detail" not in letters[values[2]]


def test_json_values_without_a_registry_have_the_columns_of_an_sql_schema(
    kafka: Cluster, arguments: list[str], tmp_path: Path
) -> None:
    topic = kafka.create_topic()
    fill(kafka, topic, ("a", b'{"carrier": "AA", "at": "2013-01-02T03:04:05Z"}'), ("b", b'{"carrier": 1,'))
    line = [*arguments[:-2], "--value-format", "json", "--value-schema", "carrier STRING, at TIMESTAMP"]
    report = run_here("archive", *line, "--topic", topic, "--to", str(tmp_path / "archive"))
    assert report["undecoded"] == 1
    (file,) = (tmp_path / "archive").rglob("*.parquet")
    rows = pq.ParquetFile(file).read().to_pylist()
    assert rows[0]["decoded"]["carrier"] == "AA" and rows[0]["decoded"]["at"].year == 2013
    assert rows[1]["decoded"] is None
