"""Versioned tables that a job updates with each batch: DIR/versions/N-RUN, written by batch N.

The batch's commit names the directory; a directory that no commit names was written by a failed attempt.
"""

import shutil
import time
import uuid
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Any


class Versions:
    """The versions in a job's folder."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory / "versions"

    def new(self, batch_id: int) -> str:
        """The name of a version that nobody has written yet."""
        return f"{batch_id}-{uuid.uuid4().hex[:8]}"

    def path(self, name: str, table: str) -> str:
        """Where the version has a table."""
        return str(self._directory / name / table)

    def table(self, name: str, table: str, columns: Sequence[str] = ()) -> Any:
        """The columns given of a version's table, as one of Arrow; a job of Spark would take longer."""
        import pyarrow.dataset

        return pyarrow.dataset.dataset(self.path(name, table), format="parquet").to_table(list(columns))

    def forget_all_but(self, names: Collection[str]) -> None:
        """Remove the other versions."""
        for path in self._directory.iterdir() if self._directory.is_dir() else ():
            if path.name not in names:
                shutil.rmtree(path)


AHEAD_MS = 3_600_000
"""Times further ahead of this machine's clock say nothing of the stream's: one wrong clock would make all
other records late. An hour is what Kafka 3.9 allows by default, too (message.timestamp.after.max.ms).
"""


def latest_time(at: Any) -> Any:
    """The aggregate of the column `at` (ms since 1970) that is its latest believable time, or null."""
    from pyspark.sql import functions as f

    return f.max(f.when(at <= int(time.time() * 1000) + AHEAD_MS, at))
