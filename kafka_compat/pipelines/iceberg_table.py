"""An archive's Iceberg table, written through Iceberg's Java library in Spark's driver.

The table is found by its path (Iceberg's HadoopTables), without a catalog. It is partitioned by topic and by
day of the timestamp. A batch's files and its number, a table property, are in the same commit. The files have
no field IDs: the table's name mapping assigns their columns, also after columns were added or renamed.
"""

import json
import time
from collections.abc import Mapping
from datetime import date
from pathlib import Path
from typing import Any

from kafka_compat.pipelines.archive_table import APPLICATION, TARGET_FILE_BYTES, TableFile
from kafka_compat.pipelines.cluster import cause
from kafka_compat.pipelines.environment import spark_release
from kafka_compat.pipelines.errors import JobFailed, NotStarted

_EPOCH = date(1970, 1, 1).toordinal()
_FILES_TO_MERGE_MIN = 2
_METADATA_FILES_KEPT = 100
_NAME_MAPPING = "schema.name-mapping.default"


class IcebergArchive:
    """The Iceberg table in `directory`, which the first batch creates. `spark` has Iceberg's package."""

    def __init__(self, directory: Path, spark: Any) -> None:
        self._path = str(directory.resolve())
        self._spark = spark
        self._iceberg = spark._jvm.org.apache.iceberg
        try:
            self._tables = self._iceberg.hadoop.HadoopTables(spark._jsc.hadoopConfiguration())
        except TypeError:
            # py4j takes the name of a class that does not exist for a package, which cannot be called.
            package = spark_release().iceberg
            raise NotStarted(
                "Spark was started without Iceberg's package.",
                f"Pass it to spark-submit: --packages {package}",
            ) from None
        # Look up the classes once: each lookup is several calls to the JVM.
        self._data_files = self._iceberg.DataFiles
        self._file_metrics = self._iceberg.parquet.ParquetUtil.fileMetrics
        self._partition_data = self._iceberg.PartitionData

    def recover(self) -> None:
        """Update version-hint.text, which readers without a catalog use, if a killed job did not."""
        hint = Path(self._path, "metadata", "version-hint.text")
        if not self._tables.exists(self._path):
            return
        table = self._tables.load(self._path)
        current = str(table.operations().current().metadataFileLocation())
        if not hint.exists() or not current.endswith(f"/v{hint.read_text().strip()}.metadata.json"):
            # Iceberg writes the file with a commit, and commits only changes.
            now_ms = str(int(time.time() * 1000))
            table.updateProperties().set(f"{APPLICATION}.recovered-ms", now_ms).commit()

    def last_batch(self) -> int:
        if not self._tables.exists(self._path):
            return -1
        return int(self._tables.load(self._path).properties().get(APPLICATION) or -1)

    def append(
        self, batch_id: int, files: list[TableFile], schema: Any, properties: Mapping[str, str]
    ) -> None:
        table = self._with_columns(iceberg_schema(schema))
        mapping = self._iceberg.mapping.NameMappingParser.fromJson(table.properties().get(_NAME_MAPPING))
        columns = self._iceberg.MetricsConfig.forTable(table)
        transaction = table.newTransaction()
        append = transaction.newAppend()
        spec, io = table.spec(), table.io()
        for file in files:
            content = io.newInputFile(f"{self._path}/{file.name}", file.size_bytes)
            metrics = self._file_metrics(content, columns, mapping)
            append.appendFile(self._data_file(spec, file, content, metrics))
        for name, value in properties.items():
            append.set(name, value)
        append.commit()
        transaction.updateProperties().set(APPLICATION, str(batch_id)).commit()
        transaction.commitTransaction()

    def compact(self, keep_ms: int) -> None:
        table = self._tables.load(self._path)
        actions = self._iceberg.spark.actions.SparkActions.get(self._spark._jsparkSession)
        rewrite = actions.rewriteDataFiles(table)
        rewrite.option("target-file-size-bytes", str(TARGET_FILE_BYTES))
        rewrite.option("min-input-files", str(_FILES_TO_MERGE_MIN)).execute()
        table.refresh()
        table.expireSnapshots().expireOlderThan(int(time.time() * 1000) - keep_ms).commit()

    def _with_columns(self, schema: str) -> Any:
        """Load the table, create it if it does not exist, and add the columns of `schema`, and the fields of
        its structs, that it lacks."""
        wanted = self._iceberg.SchemaParser.fromJson(schema)
        if not self._tables.exists(self._path):
            spec = self._iceberg.PartitionSpec.builderFor(wanted).identity("topic").day("timestamp").build()
            properties = self._spark._jvm.java.util.HashMap()
            properties.put("write.metadata.delete-after-commit.enabled", "true")
            properties.put("write.metadata.previous-versions-max", str(_METADATA_FILES_KEPT))
            self._tables.create(wanted, spec, properties, self._path)
        table = self._tables.load(self._path)
        if not table.properties().containsKey(_NAME_MAPPING):
            # The table's own schema has other field IDs than `wanted`: creating a table assigns them.
            mapping = self._iceberg.mapping.MappingUtil.create(table.schema())
            as_json = self._iceberg.mapping.NameMappingParser.toJson(mapping)
            table.updateProperties().set(_NAME_MAPPING, as_json).commit()
        try:
            table.updateSchema().unionByNameWith(wanted).commit()
        except Exception as error:
            raise JobFailed(
                f"The table {self._path} cannot take the columns of this batch: {cause(error)}",
                "Columns may be added to a table, but not change their type. Archive to a new directory.",
            ) from error
        return table

    def _data_file(self, spec: Any, file: TableFile, content: Any, metrics: Any) -> Any:
        """Return Iceberg's description of a file: its partition, size, and the bounds of its columns."""
        partition = self._partition_data(spec.partitionType())
        partition.set(0, file.topic)
        partition.set(1, date.fromisoformat(file.day).toordinal() - _EPOCH)
        built = self._data_files.builder(spec).withInputFile(content).withFormat("parquet")
        return built.withPartition(partition).withMetrics(metrics).build()


