"""Other processes of this program: how a module of it is run in one."""

from __future__ import annotations

import os
import sys

import kafka_compat


def command(module: str, *arguments: str) -> list[str]:
    """The command line that runs a module of this package."""
    # -P: no package called `kafka_compat` in the working directory is taken for ours.
    return [sys.executable, "-P", "-m", module, *arguments]


def environment() -> dict[str, str]:
    """The environment in which `command` finds this very package."""
    root = os.path.dirname(next(iter(kafka_compat.__path__)))
    given = os.environ.get("PYTHONPATH", "")
    return {**os.environ, "PYTHONPATH": os.pathsep.join([root, *(given.split(os.pathsep) if given else [])])}
