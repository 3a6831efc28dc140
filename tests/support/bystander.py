"""A client that sends ApiVersions every 20 ms during an attack, and records the latencies.

    with Bystander(broker.port, broker.pid) as bystander:
        attack()
    assert bystander.worst_ms < 250

It runs in a separate process, so that neither the attack nor the test delays it. Latencies exclude the time
in which the broker's thread or the bystander was ready to run but waited for a processor, because other load
on the machine causes it. Linux reports that time for each thread (/proc/…/schedstat, the second number).
"""

from __future__ import annotations

import json
import os
import select
import socket
import struct
import subprocess
import sys
import time
from types import TracebackType

INTERVAL_MS = 20
GIVE_UP_S = 60.0
# ApiVersions v0 with correlation id 7 and no client id.
_QUESTION = struct.pack(">ihhih", 10, 18, 0, 7, -1)


class Bystander:
    """Measures the broker at 127.0.0.1:`port` from `__enter__` to `__exit__`. The results are available
    afterwards.

    `pid` is the broker's process, whose main thread serves requests, or 0 if it is not known.
    """

    def __init__(self, port: int, pid: int = 0, interval_ms: int = INTERVAL_MS) -> None:
        self._line = [sys.executable, __file__, str(port), str(pid), str(interval_ms)]
        self._process: subprocess.Popen[str] | None = None
        self.latencies_ms: list[float] = []
        """The latency of every request in order, excluding processor waits."""
        self.worst_wall_ms = 0.0
        """The highest latency, including processor waits."""
        self.trouble = ""
        """The reason why the measurement ended early: the connection was closed."""

    @property
    def worst_ms(self) -> float:
        """The highest latency, or infinity if the connection was closed."""
        return float("inf") if self.trouble else max(self.latencies_ms, default=float("inf"))

    def __enter__(self) -> Bystander:
        self._process = subprocess.Popen(self._line, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        assert self._process.stdout is not None
        assert self._process.stdout.readline() == "watching\n", "the bystander received no response"
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._process is not None
        output, _ = self._process.communicate(timeout=GIVE_UP_S + 10)
        found = json.loads(output)
        self.latencies_ms, self.trouble = found["latencies"], found["trouble"]
        self.worst_wall_ms = found["worst_wall"]


def ask(connection: socket.socket) -> None:
    """Send ApiVersions, and wait for the response. Raises OSError if the connection is closed."""
    connection.sendall(_QUESTION)
    answer = b""
    while len(answer) < 4 or len(answer) < 4 + struct.unpack_from(">i", answer)[0]:
        part = connection.recv(65536)
        if not part:
            raise ConnectionError("the broker closed the bystander's connection")
        answer += part


def _waited_s(pid: int) -> float:
    """Return the total time that the process's main thread has waited for a processor."""
    try:
        with open(f"/proc/{pid}/task/{pid}/schedstat") as file:
            return int(file.read().split()[1]) / 1e9
    except OSError:
        return 0.0


def measure(connection: socket.socket, pid: int) -> tuple[float, float]:
    """Send one request, and return its latency in ms, excluding and including the time that process `pid`
    waited for a processor.
    """
    own_pid = os.getpid()
    waited_before_s = _waited_s(pid) + _waited_s(own_pid)
    begun_s = time.monotonic()
    ask(connection)
    wall_s = time.monotonic() - begun_s
    waiting_s = _waited_s(pid) + _waited_s(own_pid) - waited_before_s
    return max(wall_s - waiting_s, 0.0) * 1000, wall_s * 1000


def _watch(port: int, pid: int, interval_s: float) -> None:
    latencies_ms: list[float] = []
    worst_wall_ms = 0.0
    trouble = ""
    try:
        with socket.create_connection(("127.0.0.1", port), GIVE_UP_S) as connection:
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            ask(connection)
            print("watching", flush=True)
            stopping = False
            # Send one more request after the signal to stop, so that a stall at the end counts too.
            while not stopping:
                stopping = bool(select.select([sys.stdin], [], [], interval_s)[0])
                latency_ms, wall_ms = measure(connection, pid)
                latencies_ms.append(latency_ms)
                worst_wall_ms = max(worst_wall_ms, wall_ms)
    except OSError as error:
        trouble = str(error) or type(error).__name__
    print(json.dumps({"latencies": latencies_ms, "worst_wall": worst_wall_ms, "trouble": trouble}))


if __name__ == "__main__":
    _watch(int(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]) / 1000)
