"""The process of a broker under test, and free ports for it."""

import contextlib
import json
import os
import random
import select
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Mapping, Sequence
from typing import IO, Any

from kafka_compat import own_processes
from kafka_compat.cli.ephemeral import EphemeralFolder, remove_left_over

CLIENT, INTERNAL = "CLIENT", "INTERNAL"
"""Listeners of a broker with security or emulation: for clients, and in plain text, with all API versions,
for brokers and fixtures.
"""
CONTAINERS = "CONTAINERS"
"""Listener of a broker with `containers`, on all addresses of this machine."""
_STOP_TIMEOUT_S = 10.0
_LOG_TAIL_CHARACTERS = 4000
_READ_BYTES = 65536


class BrokerFailed(RuntimeError):
    """Raised if a broker fails to start or stop. The message ends with the broker's last output."""


class BrokerProcess:
    """A `kafka-compat serve` process with temporary data. It exits with the current process."""

    def __init__(self, settings: Mapping[str, object], arguments: Sequence[str] = ()) -> None:
        self.settings = dict(settings)
        self._arguments = [*arguments]
        self._folder: EphemeralFolder | None = None
        self._child: subprocess.Popen[bytes] | None = None
        self._log: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115 - closed by `end`

    @property
    def running(self) -> bool:
        """Whether the process is running."""
        return self._child is not None and self._child.poll() is None

    @property
    def child(self) -> subprocess.Popen[bytes]:
        """The current or last process. Raises RuntimeError before the first start."""
        if self._child is None:
            raise RuntimeError("the broker was not started: use it as a context manager, or call start()")
        return self._child

    @property
    def log(self) -> str:
        """The process's standard error output so far, or an empty string after `end`."""
        if self._log.closed:
            return ""
        text = os.pread(self._log.fileno(), os.fstat(self._log.fileno()).st_size, 0)
        return text.decode(errors="replace")

    def start(self, timeout_s: float) -> dict[str, Any]:
        """Start the process, wait until it serves, and return its ready message. Raises BrokerFailed."""
        if self.running:
            raise RuntimeError("the broker is already running")
        if self._log.closed:
            self._log = tempfile.TemporaryFile()  # noqa: SIM115
        if self._folder is None:
            remove_left_over()
            self._folder = EphemeralFolder()
        settings = {**self.settings, "log.dirs": self._folder.path}
        command = own_processes.command("kafka_compat", "serve", "--ephemeral", "--stop-at-eof", "--json")
        for name, value in settings.items():
            text = str(value).lower() if isinstance(value, bool) else str(value)
            command += ["--override", f"{name}={text}"]
        self._child = subprocess.Popen(
            [*command, *self._arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._log,
            env=own_processes.environment(),
            # Start a new session, so that only the tests receive Ctrl-C. They then end the broker.
            start_new_session=True,
        )
        try:
            return self._ready(self._child, time.monotonic() + timeout_s)
        except BaseException:
            self.end()
            raise

    def _ready(self, child: subprocess.Popen[bytes], deadline_s: float) -> dict[str, Any]:
        assert child.stdout is not None
        descriptor, line = child.stdout.fileno(), b""
        while not line.endswith(b"\n"):
            waited = select.select([descriptor], [], [], max(0.0, deadline_s - time.monotonic()))
            if not waited[0]:
                raise self._failed("the broker was not ready in time")
            part = os.read(descriptor, _READ_BYTES)
            if not part:
                code = child.wait()
                raise self._failed(f"the broker ended with exit code {code} before it was ready")
            line += part
        return dict(json.loads(line))

    def stop(self) -> None:
        """Stop the broker gracefully, and keep its data for the next start. Raises BrokerFailed."""
        if not self.running:
            return
        self.child.send_signal(signal.SIGTERM)
        self.child.send_signal(signal.SIGCONT)
        try:
            code = self._wait()
        except subprocess.TimeoutExpired:
            self.kill()
            raise self._failed(
                f"the broker did not stop within {_STOP_TIMEOUT_S:g} s and was killed"
            ) from None
        self._close_pipes()
        if code != 0:
            raise self._failed(f"the broker stopped with exit code {code}")

    def kill(self) -> None:
        """Kill the process (`kill -9`), and keep its data for the next start."""
        if self._child is not None:
            self._child.kill()
            self._child.wait()
            self._close_pipes()

    def end(self) -> None:
        """End the process immediately, and delete its data."""
        if self._child is not None and self._child.stdin is not None:
            with contextlib.suppress(OSError):
                self._child.stdin.close()
            # Resume the process first, because it may be paused.
            self._child.send_signal(signal.SIGCONT)
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._wait()
            self.kill()
        if self._folder is not None:
            self._folder.remove()
            self._folder = None
        self._log.close()

    def _wait(self) -> int:
        """Wait until the process has exited, and return its exit code. Raises TimeoutExpired."""
        timeout_s = _STOP_TIMEOUT_S
        # Use a process descriptor (Linux), because Popen.wait polls, which adds up to 50 ms.
        with contextlib.suppress(OSError, AttributeError):
            process = os.pidfd_open(self.child.pid)
            select.select([process], [], [], timeout_s)
            os.close(process)
            timeout_s = 0
        return self.child.wait(timeout_s)

    def _close_pipes(self) -> None:
        for pipe in (self.child.stdin, self.child.stdout):
            if pipe is not None:
                pipe.close()

    def _failed(self, what: str) -> BrokerFailed:
        said = self.log.strip()[-_LOG_TAIL_CHARACTERS:]
        return BrokerFailed(f"{what}\n{said}" if said else what)


_LOWEST, _HIGHEST = 10_000, 30_000
"""Range of ports for brokers, below the ephemeral ports, which clients could use between two starts."""
_ATTEMPTS = 1000


def adjacent_ports(count: int) -> int:
    """Return the first of `count` consecutive free ports on 127.0.0.1. Raises OSError if there are none."""
    chance = random.SystemRandom()
    for _ in range(_ATTEMPTS):
        first = chance.randrange(_LOWEST, _HIGHEST)
        if all(_is_free(port) for port in range(first, first + count)):
            return first
    raise OSError(f"no {count} consecutive free ports between {_LOWEST} and {_HIGHEST}")


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True
