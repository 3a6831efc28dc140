"""The tables of kafka-compat pipeline archive --format: after kills, with new columns, and compacted."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable

from kafka_compat.pipelines.archive import ArchiveJob, ArchiveReport, run_archive
from kafka_compat.pipelines.archive_store import TABLE, ArchiveStore
from kafka_compat.pipelines.archive_table import APPLICATION, archive_columns
from kafka_compat.pipelines.delta_table import DeltaArchive
from kafka_compat.pipelines.errors import JobFailed, NotStarted
from kafka_compat.pipelines.iceberg_table import iceberg_schema
from kafka_compat.pipelines.session import SparkSettings
from tests.pipelines.archive_batches import (
    EXPECTED,
    Killed,
    archive_two_batches,
    kill_at,
    offsets_of,
    records,
    staged,
)
from tests.pipelines.cluster import Cluster
from tests.pipelines.comparisons import assert_table_equals_log
from tests.pipelines.job import run_here
from tests.support.campaign import enabled

EVERY = 1 if enabled() else 5
"""Distance between the steps at which a batch's publication is killed."""


def delta(directory: Path, version: int | None = None) -> Any:
    """Return the archive's Delta table, read by delta-rs, or an empty table if it has no versions."""
    path = str(directory / TABLE)
    if not DeltaTable.is_deltatable(path):
        return archive_columns().empty_table()
    return DeltaTable(path, version=version).to_pyarrow_table()


def test_each_record_is_in_the_table_once_after_a_kill_at_any_step(tmp_path: Path) -> None:
    with pytest.MonkeyPatch.context() as patch:
        steps = kill_at(patch, 1_000_000)
        archive_two_batches(tmp_path / "whole", "delta")
    assert offsets_of(delta(tmp_path / "whole")) == EXPECTED
    for step in range(0, steps[0], EVERY):
        directory = tmp_path / str(step)
        with pytest.MonkeyPatch.context() as patch, pytest.raises(Killed):
            kill_at(patch, step)
            archive_two_batches(directory, "delta")
        assert all(times == 1 for times in offsets_of(delta(directory)).values()), f"killed at step {step}"
        archive_two_batches(directory, "delta")
        assert offsets_of(delta(directory)) == EXPECTED, f"killed at step {step}, then run again"
        assert DeltaTable(str(directory / TABLE)).transaction_version(APPLICATION) == 1


def test_a_batch_is_a_version_of_the_table_and_names_its_end_offsets(tmp_path: Path) -> None:
    archive_two_batches(tmp_path, "delta")
    history = DeltaTable(str(tmp_path / TABLE)).history()
    assert [entry.get(f"{APPLICATION}.batch") for entry in history] == ["1", "0", None]
    assert history[0][f"{APPLICATION}.end-offsets"] == '{"t":{"0":8,"1":2}}'
    before = {place: 1 for place in EXPECTED if place[2] < 4}
    assert offsets_of(delta(tmp_path, history[1]["version"])) == before


def test_compaction_merges_files_and_keeps_the_records(tmp_path: Path) -> None:
    archive_two_batches(tmp_path, "delta")
    table = DeltaArchive(tmp_path / TABLE)
    assert len(DeltaTable(str(tmp_path / TABLE)).file_uris()) == 5
    version = DeltaTable(str(tmp_path / TABLE)).version()
    table.compact(keep_ms=3_600_000)
    assert len(DeltaTable(str(tmp_path / TABLE)).file_uris()) == 3
    assert offsets_of(delta(tmp_path)) == offsets_of(delta(tmp_path, version)) == EXPECTED
    assert table.last_batch() == 1
    table.compact(keep_ms=0)
    with pytest.raises(FileNotFoundError):
        delta(tmp_path, version)
    archive_two_batches(tmp_path, "delta")
    assert offsets_of(delta(tmp_path)) == EXPECTED


