"""Runs the broken builds, in a copy of the sources: `python -m tests.broken_builds.run` prints a table, and
exits with 1 when a test does not notice.
"""

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
"""pytest's exit code when tests ran and some failed."""


class Outcome(NamedTuple):
    """What became of a broken build: `noticed` when its test, and not its start, failed."""

    build: BrokenBuild
    noticed: bool
    duration_s: float
    output: str


def broken(build: BrokenBuild, root: Path = PROJECT) -> str:
    """The text of the file with its fault. Raises ValueError unless the right text is there exactly once."""
    source = (root / build.file).read_text()
    found = source.count(build.right)
    if found != 1:
        raise ValueError(f"{build.file} holds {build.right!r} {found} times")
    return source.replace(build.right, build.wrong)


def copy_sources(directory: Path) -> None:
    """The sources and tests as they stand."""
    for name in COPIED:
        source = PROJECT / name
        if source.is_dir():
            shutil.copytree(source, directory / name, symlinks=True)
        else:
            shutil.copy2(source, directory / name)


def run(build: BrokenBuild, directory: Path) -> Outcome:
    """Break the copy in `directory`, run the test there, and mend the copy."""
    file = directory / build.file
    right, stat = file.read_bytes(), file.stat()
    file.write_text(broken(build, directory))
    # Compiled files are known by the time of their source, in seconds.
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
    print(f"{len(BROKEN_BUILDS) - unnoticed} of {len(BROKEN_BUILDS)} broken builds are noticed")
    return int(unnoticed > 0)


if __name__ == "__main__":
    raise SystemExit(main())
