"""A client beside an attack: it asks for ApiVersions every 20 ms and remembers how long each answer took.

    with Bystander(broker.port, broker.pid) as bystander:
        attack()
    assert bystander.worst_ms < 250

It runs in a process of its own, so that neither the attack nor the test takes its time. The time in which the
broker's thread, or the bystander, was ready to run and had to wait for a processor does not count: other work
on the machine took it. Linux keeps that time for each thread (/proc/…/schedstat, the second number).
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
    """Watches the broker at 127.0.0.1:`port` from `__enter__` to `__exit__`; the figures are there then.

    `pid` is the broker's process, whose main thread serves; 0 when it is not known.
    """

    def __init__(self, port: int, pid: int = 0, interval_ms: int = INTERVAL_MS) -> None:
        self._line = [sys.executable, __file__, str(port), str(pid), str(interval_ms)]
        self._process: subprocess.Popen[str] | None = None
        self.latencies_ms: list[float] = []
        """Of every question, in order, without the time of waiting for a processor."""
        self.worst_wall_ms = 0.0
        """The longest with it."""
        self.trouble = ""
        """Why it ended early: its connection broke."""

    @property
    def worst_ms(self) -> float:
        """The longest that an answer took; infinite when the connection broke."""
        return float("inf") if self.trouble else max(self.latencies_ms, default=float("inf"))

    def __enter__(self) -> Bystander:
        self._process = subprocess.Popen(self._line, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        assert self._process.stdout is not None
        assert self._process.stdout.readline() == "watching\n", "the bystander got no answer at all"
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
    """Ask for ApiVersions and wait for the answer; OSError when the broker is gone."""
    connection.sendall(_QUESTION)
    answer = b""
    while len(answer) < 4 or len(answer) < 4 + struct.unpack_from(">i", answer)[0]:
        part = connection.recv(65536)
        if not part:
            raise ConnectionError("the broker closed the bystander's connection")
        answer += part


def _waited_s(pid: int) -> float:
    """How long the main thread of the process has waited for a processor since it began."""
    try:
        with open(f"/proc/{pid}/task/{pid}/schedstat") as file:
            return int(file.read().split()[1]) / 1e9
    except OSError:
        return 0.0


def measure(connection: socket.socket, pid: int) -> tuple[float, float]:
    """Ask once; how many ms that took, without the waiting of process `pid` for a processor, and with it."""
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
            # Asks once more after it was told to stop: what is stalled then counts too.
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
