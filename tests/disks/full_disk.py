"""A disk that is temporarily full for one process: its writes to files fail with ENOSPC, and other writes
succeed.

strace cannot limit the failures to files, because it accepts only exact paths and the names of new files are
not known. The failures must be limited because libuv, the event loop of the compiled build, aborts the
process if a write to its wakeup eventfd fails.
"""

from __future__ import annotations

import contextlib
import subprocess
from collections.abc import Iterator
from pathlib import Path

SOURCE = Path(__file__).with_suffix(".c")


class FullDisk:
    """The `environment` for a process, and the periods in which its disk is full."""

    def __init__(self, directory: Path) -> None:
        directory.mkdir(parents=True, exist_ok=True)
        library = directory / "full_disk.so"
        self._full = directory / "full"
        subprocess.run(["cc", "-shared", "-fPIC", "-O1", "-o", str(library), str(SOURCE)], check=True)
        self.environment = {"LD_PRELOAD": str(library), "FULL_DISK": str(self._full)}

    @contextlib.contextmanager
    def full(self) -> Iterator[None]:
        self._full.touch()
        try:
            yield
        finally:
            self._full.unlink()
