"""The operations of an archive on a table: append a batch's files exactly once, and merge small files.

A batch is one commit, which also stores the batch's number in the table. A batch that is published again
after a crash finds its number there and is not appended twice (see archive_store). Each commit is a version
of the table for time travel.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from kafka_compat.pipelines.errors import JobFailed

FORMATS = ("parquet", "iceberg", "delta")
APPLICATION = "kafka-compat.archive"
"""Name under which a table stores the number of the last batch."""
TARGET_FILE_BYTES = 128 << 20
_NAME = re.compile(r"topic_dir=([^/]+)/day_utc=([^/]+)/(\d+)-(\d+)-(\d+)\.parquet")


@dataclass(frozen=True, slots=True)
class TableFile:
    """A Parquet file in the table's directory: the records of one partition and one UTC day."""

    name: str
    size_bytes: int
    rows: int
    topic: str
    day: str
    partition: int
    first: int
    last: int


class ArchiveTable(Protocol):
    """A table in a directory. One job at a time writes to it; other programs may read and compact it."""

    def recover(self) -> None:
        """Complete a commit that a killed job left half visible. Called once, before any other operation."""

    def last_batch(self) -> int:
        """Return the number of the last appended batch, or -1 if there is none."""

    def append(
        self, batch_id: int, files: list[TableFile], schema: Any, properties: Mapping[str, str]
    ) -> None:
        """Append the files of a batch in one commit, which also stores the batch's number and `properties`.

        Columns of `schema` (an Arrow schema) that the table lacks are added. Raises JobFailed if a column has
        another type in the table.
        """

    def compact(self, keep_ms: int) -> None:
        """Merge small files of the same topic and day. Then delete versions older than `keep_ms`."""


def archive_columns() -> Any:
    """Return the Arrow schema of the columns that every archive has."""
    import pyarrow as pa

    binary, string = pa.binary(), pa.string()
    headers = pa.list_(pa.field("element", pa.struct([("key", string), ("value", binary)])))
    types = {
        "key": binary,
        "value": binary,
        "headers": headers,
        "topic": string,
        "partition": pa.int32(),
        "offset": pa.int64(),
        "timestamp": pa.timestamp("us", "UTC"),
        "timestampType": pa.int32(),
    }
    return pa.schema(list(types.items()))


def table_files(directory: Path, names: Iterable[str]) -> tuple[list[TableFile], Any]:
    """Read the footers of a batch's files in the table's directory. Return the files, and an Arrow schema
    with the columns of every archive and of all files. A struct, such as the decoded values of several
    topics, has the fields of all files.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    files, schemas = [], [archive_columns()]
    for name in names:
        path, found = directory / name, _NAME.fullmatch(name)
        assert found is not None, name
        footer = pq.read_metadata(path)
        schema = footer.schema.to_arrow_schema().remove_metadata()
        if schema not in schemas:
            schemas.append(schema)
        topic, day, *numbers = found.groups()
        files.append(TableFile(name, path.stat().st_size, footer.num_rows, topic, day, *map(int, numbers)))
    try:
        return files, pa.unify_schemas(schemas, promote_options="permissive")
    except pa.ArrowException as error:
        raise JobFailed(f"The files of a batch have different types for a column: {error}.") from error
