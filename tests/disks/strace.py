"""System calls of a running process made to fail, by strace."""

from __future__ import annotations

import contextlib
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path


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
        tracer.terminate()
        tracer.communicate(timeout=20)
