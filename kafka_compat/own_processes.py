"""Command line and environment to run a module of this package in another process."""

import os
import sys

import kafka_compat
from kafka_compat import kept_modules


def command(module: str, *arguments: str) -> list[str]:
    """Return the command line that runs a module of this package. The process must inherit `descriptors`."""
    if kept_modules.kept is not None:
        return kept_modules.kept.command(module, *arguments)
    # With -P, Python ignores a package called `kafka_compat` in the working directory.
    return [sys.executable, "-P", "-m", module, *arguments]


def descriptors() -> list[int]:
    """Return the file descriptors that a process started by `command` must inherit."""
    return [] if kept_modules.kept is None else [kept_modules.kept.descriptor]


def environment() -> dict[str, str]:
    """Return the environment in which `command` imports this package."""
    root = os.path.dirname(next(iter(kafka_compat.__path__)))
    given = os.environ.get("PYTHONPATH", "")
    return {**os.environ, "PYTHONPATH": os.pathsep.join([root, *(given.split(os.pathsep) if given else [])])}
