"""Runs `kafka-compat pipeline NAME …` as a separate process in its own process group."""

import contextlib
import io
import json
import os
import random
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Sequence
from typing import Any

from kafka_compat.cli import main
from tests.pipelines.environment import QUICK_START
from tests.support.campaign import enabled
from tests.support.servers import PROJECT, Server


class Job:
    """A job that tests may kill. A thread reads its messages (stderr)."""

    def __init__(self, name: str, *arguments: str) -> None:
        line = [sys.executable, "-m", "kafka_compat", "pipeline", name, *arguments]
        self.process = subprocess.Popen(
            line,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            cwd=PROJECT,
            env={**os.environ, **QUICK_START},
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

    def await_message(self, text: str, timeout_s: float = 600, *, or_end: bool = False) -> bool:
        """Wait for a message, and return whether it arrived. Raises AssertionError if it does not arrive
        within the timeout or before the job ends. With `or_end`, return False if the job ends first.
        """
        with self._news:
            self._news.wait_for(lambda: self._ended or self._said(text), timeout_s)
            arrived = self._said(text)
        assert arrived or (or_end and self._ended), f"no {text!r}: {''.join(self.messages)}"
        return arrived

    def _said(self, text: str) -> bool:
        return any(text in line for line in self.messages)

    def finish(self, exit_code: int = 0, timeout_s: float = 900) -> str:
        """Wait for the job to end, check its exit code, and return its standard output."""
        assert self.process.stdout is not None
        output = self.process.stdout.read()
        code = self.process.wait(timeout_s)
        self._reader.join(10)
        assert code == exit_code, f"exit code {code}: {''.join(self.messages)}"
        return output

    def kill(self, whole_group: bool) -> None:
        """Kill Python and Java at once with kill -9, or only Python, so that the JVM must detect it."""
        if whole_group:
            os.killpg(self.process.pid, signal.SIGKILL)
        else:
            self.process.kill()
        self.process.wait()


def run_here(name: str, *arguments: str, exit_code: int = 0) -> Any:
    """Run the command in this process with its existing Spark session, and return the report (--json)."""
    output = io.StringIO()
    with contextlib.redirect_stdout(output):
        code = main(["pipeline", name, *arguments, "--json"])
    assert code == exit_code, output.getvalue()
    return json.loads(output.getvalue())


def kills_of_a_campaign() -> int:
    """Return KAFKA_COMPAT_SPARK_KILLS, by default 10."""
    return int(os.environ.get("KAFKA_COMPAT_SPARK_KILLS", "10"))


def kill_and_finish(
    name: str,
    arguments: Sequence[str],
    server: Server,
    *,
    longest_s: float = 3.0,
    killed: Callable[[], None] = lambda: None,
) -> Any:
    """Kill the job and the server with kill -9 at random moments, then run the job to completion. Return the
    last run's report.

    `killed` is called after each kill of the job. The daily test runs one job that sees both kills, and then
    the last run in this process. A campaign kills the job ten times (or KAFKA_COMPAT_SPARK_KILLS times), and
    then kills the server during a run that must recover by itself.
    """
    if enabled():
        kills = kills_of_a_campaign()
        hit = kill_repeatedly(lambda: Job(name, *arguments), kills, longest_s, killed)
        print(f"{name}: killed {hit} times at its work")
        job = Job(name, *arguments, "--json")
        job.await_message("offsets to read")
        server.restart(kill=True)
        return json.loads(job.finish())
    job = Job(name, *arguments)
    job.await_message("offsets to read")
    server.restart(kill=True)
    job.await_message(": batch ")
    threading.Event().wait(random.uniform(0, 1))
    job.kill(whole_group=True)
    killed()
    return run_here(name, *arguments)


def kill_repeatedly(
    start: Callable[[], Job],
    kills: int,
    longest_s: float = 3.0,
    killed: Callable[[], None] = lambda: None,
    began: str = "offsets to read",
) -> int:
    """Start the job and kill it with kill -9 at a random moment, `kills` times or until the job completes.

    The work of the job begins with the message `began`. Return the number of times that the job was still
    running when it was killed.

    The moment is random because no event marks the steps between two messages. Every other kill waits for a
    batch first, so that the first batch and later batches are interrupted.
    """
    for kill in range(kills):
        job = start()
        job.await_message(began)
        if kill % 2 == 1 and not job.await_message(": batch ", or_end=True):
            return kill
        threading.Event().wait(random.uniform(0, longest_s))
        if job.process.poll() is not None:
            return kill
        job.kill(whole_group=kill % 2 == 0)
        killed()
    return kills


def batch_of(records: int) -> int:
    """Return a value for --offsets-per-batch that leaves work for every kill."""
    return records // (6 * kills_of_a_campaign() if enabled() else 4)
