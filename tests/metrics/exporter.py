"""The real kafka_exporter, if it is installed on this machine (tests/support/programs.py)."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.support.ports import free_port
from tests.support.programs import program, serving


@contextmanager
def kafka_exporter(address: str, log: Path) -> Iterator[str]:
    """Start a kafka_exporter for the brokers at `address`, and return its URL. Skips the test if it is not
    installed.
    """
    listening = f"127.0.0.1:{free_port()}"
    servers = [f"--kafka.server={each}" for each in address.split(",")]
    # Without this option, version 1.9.0 may omit the last sample, because it does not wait for all its
    # goroutines.
    whole = "--concurrent.enable"
    command = [program("kafka_exporter"), *servers, whole, f"--web.listen-address={listening}"]
    with serving(command, log, f"http://{listening}", "/healthz") as url:
        yield url
