"""Child process that cleans one log (`python -m kafka_compat.storage.compaction.cleaner_process FD`).

It is a separate process of low priority, because a loop over records would hold the interpreter lock that
client requests need. It reads its job as JSON from the file descriptor and writes one JSON object per line:
{"group": …} for each finished segment, then {"done": …}, or {"failed": reason}. Its standard input is a pipe
without data. When the broker exits, the pipe closes, and this process exits before it writes another file.
"""

import json
import os
import sys
import threading
import time
from dataclasses import asdict

from kafka_compat.storage.compaction import cleaner_job
from kafka_compat.storage.compaction.cleaner_job import CleanedGroup, CleaningJob
from kafka_compat.storage.errors import StorageError
from kafka_compat.storage.filesystem import RealFilesystem

NICENESS = 19


class Throttle:
    """A limit on the combined rate of reads and writes, in bytes per second."""

    STEP_S = 0.1

    def __init__(self, bytes_per_s: float) -> None:
        self._bytes_per_s = bytes_per_s
        self._due = time.monotonic()

    def __call__(self, size_bytes: int) -> None:
        now = time.monotonic()
        # Carry over the unused capacity of at most STEP_S seconds.
        self._due = max(self._due, now - self.STEP_S) + size_bytes / self._bytes_per_s
        if self._due > now + self.STEP_S:
            time.sleep(self._due - now)


def main() -> None:
    threading.Thread(target=_die_with_the_broker, daemon=True).start()
    os.nice(NICENESS)
    with open(int(sys.argv[1]), "rb") as file:
        job = CleaningJob.decode(file.read())
    try:
        for step in cleaner_job.run(job, RealFilesystem(), Throttle(job.io_bytes_per_s)):
            _answer({"group" if isinstance(step, CleanedGroup) else "done": asdict(step)})
    except (OSError, StorageError) as error:
        _answer({"failed": f"{type(error).__name__}: {error}", "is_disk": isinstance(error, OSError)})


def _answer(message: dict[str, object]) -> None:
    sys.stdout.write(json.dumps(message) + "\n")
    sys.stdout.flush()


def _die_with_the_broker() -> None:
    os.read(0, 1)
    os._exit(1)


if __name__ == "__main__":
    main()
