"""System calls of a running process that strace makes fail."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

_LOOKS = 5
"""A thread that is entering a system call also appears stopped for a moment."""


@contextlib.contextmanager
def failing(pid: int, calls: Sequence[str], error: str, paths: Sequence[Path] = ()) -> Iterator[None]:
    """Make `calls` of the process fail with `error` (a name such as EIO) within the block. With `paths`, only
    calls on these files fail.
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
    """Stop the process outside of any system call. Otherwise, a call that strace interrupts fails with
    ENOSYS, which is not a disk error.
    """
    stopped_in_a_row = 0
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, signal.SIGSTOP)
    while stopped_in_a_row < _LOOKS and (states := _thread_states(pid)):
        stopped_in_a_row = stopped_in_a_row + 1 if states <= {"T", "t"} else 0
        time.sleep(0.005)  # polling interval
    try:
        yield
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGCONT)


def _thread_states(pid: int) -> set[str]:
    """Return the states of the live threads: R is running, S and D are waiting, T and t are stopped."""
    states = set()
    for stat in Path(f"/proc/{pid}/task").glob("*/stat"):
        with contextlib.suppress(OSError):
            states.add(stat.read_text().rpartition(")")[2].split()[0])
    return states - {"X", "Z"}