def iceberg_schema(schema: Any) -> str:
    """Convert an Arrow schema to Iceberg's JSON. Raises JobFailed for a type that Iceberg does not have."""
    return json.dumps({**_struct(schema, _Numbers()), "schema-id": 0})


class _Numbers:
    """Field IDs, in the order of their creation."""

    def __init__(self) -> None:
        self._last = 0

    def next(self) -> int:
        self._last += 1
        return self._last


def _struct(fields: Any, numbers: _Numbers) -> dict[str, Any]:
    entries = [
        {"id": numbers.next(), "name": field.name, "required": False, "type": _type(field.type, numbers)}
        for field in fields
    ]
    return {"type": "struct", "fields": entries}


def _type(kind: Any, numbers: _Numbers) -> Any:
    import pyarrow.types as t

    if t.is_struct(kind):
        return _struct([kind.field(i) for i in range(kind.num_fields)], numbers)
    if t.is_map(kind):
        key, value = numbers.next(), numbers.next()
        return {
            "type": "map",
            "key-id": key,
            "key": _type(kind.key_type, numbers),
            "value-id": value,
            "value": _type(kind.item_type, numbers),
            "value-required": False,
        }
    if t.is_list(kind) or t.is_large_list(kind):
        element = {"element-id": numbers.next(), "element": _type(kind.value_type, numbers)}
        return {"type": "list", **element, "element-required": False}
    if t.is_decimal(kind):
        return f"decimal({kind.precision}, {kind.scale})"
    if t.is_timestamp(kind):
        return "timestamp" if kind.tz is None else "timestamptz"
    for name, matches in {
        "boolean": t.is_boolean,
        "int": lambda k: t.is_int8(k) or t.is_int16(k) or t.is_int32(k),
        "long": t.is_int64,
        "float": t.is_float32,
        "double": t.is_float64,
        "date": t.is_date32,
        "string": lambda k: t.is_string(k) or t.is_large_string(k),
        "binary": lambda k: t.is_binary(k) or t.is_large_binary(k),
    }.items():
        if matches(kind):
            return name
    raise JobFailed(f"Iceberg has no type for {kind}.")
