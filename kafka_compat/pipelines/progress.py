"""Show a job's progress on stderr, as a bar in a terminal, otherwise as one line per batch. Format tables and
times.
"""

import sys
import time
from datetime import UTC, datetime
from typing import Any, TextIO


class Progress:
    """A progress display that counts rows, to be used as a context manager.

    `total` is the number of offsets to process; a topic with transactions has fewer records. `unit` is the
    name of the counted items, for jobs that do not process offsets.
    """

    def __init__(
        self, name: str, total: int, stream: TextIO | None = None, *, unit: str = "offsets to read"
    ) -> None:
        self._unit = unit
        self._name = name
        self._total = total
        self._stream = stream or sys.stderr
        self._started = time.monotonic()
        self._bar: Any = None
        self._task: Any = None
        self.rows = 0
        self.batches = 0

    @property
    def seconds(self) -> float:
        return time.monotonic() - self._started

    def __enter__(self) -> "Progress":
        if self._stream.isatty():
            from rich import progress
            from rich.console import Console

            self._bar = progress.Progress(
                progress.TextColumn("{task.description}"),
                progress.BarColumn(),
                progress.TextColumn("{task.fields[text]}"),
                progress.TimeElapsedColumn(),
                console=Console(file=self._stream),
            )
            self._task = self._bar.add_task(
                self._name, total=max(self._total, 1), text="starting Spark's query"
            )
            self._bar.start()
        else:
            self._say(f"{self._name}: {self._total:,} {self._unit}")
        return self

    def __exit__(self, *_: object) -> None:
        if self._bar is not None:
            self._bar.stop()

    def batch(self, batch_id: int, rows: int, behind: int) -> None:
        """Record a finished batch of `rows` records. `behind` is the number of remaining offsets."""
        self.rows += rows
        self.batches += 1
        rate = self.rows / max(self.seconds, 1e-3)
        left = f"{behind:,} {self._unit.split()[0]} behind"
        text = f"{self.rows:,} rows, {rate:,.0f} rows/s, {left}"
        if self._bar is None:
            self._say(f"{self._name}: batch {batch_id}: {text}")
        else:
            self._bar.update(self._task, completed=self._total - behind, text=text)

    def _say(self, line: str) -> None:
        print(line, file=self._stream, flush=True)


def text_table(header: list[str], rows: list[list[str]]) -> str:
    """Format a table in the style of Kafka's tools, with right-aligned numbers."""
    lines = [header, *rows]
    columns = [_aligned([line[i] for line in lines]) for i in range(len(header))]
    return "\n".join("  ".join(cells).rstrip() for cells in zip(*columns, strict=True))


def utc(millis: int) -> str:
    """Format a time in ISO 8601, to the second, or as milliseconds if its year is outside of 1 to 9999."""
    try:
        return datetime.fromtimestamp(millis / 1000, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    except (ValueError, OverflowError, OSError):
        return f"{millis} ms"


def _aligned(cells: list[str]) -> list[str]:
    """Pad a column's cells (header first). A column of numbers and "-" is right-aligned."""
    width = max(map(len, cells))
    numbers = all(cell.isdigit() or cell == "-" for cell in cells[1:])
    return [cell.rjust(width) if numbers else cell.ljust(width) for cell in cells]
