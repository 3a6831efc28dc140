"""`kafka-compat serve --processes N` as seen by a test: one command and its child processes."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Self

from tests.support.ports import adjacent_ports
from tests.support.process import wait_until
from tests.support.servers import PROJECT, metadata

START_S = 60.0
_READY = r"Broker (\d+) ready on PLAINTEXT://\S*:(\d+)"


class Command:
    """The command. Use it as a context manager, which stops all processes at the end. Directory and ports are
    kept across `start`.
    """

    def __init__(
        self,
        directory: Path,
        count: int = 2,
        settings: Mapping[str, str] | None = None,
        *,
        port: int | None = None,
        option: str = "--processes",
        arguments: Sequence[str] = (),
        environment: Mapping[str, str] | None = None,
    ) -> None:
        """`option` is --processes or --brokers. `port` is the first broker's port, or 0 for any."""
        self.directory = directory
        self.count = count
        self.port = adjacent_ports(count) if port is None else port
        self.settings = {
            "listeners": f"PLAINTEXT://127.0.0.1:{self.port}",
            "log.dirs": str(directory / "data"),
            "group.initial.rebalance.delay.ms": "0",
            "offsets.topic.num.partitions": "3",
            "transaction.state.log.num.partitions": "3",
            # Partitions of a killed broker are not moved back to it.
            "auto.leader.rebalance.enable": "false",
            **(settings or {}),
        }
        self._option = option
        self._arguments = list(arguments)
        self._environment = {**os.environ, **(environment or {})}
        self._child: subprocess.Popen[str] | None = None
        self._pump: threading.Thread | None = None
        self._lines: list[str] = []
        self._news = threading.Condition()
        directory.mkdir(parents=True, exist_ok=True)

    def __enter__(self) -> Self:
        try:
            return self.start()
        except BaseException:
            self.__exit__()
            raise

    @contextlib.contextmanager
    def launched(self) -> Iterator[None]:
        """Launch the command without waiting until brokers serve, and stop it at the end of the block."""
        try:
            self.launch()
            yield
        finally:
            self.__exit__()

    def __exit__(self, *_: object) -> None:
        if self._child is not None and self._child.poll() is None:
            self._child.kill()
            self._child.wait(10)
        for pid in self.processes():
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        self._join()

    def launch(self) -> None:
        """Start without waiting, in a new process group like a shell."""
        self._lines.clear()
        given = [f"--override={name}={value}" for name, value in self.settings.items()]
        command = [sys.executable, "-m", "kafka_compat", "serve"]
        self._child = subprocess.Popen(
            [*command, self._option, str(self.count), *self._arguments, *given],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            cwd=PROJECT,
            env=self._environment,
            process_group=0,
        )
        self._pump = threading.Thread(target=self._read, args=(self._child,), daemon=True)
        self._pump.start()

    def start(self) -> Self:
        """Start the command, and wait until all brokers are ready."""
        self.launch()
        if self._option == "--processes":
            self.wait_for(rf"{self.count} processes ready")
        else:
            wait_until(lambda: len(self._ready()) == self.count, START_S, "all brokers are ready")
        return self

    # Output

    def _read(self, child: subprocess.Popen[str]) -> None:
        assert child.stdout is not None
        with open(self.directory / "command.log", "a") as log, child.stdout:
            for line in child.stdout:
                log.write(line)
                log.flush()
                with self._news:
                    self._lines.append(line)
                    self._news.notify_all()
        with self._news:
            self._news.notify_all()

    @property
    def said(self) -> str:
        """The output since the last start."""
        return "".join(self._lines)

    def wait_for(self, pattern: str, times: int = 1, timeout_s: float = START_S) -> None:
        """Wait until `times` lines match."""

        def found() -> bool:
            return sum(1 for line in self._lines if re.search(pattern, line)) >= times

        with self._news:
            assert self._news.wait_for(lambda: found() or not self._is_read(), timeout_s), self.said
        assert found(), f"no {pattern!r} in:\n{self.said}"

    def _is_read(self) -> bool:
        return self._pump is not None and self._pump.is_alive()

    def _ready(self) -> list[tuple[int, int]]:
        """Return the broker and port of each ready line."""
        return [(int(broker), int(port)) for broker, port in re.findall(_READY, self.said)]

    @property
    def ports(self) -> dict[int, int]:
        """Return the ports by broker."""
        return dict(self._ready())

    @property
    def bootstrap_servers(self) -> str:
        return ",".join(f"127.0.0.1:{port}" for port in self.ports.values())

    # Processes

    @property
    def pid(self) -> int:
        assert self._child is not None
        return self._child.pid

    def processes(self) -> list[int]:
        """Return the process ids of running brokers, including those of a command that died."""
        folder = str(self.directory)
        found = []
        for entry in os.listdir("/proc"):
            if entry.isdigit():
                with contextlib.suppress(OSError):
                    line = Path(f"/proc/{entry}/cmdline").read_bytes().decode().split("\0")
                    if "kafka_compat.cli.process_broker" in line and self._has_open(int(entry), folder):
                        found.append(int(entry))
        return found

    @staticmethod
    def _has_open(pid: int, folder: str) -> bool:
        for item in Path(f"/proc/{pid}/fd").iterdir():
            # A descriptor that is closed at this moment says nothing about the others.
            with contextlib.suppress(FileNotFoundError):
                if os.readlink(item).startswith(folder):
                    return True
        return False

    def pid_of(self, broker_id: int) -> int:
        """Return the process id of a broker."""
        for pid in self.processes():
            if self._has_open(pid, f"{self.settings['log.dirs']}/broker-{broker_id}/"):
                return pid
        raise AssertionError(f"no process of broker {broker_id}")

    def kill(self, broker_id: int) -> int:
        """Kill a broker's process with kill -9, and return its process id."""
        pid = self.pid_of(broker_id)
        os.kill(pid, signal.SIGKILL)
        return pid

    # Shutdown

    def interrupt(self) -> None:
        """Send SIGINT to the whole process group, like a terminal at Ctrl-C."""
        os.killpg(self.pid, signal.SIGINT)

    def wait(self, timeout_s: float = 30) -> int:
        """Wait until the command exits, and return its exit code."""
        assert self._child is not None
        code = self._child.wait(timeout_s)
        self._join()
        return code

    def stop(self) -> int:
        """Send SIGTERM to the command, and return its exit code."""
        assert self._child is not None
        self._child.terminate()
        return self.wait()

    def _join(self) -> None:
        if self._pump is not None:
            self._pump.join(10)

    @property
    def is_clean(self) -> bool:
        """Whether every broker's directory has the marker of a clean shutdown."""
        folders = list(Path(self.settings["log.dirs"]).glob("broker-*"))
        return len(folders) == self.count and all(
            (folder / ".kafka_cleanshutdown").exists() for folder in folders
        )

    # Cluster

    def wait_registered(self, ids: set[int], ports: Sequence[int] = ()) -> None:
        """Wait until each of these brokers reports exactly these brokers, with a controller among them.
        `ports` are their ports, if they have not been printed yet.
        """

        def complete() -> bool:
            for port in ports or [self.ports[broker_id] for broker_id in ids]:
                known = metadata(port)
                if known is None or {broker.node_id for broker in known.brokers} != ids:
                    return False
                if known.controller_id not in ids:
                    return False
            return True

        wait_until(complete, START_S, f"registration of brokers {ids}", 0.01)


def wait_gone(pids: Sequence[int], timeout_s: float = 20) -> float:
    """Wait until the processes have exited, and return how long that took."""
    began = time.monotonic()

    def gone() -> bool:
        return not any(_runs(pid) for pid in pids)

    wait_until(gone, timeout_s, f"exit of processes {pids}")
    return time.monotonic() - began


def _runs(pid: int) -> bool:
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    return False


def cpu_seconds(pid: int) -> float:
    """Return the user and system time that a process has used."""
    after_name = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return sum(map(int, after_name[11:13])) / os.sysconf("SC_CLK_TCK")
