"""Java programs: those in the folder `programs`, and those in the jars of other projects."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from tests.others import commands
from tests.others.program import Program
from tests.support import java

_SOURCES = Path(__file__).with_name("programs")


def compiled(name: str, jars: Path, directory: Path) -> str:
    """Compile a program of the folder into a directory, and return its class path. Raises SuiteBroken."""
    source = str(_SOURCES / f"{name}.java")
    commands.done([*java.QUICK_COMPILER, "-cp", f"{jars}/*", "-d", str(directory), source])
    return f"{jars}/*:{directory}"


def started(
    name: str, class_path: str, log: Path, *arguments: str, heap: str = "256M", options: Sequence[str] = ()
) -> Program:
    """Start a program. `heap` is the maximum size of its heap."""
    line = ["java", f"-Xmx{heap}", *java.QUICK_START, java.log_option(), *options, "-cp", class_path, name]
    return Program(log, [*line, *arguments])
