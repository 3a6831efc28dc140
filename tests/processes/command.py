"""`kafka-compat serve --processes N` as a test sees it: one command, and the processes under it."""

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
    """A context manager: nothing that it started outlives it. It keeps folder and ports over `start`."""

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
        """`option`: --processes or --brokers; `port`: of the first broker, 0 for any."""
        self.directory = directory
        self.count = count
        self.port = adjacent_ports(count) if port is None else port
        self.settings = {
            "listeners": f"PLAINTEXT://127.0.0.1:{self.port}",
            "log.dirs": str(directory / "data"),
            "group.initial.rebalance.delay.ms": "0",
            "offsets.topic.num.partitions": "3",
            "transaction.state.log.num.partitions": "3",
            # What was led by one that died is led by others until they die.
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
        """As the command itself as a context manager, without waiting until anything serves."""
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
        """Start without waiting. In a process group of its own, as a shell does it."""
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
        """Start, and wait until all serve."""
        self.launch()
        if self._option == "--processes":
            self.wait_for(rf"{self.count} processes ready")
        else:
            wait_until(lambda: len(self._ready()) == self.count, START_S, "all brokers are ready")
        return self

    # --- what it says

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
        """All that was printed since the last start."""
        return "".join(self._lines)

    def wait_for(self, pattern: str, times: int = 1, timeout_s: float = START_S) -> None:
        """Wait until so many lines match."""

        def found() -> bool:
            return sum(1 for line in self._lines if re.search(pattern, line)) >= times

        with self._news:
            assert self._news.wait_for(lambda: found() or not self._is_read(), timeout_s), self.said
        assert found(), f"no {pattern!r} in:\n{self.said}"

    def _is_read(self) -> bool:
        return self._pump is not None and self._pump.is_alive()

    def _ready(self) -> list[tuple[int, int]]:
        """Broker and port of each ready line."""
        return [(int(broker), int(port)) for broker, port in re.findall(_READY, self.said)]

    @property
    def ports(self) -> dict[int, int]:
        """By broker."""
        return dict(self._ready())

    @property
    def bootstrap_servers(self) -> str:
        return ",".join(f"127.0.0.1:{port}" for port in self.ports.values())

    # --- its processes

    @property
    def pid(self) -> int:
        assert self._child is not None
        return self._child.pid

    def processes(self) -> list[int]:
        """The pids of the brokers' processes that run, also of a command that died."""
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
            # One that is closed in this moment says nothing of the others.
            with contextlib.suppress(FileNotFoundError):
                if os.readlink(item).startswith(folder):
                    return True
        return False

    def pid_of(self, broker_id: int) -> int:
        """The process of a broker."""
        for pid in self.processes():
            if self._has_open(pid, f"{self.settings['log.dirs']}/broker-{broker_id}/"):
                return pid
        raise AssertionError(f"no process of broker {broker_id}")

    def kill(self, broker_id: int) -> int:
        """kill -9 of a broker's process; its pid."""
        pid = self.pid_of(broker_id)
        os.kill(pid, signal.SIGKILL)
        return pid

    # --- its end

    def interrupt(self) -> None:
        """What a terminal does at Ctrl-C: SIGINT to the whole group in its foreground."""
        os.killpg(self.pid, signal.SIGINT)

    def wait(self, timeout_s: float = 30) -> int:
        """Wait for the end of the command; its exit code."""
        assert self._child is not None
        code = self._child.wait(timeout_s)
        self._join()
        return code

    def stop(self) -> int:
        """SIGTERM to the command; its exit code."""
        assert self._child is not None
        self._child.terminate()
        return self.wait()

    def _join(self) -> None:
        if self._pump is not None:
            self._pump.join(10)

    @property
    def is_clean(self) -> bool:
        """Whether every broker's folder carries the mark of a clean stop."""
        folders = list(Path(self.settings["log.dirs"]).glob("broker-*"))
        return len(folders) == self.count and all(
            (folder / ".kafka_cleanshutdown").exists() for folder in folders
        )

    # --- its cluster

    def wait_registered(self, ids: set[int], ports: Sequence[int] = ()) -> None:
        """Wait until each of these brokers tells of these brokers alone, and of a controller among them.
        `ports`: theirs, where they did not say yet where they listen."""

        def complete() -> bool:
            for port in ports or [self.ports[broker_id] for broker_id in ids]:
                known = metadata(port)
                if known is None or {broker.node_id for broker in known.brokers} != ids:
                    return False
                if known.controller_id not in ids:
                    return False
            return True

        wait_until(complete, START_S, f"brokers {ids} know each other", 0.01)


def wait_gone(pids: Sequence[int], timeout_s: float = 20) -> float:
    """Wait until there are no such processes; how long that took."""
    began = time.monotonic()

    def gone() -> bool:
        return not any(_runs(pid) for pid in pids)

    wait_until(gone, timeout_s, f"processes {pids} are gone")
    return time.monotonic() - began


def _runs(pid: int) -> bool:
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    return False


def cpu_seconds(pid: int) -> float:
    """User and system time of a process so far."""
    after_name = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return sum(map(int, after_name[11:13])) / os.sysconf("SC_CLK_TCK")
