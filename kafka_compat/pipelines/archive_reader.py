"""Read an archive in any of its formats as a DataFrame of records."""

import json
from pathlib import Path
from typing import Any

from kafka_compat.pipelines.archive_store import TABLE
from kafka_compat.pipelines.environment import require_deltalake, require_iceberg, spark_release
from kafka_compat.pipelines.errors import NotStarted


def archive_format(directory: Path) -> str:
    """Return the format of the archive in a directory. Raises NotStarted if it is not an archive, or if the
    packages for its format are missing.
    """
    marker = directory / "_archive.json"
    if not marker.exists():
        raise NotStarted(f"{directory} is not an archive.", "kafka-compat pipeline archive writes one.")
    format: str = json.loads(marker.read_text()).get("format", "parquet")
    if format == "delta":
        require_deltalake()
    if format == "iceberg":
        require_iceberg(spark_release())
    return format


def read_archive(spark: Any, directory: Path, topic: str, schema: str) -> Any:
    """Return the archived records of a topic. `schema` has the columns to read, as a Spark DDL string."""
    from pyspark.sql import functions as f

    format = archive_format(directory)
    if format == "iceberg":
        return spark.read.format("iceberg").load(str(directory / TABLE)).where(f.col("topic") == topic)
    paths = [str(directory / f"topic_dir={topic}")]
    if format == "delta":
        from deltalake import DeltaTable

        paths = DeltaTable(str(directory / TABLE)).file_uris([("topic_dir", "=", topic)])
        if not paths:
            return spark.createDataFrame([], schema)
    return spark.read.schema(schema).parquet(*paths)
