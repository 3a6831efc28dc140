"""Go programs for tests. They are compiled into the cache directory on first use."""

from __future__ import annotations

import functools
import hashlib
import os
import shutil
import subprocess
from pathlib import Path

from tests.support import kafka_jars


class GoMissing(RuntimeError):
    """Go is not installed. The message says what to install."""


@functools.cache
def compiled(sources: Path) -> Path:
    """Return the path of the program that a directory with a go.mod defines.

    Raises GoMissing if the program must be compiled and Go is not installed, and RuntimeError with the
    compiler's output if compilation fails.
    """
    files = sorted([*sources.glob("*.go"), *sources.glob("go.*")])
    digest = hashlib.sha256(b"".join(file.read_bytes() for file in files)).hexdigest()[:16]
    program = kafka_jars.cache_directory() / "go-programs" / f"{sources.name}-{digest}"
    if program.is_file():
        return program
    if shutil.which("go") is None:
        raise GoMissing(
            f"{sources.name} is a Go program, and Go is not installed: install Go 1.26 "
            "(https://go.dev/dl), or Go 1.21 or newer, which downloads it"
        )
    program.parent.mkdir(parents=True, exist_ok=True)
    partial = program.with_name(f"{program.name}.{os.getpid()}")
    command = ["go", "build", "-mod=readonly", "-trimpath", "-buildvcs=false", "-o", str(partial), "."]
    run = subprocess.run(
        command, cwd=sources, env={**os.environ, "CGO_ENABLED": "0"}, capture_output=True, text=True
    )
    if run.returncode != 0:
        raise RuntimeError(f"compiling {sources} failed:\n{run.stdout}{run.stderr}")
    partial.rename(program)
    return program
