"""A server as a child process: start, wait for the ready line, stop, kill, measure."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

_CLOCK_TICKS = os.sysconf("SC_CLK_TCK")


class ProcessFailed(AssertionError):
    """The process exited or timed out before it was ready. The message ends with its last output."""


class Process:
    """One run of a command whose output goes to a log file.

    `ready` is searched in every line of stdout and stderr; `start` returns at its first match.
    """

    def __init__(
        self,
        command: Sequence[str | os.PathLike[str]],
        log: Path,
        ready: str,
        *,
        environment: Mapping[str, str] | None = None,
        directory: Path | None = None,
    ) -> None:
        self.command = [os.fspath(part) for part in command]
        self.log = log
        self._ready_pattern = re.compile(ready)
        self._environment = {**os.environ, **(environment or {})}
        self._directory = directory
        self._child: subprocess.Popen[bytes] | None = None
        self._pump: threading.Thread | None = None
        self._news = threading.Condition()
        self._ready = self._ended = False

    @property
    def child(self) -> subprocess.Popen[bytes]:
        """The started process. Raises RuntimeError before `start`."""
        if self._child is None:
            raise RuntimeError(f"{self.command[0]} was not started")
        return self._child

    @property
    def pid(self) -> int:
        return self.child.pid

    @property
    def running(self) -> bool:
        return self._child is not None and self._child.poll() is None

    def launch(self) -> None:
        """Start the process without waiting until it is ready."""
        self.log.parent.mkdir(parents=True, exist_ok=True)
        self._child = subprocess.Popen(
            self.command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            env=self._environment,
            cwd=self._directory,
        )
        self._pump = threading.Thread(target=self._read_output, name=f"log of {self.pid}", daemon=True)
        self._pump.start()

    def start(self, timeout_s: float = 60) -> None:
        """Start the process, and wait for the ready line. Raises ProcessFailed if the process exits or takes
        too long.
        """
        self.launch()
        self.wait_ready(timeout_s)

    def wait_ready(self, timeout_s: float = 60) -> None:
        """Wait for the ready line. Raises ProcessFailed if the process exits or takes too long."""
        with self._news:
            self._news.wait_for(lambda: self._ready or self._ended, timeout_s)
            if self._ready:
                return
            ended = self._ended
        code = self.child.wait() if ended else self.kill()
        state = f"ended with exit code {code}" if ended else f"was not ready within {timeout_s} s"
        raise ProcessFailed(f"{' '.join(self.command)[:200]}\n{state}; last output:\n{self.tail()}")

    def stop(self, timeout_s: float = 20) -> int:
        """Send SIGTERM, and SIGKILL after `timeout_s`. Return the exit code (negative: signal number)."""
        if self._child is None:
            return 0
        if self.running:
            self._child.send_signal(signal.SIGTERM)
        try:
            self._child.wait(timeout_s)
        except subprocess.TimeoutExpired:
            self._child.kill()
        return self._finish()

    def kill(self) -> int:
        """Send SIGKILL, and wait until the process has exited."""
        if self._child is None:
            return 0
        if self.running:
            self._child.kill()
        return self._finish()

    def tail(self, lines: int = 40) -> str:
        """Return the last lines of output."""
        if not self.log.exists():
            return ""
        return "\n".join(self.log.read_text(errors="replace").splitlines()[-lines:])

    def cpu_seconds(self) -> float:
        """The user and system time used by the process and its reaped children."""
        return sum(self._times_s())

    def user_cpu_seconds(self) -> float:
        """The user time used by the process and its reaped children."""
        user_s, _, children_user_s, _ = self._times_s()
        return user_s + children_user_s

    def _times_s(self) -> list[float]:
        after_name = Path(f"/proc/{self.pid}/stat").read_text().rsplit(")", 1)[1].split()
        return [int(value) / _CLOCK_TICKS for value in after_name[11:15]]

    def resident_bytes(self) -> int:
        """The current resident memory (RSS)."""
        return resident_bytes(self.pid)

    def _finish(self) -> int:
        code = self.child.wait()
        if self._pump is not None:
            self._pump.join(5)
        return code

    def _read_output(self) -> None:
        output = self.child.stdout
        assert output is not None
        with open(self.log, "ab", buffering=0) as log, output:
            for line in output:
                log.write(line)
                if not self._ready and self._ready_pattern.search(line.decode(errors="replace")):
                    self._tell(ready=True)
        self._tell(ready=False)

    def _tell(self, *, ready: bool) -> None:
        with self._news:
            if ready:
                self._ready = True
            else:
                self._ended = True
            self._news.notify_all()


def resident_bytes(pid: int) -> int:
    """Return the current resident memory (RSS) of a process."""
    status = Path(f"/proc/{pid}/status").read_text()
    found = re.search(r"VmRSS:\s+(\d+) kB", status)
    if found is None:
        raise RuntimeError(f"process {pid} has no VmRSS")
    return int(found.group(1)) * 1024


def wait_until(
    condition: Callable[[], object], timeout_s: float, what: str, interval_s: float = 0.02
) -> None:
    """Poll `condition` until it is true. Raises AssertionError naming `what` after `timeout_s`.

    Use it for states that cause no event, such as another process's files.
    """
    deadline = time.monotonic() + timeout_s
    while not condition():
        if time.monotonic() > deadline:
            raise AssertionError(f"{what}: not within {timeout_s} s")
        time.sleep(interval_s)  # polling interval
