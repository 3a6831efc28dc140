"""A job's directory: its identity, and the begin and commit entries of batches.

    _job.json           id and settings; a directory always serves one job with the same settings
    _log/N.begin.json   written before batch N has any effect; never overwritten
    _log/N.json         written after the last effect of batch N: the commit
    _checkpoint         Spark's, for streaming jobs
    _lock               see FolderLock

A batch with only a begin entry was interrupted: the next attempt uses the entry to find the records written
by the first attempt.
"""

import fcntl
import json
import os
import time
import uuid
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from kafka_compat.pipelines.errors import NotStarted
from kafka_compat.pipelines.whole_file import holds_more_than, write_json

BATCHES_KEPT = 100
_FIRST_FILES = {"_lock", "_log", "__job.json"}
"""Names that a crash may leave behind before the marker file `_job.json` exists."""


class JobFolder:
    """The directory of one job. All runs must have the same `settings`."""

    def __init__(self, directory: Path, settings: Mapping[str, Any]) -> None:
        self.directory = directory
        self.checkpoint = directory / "_checkpoint"
        self._marker = directory / "_job.json"
        self._log = directory / "_log"
        self._settings = json.loads(json.dumps(dict(settings)))

    def check(self) -> None:
        """Raise NotStarted if the directory belongs to a different job or program. Changes no files."""
        if self._marker.exists():
            before = {k: v for k, v in json.loads(self._marker.read_text()).items() if k != "id"}
            different = [k for k in self._settings | before if before.get(k) != self._settings.get(k)]
            if different:
                changes = ", ".join(f"{k}: {before.get(k)}, now {self._settings.get(k)}" for k in different)
                raise NotStarted(
                    f"{self.directory} belongs to a job with other settings ({changes}).",
                    "Use the previous settings, or choose a new directory.",
                )
        elif holds_more_than(self.directory, _FIRST_FILES):
            raise NotStarted(
                f"{self.directory} is not empty and not a job's directory.",
                "Choose an empty or new directory.",
            )

    def open(self) -> str:
        """Create or open the directory, and return the job's permanent ID. Raises NotStarted like `check`."""
        self.check()
        self._log.mkdir(parents=True, exist_ok=True)
        if not self._marker.exists():
            write_json(self._marker, {"id": uuid.uuid4().hex, **self._settings})
        if self._settings.get("streams", True) and self.last() is not None:
            self._require_checkpoint()
        return str(json.loads(self._marker.read_text())["id"])

    def begun(self, batch_id: int) -> dict[str, Any] | None:
        """Return the begin entry of the batch's first attempt, or None if the batch has not begun."""
        path = self._log / f"{batch_id:012d}.begin.json"
        found: dict[str, Any] | None = json.loads(path.read_text()) if path.exists() else None
        return found

    def begin(self, batch_id: int, value: dict[str, Any]) -> dict[str, Any]:
        """Return a batch's begin entry; write it if missing. Call this before the batch has any effect."""
        begun = self.begun(batch_id)
        if begun is None:
            write_json(self._log / f"{batch_id:012d}.begin.json", value)
        return value if begun is None else begun

    def commit(self, batch_id: int, value: dict[str, Any]) -> None:
        """Write the commit entry of a batch, after its last effect."""
        write_json(self._entry(batch_id), value)
        for name in (f"{batch_id - BATCHES_KEPT:012d}.json", f"{batch_id - BATCHES_KEPT:012d}.begin.json"):
            (self._log / name).unlink(missing_ok=True)

    def last(self) -> tuple[int, dict[str, Any]] | None:
        """Return the last committed batch ID and its commit entry's data, or None before the first commit."""
        batches = sorted(int(path.stem) for path in self._log.glob("[0-9]*.json") if path.stem.isdigit())
        if not batches:
            return None
        return batches[-1], json.loads(self._entry(batches[-1]).read_text())

    def recorded(self, at_first: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return the data of the last commit entry, or `at_first` if no batch is committed."""
        last = self.last()
        return at_first if last is None else last[1]

    def is_committed(self, batch_id: int) -> bool:
        """Return whether the batch is committed. If so, Spark is repeating it after a crash."""
        last = self.last()
        return last is not None and batch_id <= last[0]

    def _entry(self, batch_id: int) -> Path:
        return self._log / f"{batch_id:012d}.json"

    def _require_checkpoint(self) -> None:
        if not (self.checkpoint / "offsets").is_dir():
            raise NotStarted(
                f"{self.directory} has finished batches, but its checkpoint is missing.",
                f"Restore {self.checkpoint}, or start in a new directory: here, batches would be skipped.",
            )


DYING_JVM_WAIT_S = 30.0
_POLL_S = 0.1


class FolderLock:
    """A lock on the file `directory`/_lock, held by at most one job. The file contains the process ID.

    Spark's driver JVM holds this POSIX record lock, because the JVM may continue to write after Python has
    died, until it reaches the end of its standard input. The next job waits until the JVM exits.
    """

    def __init__(self, directory: Path) -> None:
        self._path = directory / "_lock"
        self._held: list[Any] = []

    def await_free(self) -> None:
        """Wait until the lock is free. Raises NotStarted if another job is running. Changes no files."""
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
                    f"Another job (process {owner}) is using {self._path.parent}.",
                    "Wait until it ends, or stop it.",
                )
            time.sleep(_POLL_S)

    def hold(self, jvm: Any) -> None:
        """Create the directory, and acquire the lock in Spark's JVM. Raises NotStarted if it is not free."""
        self.await_free()
        self._path.parent.mkdir(parents=True, exist_ok=True)
        file = jvm.java.io.RandomAccessFile(str(self._path.resolve()), "rw")
        lock = file.getChannel().tryLock()
        if lock is None:
            raise NotStarted(f"Another job is using {self._path.parent}.", "Wait until it ends, or stop it.")
        self._held = [file, lock]
        file.setLength(0)
        file.writeBytes(f"{os.getpid()}\n")

    def release(self) -> None:
        """Release the lock, for jobs that keep their Spark session running."""
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
