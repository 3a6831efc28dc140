"""System calls of a running process made to fail, by strace."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

_LOOKS = 5
"""A thread that enters a system call looks stopped for a moment, too."""


@contextlib.contextmanager
def failing(pid: int, calls: Sequence[str], error: str, paths: Sequence[Path] = ()) -> Iterator[None]:
    """Within the block, `calls` of the process fail with `error` (a name such as EIO); with `paths`, only
    those on these files.
    """
    command = ["strace", "-f", "-p", str(pid), "-o", "/dev/null", "-e", f"trace={','.join(calls)}"]
    command += [f"--inject={','.join(calls)}:error={error}"]
    for path in paths:
        command += ["-P", str(path)]
    tracer = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    try:
        assert tracer.stderr is not None
        said = []
        for line in tracer.stderr:
            said.append(line)
            if "attached" in line and "Requested" not in line:
                break
        else:
            raise AssertionError(f"strace cannot attach: {''.join(said)}")
        yield
    finally:
        with _standing_still(pid):
            tracer.terminate()
            tracer.communicate(timeout=20)


@contextlib.contextmanager
def _standing_still(pid: int) -> Iterator[None]:
    """Stop the process outside of any system call: one that strace leaves half way fails with ENOSYS,
    which is no error of a disk.
    """
    stopped_in_a_row = 0
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, signal.SIGSTOP)
    while stopped_in_a_row < _LOOKS and (states := _thread_states(pid)):
        stopped_in_a_row = stopped_in_a_row + 1 if states <= {"T", "t"} else 0
        time.sleep(0.005)  # interval of polling
    try:
        yield
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGCONT)


def _thread_states(pid: int) -> set[str]:
    """What Linux says of the threads that are not dead: R running, S and D waiting, T and t stopped."""
    states = set()
    for stat in Path(f"/proc/{pid}/task").glob("*/stat"):
        with contextlib.suppress(OSError):
            states.add(stat.read_text().rpartition(")")[2].split()[0])
    return states - {"X", "Z"}
