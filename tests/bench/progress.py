"""How far the benchmark is: a progress bar in a terminal, plain lines elsewhere, both on stderr."""

from __future__ import annotations

import sys
import time
from typing import Any


class Progress:
    """Counts steps; `step` is told before each with what it is."""

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
        """The step before this one is finished, and `what` begins."""
        self._done += 1
        if self._bar is not None:
            self._bar.update(self._task, completed=self._done - 1, description=what)
        else:
            elapsed_s = time.monotonic() - self._began
            print(f"[{self._done}/{self._steps}] {elapsed_s:5.0f} s  {what}", file=sys.stderr, flush=True)

    def close(self) -> None:
        if self._bar is not None:
            self._bar.stop()
