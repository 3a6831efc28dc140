"""Versioned tables that a job updates with each batch: batch N writes DIR/versions/N-RUN.

The batch's commit entry names the directory. A directory without a commit entry is from a failed attempt.
"""

import shutil
import uuid
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Any


class Versions:
    """The versions of the tables in a job's directory."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory / "versions"

    def new(self, batch_id: int) -> str:
        """Return a unique name for the version that a batch writes."""
        return f"{batch_id}-{uuid.uuid4().hex[:8]}"

    def path(self, name: str, table: str) -> str:
        """Return the path of a version's table."""
        return str(self._directory / name / table)

    def table(self, name: str, table: str, columns: Sequence[str] = ()) -> Any:
        """Read columns of a version's table with Arrow, because a Spark job would take longer."""
        import pyarrow.dataset

        return pyarrow.dataset.dataset(self.path(name, table), format="parquet").to_table(list(columns))

    def forget_all_but(self, names: Collection[str]) -> None:
        """Delete all versions except `names`."""
        for path in self._directory.iterdir() if self._directory.is_dir() else ():
            if path.name not in names:
                shutil.rmtree(path)