def test_columns_that_a_later_batch_has_are_added_to_the_table(tmp_path: Path) -> None:
    archive_two_batches(tmp_path, "delta")
    store = ArchiveStore(tmp_path, "delta")
    store.open(DeltaArchive(tmp_path / TABLE))
    more = records(0, [8, 9], [1, 1]).append_column("carrier", pa.array(["AA", "UA"]))
    store.commit(2, staged(store, 2, [[more]]), {"t": {0: 8}}, {"t": {0: 10}}, {"t": "id"})
    rows = delta(tmp_path).sort_by([("partition", "ascending"), ("offset", "ascending")])
    assert rows.column("carrier").to_pylist() == [None] * 6 + ["AA", "UA"] + [None] * 2
    DeltaTable(str(tmp_path / TABLE)).alter.add_columns([delta_field("note", "string")])
    plain = staged(store, 3, [[records(0, [10], [1])]])
    store.commit(3, plain, {"t": {0: 10}}, {"t": {0: 11}}, {"t": "id"})
    assert delta(tmp_path).num_rows == 11
    changed = records(0, [11], [1]).append_column("carrier", pa.array([7]))
    with pytest.raises(JobFailed, match="cannot take the columns"):
        store.commit(4, staged(store, 4, [[changed]]), {"t": {0: 11}}, {"t": {0: 12}}, {"t": "id"})


CARRIER = pa.field("carrier", pa.string())
FLIGHT = pa.struct([CARRIER, pa.field("distance", pa.int32())])
LATER_FLIGHT = pa.struct([*FLIGHT, pa.field("stops", pa.list_(pa.struct([pa.field("at", pa.int64())])))])
CITY = pa.struct([pa.field("name", pa.string())])
CHANGED_FLIGHT = pa.struct([CARRIER, pa.field("distance", pa.string())])


def test_decoded_values_of_several_topics_and_schemas_are_one_column(tmp_path: Path) -> None:
    """A later schema adds fields, some of them in nested structs. Then the earlier schema is used again."""
    store = ArchiveStore(tmp_path, "delta")
    store.open(DeltaArchive(tmp_path / TABLE))

    def commit(batch_id: int, *ranges: tuple[str, list[Any], Any]) -> None:
        rows = [
            [records(0, [batch_id], [1], topic).append_column("decoded", pa.array(values, kind))]
            for topic, values, kind in ranges
        ]
        ends = {topic: {0: batch_id + 1} for topic, _, _ in ranges}
        store.commit(batch_id, staged(store, batch_id, rows), {}, ends, dict.fromkeys(ends, "id"))

    commit(0, ("flights", [{"carrier": "AA", "distance": 5}], FLIGHT), ("cities", [{"name": "Oslo"}], CITY))
    commit(1, ("flights", [{"carrier": "BB", "distance": 6, "stops": [{"at": 1}]}], LATER_FLIGHT))
    commit(2, ("flights", [None], FLIGHT))
    rows = delta(tmp_path).sort_by([("offset", "ascending"), ("topic", "ascending")])
    absent = {"carrier": None, "distance": None, "name": None, "stops": None}
    assert rows.column("decoded").to_pylist() == [
        {**absent, "name": "Oslo"},
        {**absent, "carrier": "AA", "distance": 5},
        {**absent, "carrier": "BB", "distance": 6, "stops": [{"at": 1}]},
        None,
    ]
    with pytest.raises(JobFailed, match="Cannot merge types integer and string"):
        commit(3, ("flights", [{"carrier": "CC", "distance": "7"}], CHANGED_FLIGHT))


def delta_field(name: str, kind: str) -> Any:
    from deltalake.schema import Field, PrimitiveType

    return Field(name, PrimitiveType(kind))


def test_a_batch_without_records_is_committed_to_the_table(tmp_path: Path) -> None:
    store = ArchiveStore(tmp_path, "delta")
    store.open(DeltaArchive(tmp_path / TABLE))
    store.commit(0, [], {"t": {0: 0}}, {"t": {0: 3}}, {"t": "id"})
    (tmp_path / "_checkpoint" / "offsets").mkdir(parents=True)
    assert ArchiveStore(tmp_path, "delta").open(DeltaArchive(tmp_path / TABLE)).topics["t"][0].gaps == 3
    assert delta(tmp_path).num_rows == 0


