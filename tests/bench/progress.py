"""Progress output of the benchmark on stderr: a progress bar in a terminal, plain lines otherwise."""

from __future__ import annotations

import sys
import time
from typing import Any


class Progress:
    """Counts steps. Call `step` with a description before each step."""

    def __init__(self, steps: int) -> None:
        self._steps = steps
        self._done = 0
        self._began = time.monotonic()
        self._bar: Any = None
        self._task: Any = None
        if sys.stderr.isatty():
            from rich import progress
            from rich.console import Console

            self._bar = progress.Progress(
                progress.BarColumn(),
                progress.MofNCompleteColumn(),
                progress.TimeElapsedColumn(),
                progress.TimeRemainingColumn(),
                progress.TextColumn("{task.description}"),
                console=Console(stderr=True),
                transient=True,
            )
            self._task = self._bar.add_task("", total=steps)
            self._bar.start()

    def step(self, what: str) -> None:
        """Finish the previous step, and start the step `what`."""
        self._done += 1
        if self._bar is not None:
            self._bar.update(self._task, completed=self._done - 1, description=what)
        else:
            elapsed_s = time.monotonic() - self._began
            print(f"[{self._done}/{self._steps}] {elapsed_s:5.0f} s  {what}", file=sys.stderr, flush=True)

    def note(self, text: str) -> None:
        """Print an intermediate result."""
        if self._bar is not None:
            self._bar.console.print(text)
        else:
            print(f"  {text}", file=sys.stderr, flush=True)

    def close(self) -> None:
        if self._bar is not None:
            self._bar.stop()
