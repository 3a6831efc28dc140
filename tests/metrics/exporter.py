"""The real kafka_exporter, where there is one on this machine (tests/support/programs.py)."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.support.ports import free_port
from tests.support.programs import program, serving


@contextmanager
def kafka_exporter(address: str, log: Path) -> Iterator[str]:
    """The URL of one that looks at the brokers at `address`. Skips the test where there is none."""
    listening = f"127.0.0.1:{free_port()}"
    servers = [f"--kafka.server={each}" for each in address.split(",")]
    # Without it a scrape may lose its last sample: version 1.9.0 does not wait for whoever gathers them.
    whole = "--concurrent.enable"
    command = [program("kafka_exporter"), *servers, whole, f"--web.listen-address={listening}"]
    with serving(command, log, f"http://{listening}", "/healthz") as url:
        yield url