def test_an_archive_keeps_its_format_and_its_table(tmp_path: Path) -> None:
    archive_two_batches(tmp_path / "table", "delta")
    archive_two_batches(tmp_path / "files")
    with pytest.raises(NotStarted, match="is an archive in the format delta"):
        ArchiveStore(tmp_path / "table").check()
    with pytest.raises(NotStarted, match="is an archive in the format parquet"):
        ArchiveStore(tmp_path / "files", "iceberg").check()
    other = DeltaArchive(tmp_path / "absent")
    with pytest.raises(NotStarted, match="ends at batch -1, but the archive ends at batch 1"):
        ArchiveStore(tmp_path / "table", "delta").open(other)


def test_arrow_columns_become_iceberg_columns() -> None:
    more = [
        pa.field("map", pa.map_(pa.string(), pa.int16())),
        pa.field("price", pa.decimal128(10, 2)),
        pa.field("at", pa.timestamp("us")),
        pa.field("day", pa.date32()),
        pa.field("nested", pa.struct([("ok", pa.bool_()), ("ratio", pa.float64()), ("part", pa.float32())])),
    ]
    schema = iceberg_schema(pa.schema([*archive_columns(), *more]))
    from pyiceberg.schema import Schema

    columns = {field.name: str(field.field_type) for field in Schema.model_validate_json(schema).fields}
    assert columns == {
        "key": "binary",
        "value": "binary",
        "headers": "list<struct<5: key: optional string, 6: value: optional binary>>",
        "topic": "string",
        "partition": "int",
        "offset": "long",
        "timestamp": "timestamptz",
        "timestampType": "int",
        "map": "map<string, int>",
        "price": "decimal(10, 2)",
        "at": "timestamp",
        "day": "date",
        "nested": "struct<19: ok: optional boolean, 20: ratio: optional double, 21: part: optional float>",
    }
    with pytest.raises(JobFailed, match="no type for null"):
        iceberg_schema(pa.schema([("nothing", pa.null())]))


@pytest.fixture
def archive(spark: Any, kafka: Cluster, connector_jars: Path, tmp_path: Path) -> Callable[..., ArchiveReport]:
    """`archive(topic, …)` runs the job in this process's Spark session, with a Delta table in tmp_path."""

    def run(topic: str, **settings: Any) -> ArchiveReport:
        own = {"format": "delta", "spark": SparkSettings(jars=connector_jars), **settings}
        return run_archive(ArchiveJob(kafka.address, tmp_path, [topic], **own))

    return run


def test_a_topic_is_archived_to_a_delta_table(
    kafka: Cluster, archive: Callable[..., ArchiveReport], tmp_path: Path
) -> None:
    topic = kafka.create_topic(partitions=2)
    midnight = 1_700_006_400_000
    kafka.fill(topic, 2, [(b"k", str(i).encode(), midnight + (-1) ** i, [("h", None)]) for i in range(40)])
    assert archive(topic, offsets_per_batch=20, compact_every=2).rows == 40
    assert archive(topic).rows == 0
    kafka.fill(topic, 2, [(None, None, midnight, [])] * 6)
    assert archive(topic).rows == 6
    rows = delta(tmp_path)
    assert rows.column_names == [*archive_columns().names, "topic_dir", "day_utc"]
    assert assert_table_equals_log(rows, kafka, topic, 2) == 46
    tiers = [f"topic=kafka:{kafka.address}/{topic}", f"table=archive:{tmp_path}/{topic}"]
    audited = run_here("audit", *(part for tier in tiers for part in ("--tier", tier)))
    assert [tier["rows"] for tier in audited["tiers"]] == [46, 46]
    operations = [entry["operation"] for entry in DeltaTable(str(tmp_path / TABLE)).history()]
    assert "OPTIMIZE" in operations
