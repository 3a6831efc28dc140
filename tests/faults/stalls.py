"""A bystander that sends ApiVersions to one broker every 20 ms, also across its restarts.

`python -m tests.faults.stalls PORT FILE` writes a line "TIME_MS LATENCY_MS WALL_MS" for each response. The
latency excludes the time spent waiting for a processor, as in tests/support/bystander.py. Nothing is measured
while the broker is down. The program is a separate process, because a thread of the test would also measure
delays of the test. Each line of its standard input is the broker's current process id.
"""

from __future__ import annotations

import select
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import NamedTuple

from tests.support.bystander import ask, measure

PAUSE_S = 0.02
_TIMEOUT_S = 30.0


class Latency(NamedTuple):
    """The latency of one response: the time of day, and the latency without and with the time spent waiting
    for a processor.
    """

    time_ms: int
    latency_ms: float
    wall_ms: float


class StallWatch:
    """The program, running for the broker at `port`."""

    def __init__(self, port: int, pid: int, file: Path) -> None:
        self._file = file
        file.touch()
        line = [sys.executable, "-m", "tests.faults.stalls", str(port), str(file)]
        self._child = subprocess.Popen(line, stdin=subprocess.PIPE, text=True)
        self.follow(pid)

    def follow(self, pid: int) -> None:
        """Set the broker's current process id."""
        assert self._child.stdin is not None
        self._child.stdin.write(f"{pid}\n")
        self._child.stdin.flush()

    def stop(self) -> None:
        self._child.kill()
        self._child.wait()

    def latencies(self) -> list[Latency]:
        text = self._file.read_text()
        lines = (line.split() for line in text[: text.rfind("\n") + 1].splitlines())
        return [Latency(int(time_ms), float(latency), float(wall)) for time_ms, latency, wall in lines]


def _watch(port: int, file: Path) -> None:
    pid = int(sys.stdin.readline())
    with open(file, "a") as output:
        while True:
            try:
                with socket.create_connection(("127.0.0.1", port), _TIMEOUT_S) as connection:
                    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                    # A starting broker accepts connections long before it serves requests. That is not a
                    # stall.
                    ask(connection)
                    while True:
                        if select.select([sys.stdin], [], [], PAUSE_S)[0]:
                            pid = int(sys.stdin.readline())
                        latency_ms, wall_ms = measure(connection, pid)
                        when_ms = time.time_ns() // 1_000_000
                        print(when_ms, f"{latency_ms:.1f} {wall_ms:.1f}", file=output, flush=True)
            except OSError:
                time.sleep(PAUSE_S)  # interval between connection attempts


if __name__ == "__main__":
    _watch(int(sys.argv[1]), Path(sys.argv[2]))
