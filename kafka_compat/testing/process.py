"""The process of a broker: started, awaited, stopped, killed, and started again on its data."""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import subprocess
import tempfile
import time
from collections.abc import Mapping, Sequence
from typing import IO, Any

from kafka_compat import own_processes
from kafka_compat.cli.ephemeral import EphemeralFolder, remove_left_over

_STOP_TIMEOUT_S = 10.0
_LOG_TAIL_CHARACTERS = 4000
_READ_BYTES = 65536


class BrokerFailed(RuntimeError):
    """A broker that did not start or stop as it should; the text ends with what it said last."""


class BrokerProcess:
    """`kafka-compat serve` with data of its own, which go with it. It ends with this process, whatever
    happens to this one.
    """

    def __init__(self, settings: Mapping[str, object], arguments: Sequence[str] = ()) -> None:
        self.settings = dict(settings)
        self._arguments = [*arguments]
        self._folder: EphemeralFolder | None = None
        self._child: subprocess.Popen[bytes] | None = None
        self._log: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115 - closed by `end`

    @property
    def running(self) -> bool:
        """Whether there is one now."""
        return self._child is not None and self._child.poll() is None

    @property
    def child(self) -> subprocess.Popen[bytes]:
        """The process. RuntimeError where none was started."""
        if self._child is None:
            raise RuntimeError("the broker was not started: use it as a context manager, or call start()")
        return self._child

    @property
    def log(self) -> str:
        """What it has written to its standard error so far; nothing once it is ended."""
        if self._log.closed:
            return ""
        text = os.pread(self._log.fileno(), os.fstat(self._log.fileno()).st_size, 0)
        return text.decode(errors="replace")

    def start(self, timeout_s: float) -> dict[str, Any]:
        """Start it, and wait until it serves. What it says of itself. BrokerFailed."""
        if self.running:
            raise RuntimeError("the broker runs already")
        if self._log.closed:
            self._log = tempfile.TemporaryFile()  # noqa: SIM115
        if self._folder is None:
            remove_left_over()
            self._folder = EphemeralFolder()
        settings = {**self.settings, "log.dirs": self._folder.path}
        command = own_processes.command("kafka_compat", "serve", "--ephemeral", "--stop-at-eof", "--json")
        for name, value in settings.items():
            command += ["--override", f"{name}={_text(value)}"]
        self._child = subprocess.Popen(
            [*command, *self._arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._log,
            env=own_processes.environment(),
            # An interrupt from the keyboard is for the tests, which then end the broker.
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
        found: dict[str, Any] = json.loads(line)
        return found

    def stop(self) -> None:
        """Have it stop as one that is told to, and keep its data for another start. BrokerFailed."""
        if not self.running:
            return
        self.child.send_signal(signal.SIGTERM)
        self.child.send_signal(signal.SIGCONT)
        try:
            code = self.child.wait(_STOP_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            self.kill()
            raise self._failed(
                f"the broker did not stop within {_STOP_TIMEOUT_S:g} s and was killed"
            ) from None
        self._close_pipes()
        if code != 0:
            raise self._failed(f"the broker stopped with exit code {code}")

    def kill(self) -> None:
        """`kill -9`; its data stay for another start."""
        if self._child is not None:
            self._child.kill()
            self._child.wait()
            self._close_pipes()

    def end(self) -> None:
        """End it at once, with its data."""
        if self._child is not None and self._child.stdin is not None:
            with contextlib.suppress(OSError):
                self._child.stdin.close()
            # It may stand still.
            self._child.send_signal(signal.SIGCONT)
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._child.wait(_STOP_TIMEOUT_S)
            self.kill()
        if self._folder is not None:
            self._folder.remove()
            self._folder = None
        self._log.close()

    def _close_pipes(self) -> None:
        for pipe in (self.child.stdin, self.child.stdout):
            if pipe is not None:
                pipe.close()

    def _failed(self, what: str) -> BrokerFailed:
        said = self.log.strip()[-_LOG_TAIL_CHARACTERS:]
        return BrokerFailed(f"{what}\n{said}" if said else what)


def _text(value: object) -> str:
    """A setting's value, as Kafka writes it."""
    return str(value).lower() if isinstance(value, bool) else str(value)
