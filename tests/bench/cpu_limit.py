"""CPU limits for processes: a control group with a quota, in version 2 or 1 of Linux's control groups."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path
from typing import Self

_ROOT = Path("/sys/fs/cgroup")
_PERIOD_US = 20_000
"""Short, so that a throttled process waits for a few milliseconds only."""


class CpuLimit:
    """A control group whose processes together get `cores` of a core. A context manager.

    Raises OSError if the user may not create control groups.
    """

    def __init__(self, name: str, cores: float) -> None:
        quota_us = int(cores * _PERIOD_US)
        if "cpu" in _text(_ROOT / "cgroup.controllers").split():
            self._folder = _ROOT / f"kafka-compat-{os.getpid()}-{name}"
            self._settings = {"cpu.max": f"{quota_us} {_PERIOD_US}"}
        else:
            self._folder = _ROOT / "cpu" / f"kafka-compat-{os.getpid()}-{name}"
            self._settings = {"cpu.cfs_period_us": str(_PERIOD_US), "cpu.cfs_quota_us": str(quota_us)}

    def __enter__(self) -> Self:
        self._folder.mkdir()
        for file, value in self._settings.items():
            (self._folder / file).write_text(value)
        return self

    def __exit__(self, *_: object) -> None:
        # Move the remaining processes to the parent group.
        for pid in _text(self._folder / "cgroup.procs").split():
            with contextlib.suppress(OSError):
                (self._folder.parent / "cgroup.procs").write_text(pid)
        self._folder.rmdir()

    def add(self, pid: int) -> None:
        """Limit a process including all of its threads."""
        (self._folder / "cgroup.procs").write_text(str(pid))

    def periods(self) -> tuple[int, int]:
        """Return the number of periods in which processes were runnable, and the number of periods in which
        they were throttled.
        """
        found = dict(line.split() for line in _text(self._folder / "cpu.stat").splitlines())
        return int(found["nr_periods"]), int(found["nr_throttled"])


def _text(file: Path) -> str:
    try:
        return file.read_text()
    except FileNotFoundError:
        return ""
