"""The jobs with a real Apicurio, with Avro, Protobuf and JSON, and kills of the job and the broker."""

from __future__ import annotations

import importlib.util
import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from tests.pipelines.cluster import Cluster
from tests.pipelines.decode.apicurio import Apicurio, apicurio
from tests.pipelines.decode.values import (
    FLIGHT,
    FLIGHT_2,
    avro,
    json_value,
    proto_file,
    proto_message,
    protobuf,
)
from tests.pipelines.job import batch_of, kill_and_finish, run_here
from tests.support.campaign import enabled

pytestmark = pytest.mark.skipif(not enabled(), reason="acceptance test: needs --campaign")

WHEN, SAMPLE, PARTITIONS = 1_700_000_000_000, 100_000, 4
PROTO = 'syntax = "proto3"; package air; message Flight { string carrier = 1; int64 distance = 2; }'


@pytest.fixture(scope="module")
def registry(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Apicurio]:
    with apicurio(tmp_path_factory.mktemp("apicurio")) as served:
        yield served


@pytest.fixture
def arguments(kafka: Cluster, connector_jars: Path, registry: Apicurio) -> list[str]:
    jars = ["--jars", str(connector_jars), "--master", "local[2]", "--schema-registry", registry.url]
    return ["--bootstrap-server", kafka.address, *jars]


def rows_of(archive: Path) -> list[dict[str, Any]]:
    return [row for file in archive.rglob("*.parquet") for row in pq.ParquetFile(file).read().to_pylist()]


@pytest.mark.timeout(3600)
def test_an_archive_of_two_schemas_is_complete_after_kills(
    kafka: Cluster, registry: Apicurio, arguments: list[str], tmp_path: Path
) -> None:
    """Every record once; every tenth value is broken; the others are of two versions of the schema."""
    topic = kafka.create_topic(partitions=PARTITIONS)
    first = registry.register(f"{topic}-value", json.dumps(FLIGHT))
    second = registry.register(f"{topic}-value", json.dumps(FLIGHT_2))
    assert first != second

    def value(number: int) -> bytes:
        if number % 10 == 0:
            return b"broken"
        old = {"carrier": "AA", "distance": number}
        return avro(first, FLIGHT, old) if number % 2 else avro(second, FLIGHT_2, {**old, "origin": "JFK"})

    kafka.fill(topic, PARTITIONS, ((str(n).encode(), value(n), WHEN, []) for n in range(SAMPLE)))
    line = [*arguments, "--topic", topic, "--to", str(tmp_path / "archive"), "--value-format", "avro"]
    kill_and_finish("archive", [*line, "--offsets-per-batch", str(batch_of(SAMPLE))], kafka.server)
    rows = rows_of(tmp_path / "archive")
    assert sorted(int(row["key"]) for row in rows) == list(range(SAMPLE))
    assert Counter(row["schema_id"] for row in rows) == {
        None: SAMPLE // 10,
        first: SAMPLE // 2,
        second: SAMPLE // 2 - SAMPLE // 10,
    }
    for row in rows:
        if row["decode_error"] is None:
            origin = "?" if row["schema_id"] == first else "JFK"
            assert row["decoded"] == {"carrier": "AA", "distance": int(row["key"]), "origin": origin}


@pytest.mark.timeout(1800)
@pytest.mark.skipif(importlib.util.find_spec("grpc_tools") is None, reason="needs grpcio-tools")
def test_a_table_of_protobuf_values_is_decoded(
    kafka: Cluster, registry: Apicurio, arguments: list[str], tmp_path: Path
) -> None:
    topic = kafka.create_topic()
    schema_id = registry.register(f"{topic}-value", PROTO, "PROTOBUF")
    file = proto_file(proto_message("Flight", "1 string carrier, 2 int64 distance"))
    values = [protobuf(schema_id, file, "Flight", {"carrier": "AA", "distance": n}) for n in range(1000)]
    kafka.fill(topic, 1, ((str(n).encode(), value, WHEN, []) for n, value in enumerate(values)))
    line = [*arguments, "--topic", topic, "--to", str(tmp_path / "table"), "--value-format", "protobuf"]
    assert run_here("latest", *line)["undecoded"] == 0
    rows = pq.read_table(tmp_path / "table" / "latest").to_pylist()
    assert sorted(row["decoded"]["distance"] for row in rows) == list(range(1000))


@pytest.mark.timeout(1800)
def test_windows_count_json_values(
    kafka: Cluster, registry: Apicurio, arguments: list[str], tmp_path: Path
) -> None:
    topic = kafka.create_topic()
    schema = {
        "type": "object",
        "properties": {"carrier": {"type": "string"}, "distance": {"type": "integer"}},
    }
    schema_id = registry.register(f"{topic}-value", json.dumps(schema), "JSON")
    values = [json_value(schema_id, {"carrier": "AA", "distance": n}) for n in range(100)]
    kafka.fill(topic, 1, ((b"k", value, WHEN, []) for value in [*values, b"broken"]))
    line = [*arguments, "--topic", topic, "--to-topic", f"{topic}-r", "--dead-letter-topic", f"{topic}-d"]
    line += ["--create", "--format", "json", "--window", "1h", "--group-by", "carrier", "--sum", "distance"]
    report = run_here("windows", *line, "--to", str(tmp_path / "windows"))
    assert (report["read_total"], report["open_rows"], report["dead_letters"]) == (101, 100, 1)
    results = [json.loads(each.value()) for p in range(1) for each in kafka.read(f"{topic}-r", p, 1)]
    assert results[0]["sum_distance"] == 4950
