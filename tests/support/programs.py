"""Third-party programs that tests run if this machine has them. Tests neither download nor build them."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.metrics.scraping import get
from tests.support.process import Process, wait_until

START_S = 60


def program(name: str) -> str:
    """Return the path in KAFKA_COMPAT_<NAME>, or of the program on the PATH. Skips the test if there is
    neither.
    """
    variable = f"KAFKA_COMPAT_{name.upper().replace('-', '_')}"
    found = os.environ.get(variable) or shutil.which(name)
    if found is None:
        pytest.skip(f"{name} is not on the PATH, and {variable} is not set")
    return found


@contextmanager
def serving(
    command: Sequence[str], log: Path, url: str, health: str, environment: Mapping[str, str] | None = None
) -> Iterator[str]:
    """Run a server within the block, wait until `health` returns 200, and yield `url`."""
    process = Process(command, log, ready="$^", environment=environment, directory=log.parent)
    process.launch()

    def serves() -> bool:
        assert process.running, log.read_text()
        try:
            return get(url, health)[0] == 200
        except OSError:
            return False

    try:
        wait_until(serves, START_S, f"{command[0]} serves", 0.05)
        yield url
    finally:
        process.stop(10)
