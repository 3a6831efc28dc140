"""Programs that copy records from one topic to another with exactly-once semantics."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.clients.programs import java_command
from tests.support import java
from tests.support.client_security import java_file
from tests.support.servers import PROJECT
from tests.transactions.copier import GROUP, TRANSACTIONAL_ID

JAVA_COPIER = "org.apache.kafka.tools.TransactionalMessageCopier"


class Copier:
    """A process that is restarted if it exits too early."""

    def __init__(self, client: str, address: str, total: int, log: Path) -> None:
        if client.startswith("java-"):
            self._line = _java_line(client.removeprefix("java-"), address, total)
        else:
            self._line = [sys.executable, "-m", "tests.transactions.copier", client, address, str(total)]
        self._log = log
        self._process: subprocess.Popen[Any] | None = None
        self.lives = 0

    def start(self) -> None:
        self.lives += 1
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(self._line, cwd=PROJECT, stdout=log, stderr=log)

    def kill(self) -> None:
        """Kill the process with kill -9."""
        assert self._process is not None
        self._process.kill()
        self._process.wait()

    def pause(self, is_paused: bool) -> None:
        """Stop the process with SIGSTOP, or let it continue."""
        if self._process is not None:
            self._process.send_signal(signal.SIGSTOP if is_paused else signal.SIGCONT)

    def keep_alive(self) -> bool:
        """Restart the process if it failed, and return whether it has exited successfully."""
        assert self._process is not None
        code = self._process.poll()
        if code:
            self.start()
        return code == 0


class Leash(threading.Thread):
    """Pauses a copier that has copied `limit` records, until the limit is raised. Otherwise, a fast copier
    would have copied everything before all faults have happened.
    """

    def __init__(self, copier: Copier, copied: Callable[[], int]) -> None:
        """`copied` returns the number of records in the target, or 0 if it is unknown."""
        super().__init__(daemon=True)
        self.limit = 0
        self.copied = 0
        self._copier = copier
        self._count = copied
        self._stopped = threading.Event()
        self._is_paused = False

    def run(self) -> None:
        while not self._stopped.wait(0.05):
            self.copied = max(self.copied, self._count())
            was_paused, self._is_paused = self._is_paused, self.copied >= self.limit
            if was_paused or self._is_paused:
                # The process may have been replaced since the last signal.
                self._copier.pause(self._is_paused)

    def stop(self) -> None:
        self._stopped.set()
        self.join()


def _java_line(version: str, address: str, total: int) -> list[str]:
    """Return the command line of Kafka's own copier, or of ours with security, which Kafka's does not
    support.
    """
    if java_file() is not None:
        source = Path(__file__).with_name("Copier.java")
        return [*java_command("Copier", version, (str(source),)), address, str(total)]
    arguments = {
        "--broker-list": address,
        "--input-topic": "source",
        "--input-partition": "0",
        "--output-topic": "target",
        "--consumer-group": GROUP,
        "--transactional-id": TRANSACTIONAL_ID,
        "--transaction-size": "20",
        "--transaction-timeout": "20000",
        "--max-messages": str(total),
    }
    return java.command(
        JAVA_COPIER,
        *[part for pair in arguments.items() for part in pair],
        "--enable-random-aborts",
        version=version,
    )
