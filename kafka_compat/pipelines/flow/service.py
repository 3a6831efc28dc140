"""Run the jobs of a flow as processes, and print their status (see supervisor).

Each job is a `kafka-compat pipeline` process with its own Spark. It is stopped if this process dies, because
its standard input then ends.
"""

import asyncio
import contextlib
import json
import os
import signal
import sys
import time
from collections import deque
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final, TextIO

from kafka_compat import own_processes
from kafka_compat.pipelines.flow.flow_file import FlowJob
from kafka_compat.pipelines.flow.supervisor import Supervisor, What

_LINES_KEPT: Final = 20
"""Number of lines of a job's messages that are printed after a failure."""
_LINE_BYTES_MAX: Final = 1 << 20


class FlowService:
    """The processes of a flow's jobs. They run in `directory`, to which their relative paths refer."""

    def __init__(
        self,
        jobs: Sequence[FlowJob],
        directory: Path,
        *,
        continuous: bool,
        as_json: bool,
        verbose: bool,
        status_s: float,
        stop_timeout_s: float,
        output: TextIO | None = None,
        errors: TextIO | None = None,
    ) -> None:
        self._jobs = {job.name: job for job in jobs}
        self._directory = directory
        self._supervisor = Supervisor(
            [(job.name, job.job) for job in jobs], continuous=continuous, stop_timeout_s=stop_timeout_s
        )
        self._as_json = as_json
        self._verbose = verbose
        self._status_s = status_s
        self._output = output or sys.stdout
        self._errors = errors or sys.stderr
        self._processes: dict[str, asyncio.subprocess.Process] = {}
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._news = asyncio.Event()
        self._shown: dict[str, str] = {}

    async def run(self) -> int:
        """Run until all jobs have ended, or SIGINT or SIGTERM stops them. Return the exit code."""
        loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(number, self._stop)
        next_status_s = time.monotonic() + self._status_s
        try:
            while True:
                for action in self._supervisor.actions(time.monotonic()):
                    self._do(action.what, action.name)
                self._show_changes()
                if self._supervisor.finished and not self._tasks:
                    break
                now_s = time.monotonic()
                if now_s >= next_status_s:
                    next_status_s = now_s + self._status_s
                    self._show_all()
                due_s = self._supervisor.next_s()
                wait_s = min(next_status_s, next_status_s if due_s is None else due_s) - now_s
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(self._news.wait(), max(0.0, wait_s))
                self._news.clear()
        finally:
            for number in (signal.SIGINT, signal.SIGTERM):
                loop.remove_signal_handler(number)
            for name in self._processes:
                self._signal(name, signal.SIGKILL)
        self._show_all()
        return self._supervisor.exit_code

    def _stop(self) -> None:
        self._supervisor.stop(time.monotonic())
        self._news.set()

    def _do(self, what: What, name: str) -> None:
        if what is What.START:
            self._tasks[name] = asyncio.ensure_future(self._run_job(self._jobs[name]))
        elif what is What.TERMINATE:
            # Only Python, which stops Spark after the current batch.
            if name in self._processes:
                with contextlib.suppress(ProcessLookupError):
                    self._processes[name].terminate()
        else:
            self._signal(name, signal.SIGKILL)

    def _signal(self, name: str, number: int) -> None:
        """Send a signal to the job and its JVM."""
        process = self._processes.get(name)
        if process is not None:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(process.pid, number)

    async def _run_job(self, job: FlowJob) -> None:
        command = own_processes.command("kafka_compat", "pipeline", job.job, *job.arguments)
        try:
            process = await asyncio.create_subprocess_exec(
                *command,
                "--json",
                "--stop-at-eof",
                *(["--verbose"] if self._verbose else []),
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.PIPE,
                cwd=self._directory,
                env=own_processes.environment(),
                pass_fds=own_processes.descriptors(),
                # Only the service receives Ctrl-C, and then stops the jobs.
                start_new_session=True,
                limit=_LINE_BYTES_MAX,
            )
        except OSError as error:
            self._ended(job.name, 1, None, [f"the process did not start: {error}"])
            return
        self._processes[job.name] = process
        self._supervisor.started(job.name, process.pid, time.monotonic())
        if self._supervisor.statuses[job.name].state == "stopping":
            # The signal came before the process existed.
            process.terminate()
        self._news.set()
        assert process.stdout is not None
        kept: deque[str] = deque(maxlen=_LINES_KEPT)
        reading = asyncio.ensure_future(self._read_messages(job.name, process.stderr, kept))
        written = await process.stdout.read()
        await reading
        code = await process.wait()
        # A signal that killed the job is shown as shells show it.
        self._ended(job.name, code if code >= 0 else 128 - code, _parsed(written), [*kept])

    async def _read_messages(self, name: str, stream: Any, kept: deque[str]) -> None:
        while True:
            try:
                line = await stream.readline()
            except ValueError:
                # The line is longer than the limit.
                continue
            if not line:
                return
            text = line.decode(errors="replace").rstrip()
            if not text:
                continue
            kept.append(text)
            self._supervisor.said(name, text)
            if self._verbose:
                print(f"{name}: {text}", file=self._errors, flush=True)

    def _ended(self, name: str, code: int, report: Any, messages: Sequence[str]) -> None:
        self._processes.pop(name, None)
        del self._tasks[name]
        if code != 0 and not self._verbose and self._supervisor.statuses[name].state == "running":
            for text in messages:
                print(f"{name}: {text}", file=self._errors, flush=True)
        self._supervisor.ended(name, code, time.monotonic(), report)
        self._news.set()

    def _show_changes(self) -> None:
        """Print a line for each job whose state has changed."""
        for name, status in self._supervisor.statuses.items():
            state = f"{status.state} {status.pid} {status.restarts}"
            is_starting = status.state == "running" and status.pid is None
            if self._shown.get(name) != state and not is_starting:
                self._shown[name] = state
                if status.state != "waiting":
                    self._show(name)

    def _show_all(self) -> None:
        for name in self._supervisor.statuses:
            self._show(name)

    def _show(self, name: str) -> None:
        status, now_s = self._supervisor.statuses[name], time.monotonic()
        if self._as_json:
            line = json.dumps(status.as_json(now_s))
        else:
            line = status.as_text(now_s, max(map(len, self._jobs)))
        print(line, file=self._output, flush=True)


def _parsed(written: bytes) -> Any:
    """Return a job's report, or None if it has not printed one."""
    try:
        return json.loads(written)
    except ValueError:
        return None
