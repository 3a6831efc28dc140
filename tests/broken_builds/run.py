"""Run the broken builds in a copy of the sources: `python -m tests.broken_builds.run` prints a table, and
exits with 1 if a test does not fail."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

from tests.broken_builds.table import BROKEN_BUILDS, BrokenBuild

PROJECT = Path(__file__).resolve().parent.parent.parent
COPIED = ("kafka_compat", "storage", "coordination", "tests", "setup.cfg", "pyproject.toml")
_FAILED = 1
"""pytest's exit code if any test failed."""


class Outcome(NamedTuple):
    """The result of a broken build. `noticed` is true if its test failed, rather than failing to start."""

    build: BrokenBuild
    noticed: bool
    duration_s: float
    output: str


def broken(build: BrokenBuild, root: Path = PROJECT) -> str:
    """Return the text of the file with the fault. Raises ValueError unless the correct text occurs exactly
    once."""
    source = (root / build.file).read_text()
    found = source.count(build.right)
    if found != 1:
        raise ValueError(f"{build.file} contains {build.right!r} {found} times")
    return source.replace(build.right, build.wrong)


def copy_sources(directory: Path) -> None:
    """Copy the sources and tests of the working tree."""
    for name in COPIED:
        source = PROJECT / name
        if source.is_dir():
            shutil.copytree(source, directory / name, symlinks=True)
        else:
            shutil.copy2(source, directory / name)


def run(build: BrokenBuild, directory: Path) -> Outcome:
    """Introduce the fault into the copy in `directory`, run the test there, and restore the copy."""
    file = directory / build.file
    right, stat = file.read_bytes(), file.stat()
    file.write_text(broken(build, directory))
    # Bytecode caches are invalidated by the source's modification time in seconds, so set a later time.
    os.utime(file, (stat.st_atime, stat.st_mtime + 10))
    begun = time.monotonic()
    try:
        done = subprocess.run(
            [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", build.test],
            cwd=directory,
            capture_output=True,
            text=True,
            timeout=120,
        )
    finally:
        file.write_bytes(right)
        os.utime(file, (stat.st_atime, stat.st_mtime))
    noticed = done.returncode == _FAILED and f"FAILED {build.test}" in done.stdout
    return Outcome(build, noticed, time.monotonic() - begun, done.stdout + done.stderr)


def main() -> int:
    unnoticed = 0
    with tempfile.TemporaryDirectory(prefix="broken-builds-") as name:
        directory = Path(name)
        copy_sources(directory)
        for build in BROKEN_BUILDS:
            outcome = run(build, directory)
            unnoticed += not outcome.noticed
            verdict = "noticed by" if outcome.noticed else "NOT NOTICED by"
            print(f"{build.name}: {verdict} {build.test} ({outcome.duration_s:.1f} s)", flush=True)
            if not outcome.noticed:
                print(outcome.output[-2000:])
    print(f"{len(BROKEN_BUILDS) - unnoticed} of {len(BROKEN_BUILDS)} broken builds are detected")
    return int(unnoticed > 0)


if __name__ == "__main__":
    raise SystemExit(main())
