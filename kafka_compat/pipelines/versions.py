"""Versioned tables that a job updates with each batch: DIR/versions/N-RUN, written by batch N.

The batch's commit names the directory; a directory without a commit is from a failed attempt.
"""

import shutil
import uuid
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Any


class Versions:
    """The versions in a job's directory."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory / "versions"

    def new(self, batch_id: int) -> str:
        """Return the name of a version that does not exist yet."""
        return f"{batch_id}-{uuid.uuid4().hex[:8]}"

    def path(self, name: str, table: str) -> str:
        """Return the path of a version's table."""
        return str(self._directory / name / table)

    def table(self, name: str, table: str, columns: Sequence[str] = ()) -> Any:
        """Return columns of a version's table, read by Arrow, because a Spark job would take longer."""
        import pyarrow.dataset

        return pyarrow.dataset.dataset(self.path(name, table), format="parquet").to_table(list(columns))

    def forget_all_but(self, names: Collection[str]) -> None:
        """Delete all versions except `names`."""
        for path in self._directory.iterdir() if self._directory.is_dir() else ():
            if path.name not in names:
                shutil.rmtree(path)
