"""One job at a time on a folder, counting the Java process that a killed job leaves behind for a moment.

The lock is a POSIX record lock held by Spark's driver JVM: when Python dies, the JVM notices that its
standard input closed and ends too, but until then it may still write. Whoever comes next waits for the JVM.
"""

import fcntl
import os
import time
from pathlib import Path
from typing import Any

from kafka_compat.pipelines.errors import NotStarted

DYING_JVM_WAIT_S = 30.0
_POLL_S = 0.1


class FolderLock:
    """The lock `directory`/_lock; its content is the process id of the job that holds it."""

    def __init__(self, directory: Path) -> None:
        self._path = directory / "_lock"
        self._held: list[Any] = []

    def await_free(self) -> None:
        """Return once nobody holds the lock; NotStarted at once when its job is alive. Touches no file."""
        deadline = time.monotonic() + DYING_JVM_WAIT_S
        while self._path.exists():
            with self._path.open("r+") as file:
                try:
                    fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                except OSError:
                    owner = file.read().strip()
                else:
                    return
            if _is_alive(owner) or time.monotonic() > deadline:
                raise NotStarted(
                    f"Another job (process {owner}) is working on {self._path.parent}.",
                    "Wait for its end, or stop it.",
                )
            time.sleep(_POLL_S)

    def hold(self, jvm: Any) -> None:
        """Take the lock in Spark's JVM, until that process ends; creates the folder."""
        self.await_free()
        self._path.parent.mkdir(parents=True, exist_ok=True)
        file = jvm.java.io.RandomAccessFile(str(self._path.resolve()), "rw")
        lock = file.getChannel().tryLock()
        if lock is None:
            raise NotStarted(
                f"Another job is working on {self._path.parent}.", "Wait for its end, or stop it."
            )
        self._held = [file, lock]
        file.setLength(0)
        file.writeBytes(f"{os.getpid()}\n")

    def release(self) -> None:
        """Give the lock back, for jobs that leave their Spark session running."""
        for resource in reversed(self._held):
            resource.close()
        self._held = []


def _is_alive(process_id: str) -> bool:
    if not process_id.isdigit():
        return False
    try:
        os.kill(int(process_id), 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        pass
    return True
