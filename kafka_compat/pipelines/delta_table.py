"""An archive's Delta table, written by delta-rs in the driver.

The columns are the archive's, and the partition columns `topic_dir` and `day_utc` of its directories. The
batch's number is the version of the transaction APPLICATION (Delta's txn action), in the same commit.
"""

import json
import time
from collections.abc import Mapping
from datetime import timedelta
from pathlib import Path
from typing import Any

from kafka_compat.pipelines.archive_table import APPLICATION, TARGET_FILE_BYTES, TableFile
from kafka_compat.pipelines.errors import JobFailed

_PARTITIONS = ["topic_dir", "day_utc"]


class DeltaArchive:
    """The Delta table in `directory`, which the first batch creates."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory

    def recover(self) -> None:
        """Do nothing: creating the file of a commit is atomic, and is all that readers need."""

    def last_batch(self) -> int:
        from deltalake import DeltaTable

        if not DeltaTable.is_deltatable(str(self._directory)):
            return -1
        last = DeltaTable(str(self._directory)).transaction_version(APPLICATION)
        return -1 if last is None else last

    def append(
        self, batch_id: int, files: list[TableFile], schema: Any, properties: Mapping[str, str]
    ) -> None:
        from deltalake import CommitProperties, Transaction
        from deltalake.transaction import AddAction

        table = self._with_columns(schema)
        now_ms = int(time.time() * 1000)
        actions = [
            AddAction(
                path=file.name,
                size=file.size_bytes,
                partition_values={"topic_dir": file.topic, "day_utc": file.day},
                modification_time=now_ms,
                data_change=True,
                stats=_statistics(file),
            )
            for file in files
        ]
        table.create_write_transaction(
            actions,
            "append",
            table.schema(),
            _PARTITIONS,
            commit_properties=CommitProperties(
                custom_metadata=dict(properties), app_transactions=[Transaction(APPLICATION, batch_id)]
            ),
        )

    def compact(self, keep_ms: int) -> None:
        from deltalake import DeltaTable

        table = DeltaTable(str(self._directory))
        table.optimize.compact(target_size=TARGET_FILE_BYTES)
        kept = timedelta(milliseconds=keep_ms)
        table.vacuum(int(kept.total_seconds() // 3600), dry_run=False, enforce_retention_duration=False)

    def _with_columns(self, schema: Any) -> Any:
        """Open the table, create it if it does not exist, and add the columns of `schema`, and the fields of
        its structs, that it lacks."""
        import pyarrow as pa
        from deltalake import DeltaTable, Schema

        wanted = Schema.from_arrow(schema)
        if not DeltaTable.is_deltatable(str(self._directory)):
            partitions = [pa.field("topic_dir", pa.string()), pa.field("day_utc", pa.date32())]
            all_columns = Schema.from_arrow(pa.schema([*schema, *partitions]))
            DeltaTable.create(
                str(self._directory), schema=all_columns, partition_by=_PARTITIONS, name="archive"
            )
        table = DeltaTable(str(self._directory))
        known = {field.name: field for field in table.schema().fields}
        more = [field for field in wanted.fields if known.get(field.name) != field]
        if more:
            try:
                table.alter.add_columns(more)
            except Exception as error:
                # The message repeats the reason once for each of its causes.
                reason = str(error).splitlines()[-1]
                raise JobFailed(
                    f"The table {self._directory} cannot take the columns of this batch: {reason}.",
                    "Columns may be added to a table, but not change their type. Archive to a new directory.",
                ) from error
            table = DeltaTable(str(self._directory))
        return table


def _statistics(file: TableFile) -> str:
    lowest = {"partition": file.partition, "offset": file.first}
    highest = {"partition": file.partition, "offset": file.last}
    none = dict.fromkeys(lowest, 0)
    return json.dumps({"numRecords": file.rows, "minValues": lowest, "maxValues": highest, "nullCount": none})
