"""A disk that is full for a while, for one process: its writes to files fail with ENOSPC, no others do.

strace cannot tell the writes to files from others, since it takes exact paths only and new files may have
any. And libuv, the loop of the compiled form, ends the process when it cannot write to the eventfd by which
it is woken, which is on no disk.
"""

from __future__ import annotations

import contextlib
import subprocess
from collections.abc import Iterator
from pathlib import Path

SOURCE = Path(__file__).with_suffix(".c")


class FullDisk:
    """What a process needs in its `environment`, and the moments at which its disk is full."""

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
