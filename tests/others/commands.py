"""Commands that install or compile suites, and that run their tests."""

from __future__ import annotations

import os
import shlex
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

from tests.others.suite import SuiteBroken

_TAIL = 3000


def done(
    command: Sequence[str], directory: Path | None = None, environment: Mapping[str, str] | None = None
) -> str:
    """Run a command to its end, and return its output. `environment` is added to that of this process. Raises
    SuiteBroken with the end of the output if the command fails.
    """
    settings = {**os.environ, **(environment or {})}
    run = subprocess.run(command, cwd=directory, env=settings, capture_output=True, text=True)
    if run.returncode != 0:
        raise SuiteBroken(f"{shlex.join(command)}:\n{run.stdout[-_TAIL:]}{run.stderr[-_TAIL:]}")
    return run.stdout


def logged(
    command: Sequence[str], log: Path, directory: Path, environment: Mapping[str, str], *, timeout_s: float
) -> str:
    """Run tests, which may fail, append their output to `log`, and return it. `environment` is added to that
    of this process.
    """
    with open(log, "ab") as output:
        start = output.tell()
        subprocess.run(
            command,
            cwd=directory,
            env={**os.environ, **environment},
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            timeout=timeout_s,
        )
    return log.read_bytes()[start:].decode(errors="replace")
