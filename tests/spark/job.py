"""`kafka-compat pipeline NAME …` as a process of its own, in a process group of its own."""

import os
import random
import signal
import subprocess
import sys
import threading
from collections.abc import Callable

from tests.support.servers import PROJECT


class Job:
    """A job that tests may kill; its messages (stderr) are read as they come."""

    def __init__(self, name: str, *arguments: str) -> None:
        line = [sys.executable, "-m", "kafka_compat", "pipeline", name, *arguments]
        self.process = subprocess.Popen(
            line,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            cwd=PROJECT,
            start_new_session=True,
        )
        self.messages: list[str] = []
        self._ended = False
        self._news = threading.Condition()
        self._reader = threading.Thread(target=self._read_messages, daemon=True)
        self._reader.start()

    def _read_messages(self) -> None:
        assert self.process.stderr is not None
        for line in self.process.stderr:
            with self._news:
                self.messages.append(line)
                self._news.notify_all()
        with self._news:
            self._ended = True
            self._news.notify_all()

    def await_message(self, text: str, timeout_s: float = 240) -> None:
        with self._news:
            self._news.wait_for(lambda: self._ended or self._said(text), timeout_s)
            arrived = self._said(text)
        assert arrived, f"no {text!r} within {timeout_s} s: {''.join(self.messages)}"

    def _said(self, text: str) -> bool:
        return any(text in line for line in self.messages)

    def finish(self, exit_code: int = 0, timeout_s: float = 400) -> str:
        """Wait for the end; its standard output."""
        assert self.process.stdout is not None
        output = self.process.stdout.read()
        code = self.process.wait(timeout_s)
        self._reader.join(10)
        assert code == exit_code, f"exit code {code}: {''.join(self.messages)}"
        return output

    def kill(self, whole_group: bool) -> None:
        """kill -9 of Python and Java at once, or of Python alone, which leaves its JVM to notice."""
        if whole_group:
            os.killpg(self.process.pid, signal.SIGKILL)
        else:
            self.process.kill()
        self.process.wait()


def kill_repeatedly(start: Callable[[], Job], kills: int, longest_s: float = 3.0) -> None:
    """Start the job and kill it -9 at a random moment of its work, `kills` times.

    The moment is random on purpose: steps between two messages have no event of their own. Every other kill
    waits for a batch first, so that both the first batch and later ones are cut short.
    """
    for kill in range(kills):
        job = start()
        job.await_message("offsets to read")
        if kill % 2 == 1:
            job.await_message(": batch ")
        threading.Event().wait(random.uniform(0, longest_s))
        job.kill(whole_group=kill % 2 == 0)
