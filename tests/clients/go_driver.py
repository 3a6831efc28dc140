"""The Go client program (tests/clients/go), compiled on first use and cached."""

from __future__ import annotations

import functools
import hashlib
import os
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.support import kafka_jars

_SOURCES = Path(__file__).resolve().parent / "go"


@functools.cache
def go_driver() -> Path:
    """Return the path of the program. Skips the test if Go is not installed. Raises RuntimeError if
    compilation fails.
    """
    sources = sorted([*_SOURCES.glob("*.go"), *_SOURCES.glob("go.*")])
    digest = hashlib.sha256(b"".join(source.read_bytes() for source in sources)).hexdigest()[:16]
    program = kafka_jars.cache_directory() / "client-drivers" / f"go-{digest}"
    if program.is_file():
        return program
    if shutil.which("go") is None:
        pytest.skip("Go is not installed (https://go.dev/dl, or apt-get install golang)")
    program.parent.mkdir(parents=True, exist_ok=True)
    partial = program.with_name(f"{program.name}.{os.getpid()}")
    command = ["go", "build", "-mod=readonly", "-trimpath", "-buildvcs=false", "-o", str(partial), "."]
    run = subprocess.run(
        command, cwd=_SOURCES, env={**os.environ, "CGO_ENABLED": "0"}, capture_output=True, text=True
    )
    if run.returncode != 0:
        raise RuntimeError(f"compiling {_SOURCES} failed:\n{run.stdout}{run.stderr}")
    partial.rename(program)
    return program
