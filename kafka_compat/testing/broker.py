"""Start and stop a broker, or a cluster of brokers, for tests."""

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
from collections.abc import Callable, Mapping, Sequence
from signal import SIGCONT, SIGSTOP
from types import TracebackType
from typing import IO, Any, Self, TypeVar

from kafka_compat import own_processes
from kafka_compat.cli.ephemeral import EphemeralFolder, remove_left_over
from kafka_compat.testing.control import Control

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


__all__ = ["BrokerFailed", "KafkaBroker", "KafkaCluster"]

_START_TIMEOUT_S = 30.0
_HOST = "127.0.0.1"
_QUICK = {
    "kafka.compat.http.listener": f"http://{_HOST}:0",
    "kafka.compat.control.enable": True,
    "group.initial.rebalance.delay.ms": 0,
    "offsets.topic.num.partitions": 1,
    "transaction.state.log.num.partitions": 1,
    "share.coordinator.state.topic.num.partitions": 1,
}
"""Settings for tests: groups do not wait for more members, and internal topics have one partition."""

T = TypeVar("T")


async def _in_thread(function: Callable[[], T]) -> T:
    # Import asyncio here, because every run of pytest imports this file, but few use an event loop.
    import asyncio

    return await asyncio.to_thread(function)


class KafkaBroker:
    """A broker on a free port of 127.0.0.1, in its own process. It exits with the current process.

    Use it with `with` or `async with`. `settings` maps Kafka's names of broker settings to values. `stop`,
    `kill` and `start` keep the data and the port. The data is deleted at the end of the `with` block.
    """

    def __init__(
        self,
        settings: Mapping[str, object] | None = None,
        *,
        start_timeout_s: float = _START_TIMEOUT_S,
        verbose: bool = False,
    ) -> None:
        """With `verbose`, the broker logs at level INFO instead of WARN."""
        self._start_timeout_s = start_timeout_s
        self._process = BrokerProcess(
            {**_QUICK, **(settings or {})}, [*self._arguments(), *(["--verbose"] if verbose else [])]
        )
        self._brokers: list[dict[str, Any]] = []
        self._control: Control | None = None

    def _arguments(self) -> list[str]:
        return []

    def _first_port(self) -> int:
        return 0

    # --- addresses and process

    @property
    def bootstrap_servers(self) -> str:
        """Addresses for clients: `host:port`, comma-separated for a cluster."""
        return ",".join(f"{host}:{port}" for host, port in self._addresses())

    @property
    def host(self) -> str:
        """Host of the first listener."""
        return self._addresses()[0][0]

    @property
    def port(self) -> int:
        """Port of the first listener."""
        return self._addresses()[0][1]

    @property
    def pid(self) -> int:
        """Process ID of the current or last process."""
        return self._process.child.pid

    @property
    def running(self) -> bool:
        """Whether the broker is running."""
        return self._process.running

    @property
    def log(self) -> str:
        """The broker's log since this object was created."""
        return self._process.log

    @property
    def control(self) -> Control:
        """Client of the control API, for operations without a Kafka API, such as advancing time."""
        if self._control is None:
            raise RuntimeError("the broker was not started, or its settings disable the control API")
        return self._control

    def _addresses(self) -> list[tuple[str, int]]:
        if not self._brokers:
            raise RuntimeError("the broker was not started: use it as a context manager, or call start()")
        first = [next(iter(broker["listeners"].values())) for broker in self._brokers]
        return [(listener["host"], listener["port"]) for listener in first]

    # --- topics and state; modules are imported on demand, so that the import of this module is fast

    def topics(self) -> list[str]:
        """Return the names of the topics, except Kafka's internal topics."""
        from kafka_compat.testing import topics

        return topics.names(self.host, self.port)

    def create_topic(
        self,
        name: str,
        partitions: int = 1,
        *,
        replication_factor: int = -1,
        config: Mapping[str, object] | None = None,
    ) -> str:
        """Create a topic, wait until clients can use it, and return its name. A replication factor of -1
        means the broker's default. Raises TopicsFailed.
        """
        from kafka_compat.testing import topics

        topics.create(self.host, self.port, name, partitions, replication_factor, config or {})
        return name

    def reset(self) -> None:
        """Delete all topics, groups and transactions, remove faults, and return to real time. Settings and
        producer IDs are kept. If the broker is stopped, start it first.
        """
        if not self.running:
            self.start()
        self.control.reset()

    # --- startup and shutdown

    def start(self) -> Self:
        """Start the broker with its existing data, if any, and wait until it serves. Raises BrokerFailed."""
        self._process.settings.setdefault("listeners", f"PLAINTEXT://{_HOST}:{self._first_port()}")
        ready = self._process.start(self._start_timeout_s)
        self._brokers = ready["brokers"]
        self._control = Control(ready["http"]) if ready["http"] else None
        self._keep_ports()
        return self

    def _keep_ports(self) -> None:
        """Use the current ports at the next start, because clients know them."""
        self._process.settings["listeners"] = ",".join(
            f"{name}://{at['host']}:{at['port']}" for name, at in self._brokers[0]["listeners"].items()
        )

    def stop(self) -> None:
        """Stop the broker gracefully (SIGTERM), and keep its data for the next start. Raises BrokerFailed."""
        self._process.stop()

    def kill(self) -> None:
        """Kill the broker's process (`kill -9`), and keep its data for the next start."""
        self._process.kill()

    def pause(self) -> None:
        """Pause the broker's process (SIGSTOP), including its control API, until `resume` is called."""
        self._process.child.send_signal(SIGSTOP)

    def resume(self) -> None:
        """Resume the broker's process (SIGCONT)."""
        self._process.child.send_signal(SIGCONT)

    def restart(self) -> None:
        """Stop the broker gracefully, and start it. Raises BrokerFailed."""
        self.stop()
        self.start()

    def close(self) -> None:
        """End the broker's process, and delete its data."""
        self._process.end()

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    async def __aenter__(self) -> Self:
        return await _in_thread(self.start)

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await _in_thread(self.close)


class KafkaCluster(KafkaBroker):
    """Several brokers in one process, with replication and leader elections. Broker IDs start at 1."""

    def __init__(
        self,
        brokers: int = 3,
        settings: Mapping[str, object] | None = None,
        *,
        start_timeout_s: float = _START_TIMEOUT_S,
        verbose: bool = False,
    ) -> None:
        """`brokers` is the number of brokers. For the other parameters, see KafkaBroker."""
        self._count = brokers
        replicated = {"default.replication.factor": min(brokers, 3)}
        super().__init__({**replicated, **(settings or {})}, start_timeout_s=start_timeout_s, verbose=verbose)

    def _arguments(self) -> list[str]:
        return ["--brokers", str(self._count)]

    def _first_port(self) -> int:
        """Return the first of consecutive free ports for all brokers. The next start uses the same ports."""
        return adjacent_ports(self._count)
