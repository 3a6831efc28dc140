"""The real kafka_exporter, where there is one on this machine: on the PATH, or where
KAFKA_COMPAT_KAFKA_EXPORTER says. The tests neither fetch nor build it.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.metrics.scraping import get
from tests.support.ports import free_port
from tests.support.process import Process, wait_until

VARIABLE = "KAFKA_COMPAT_KAFKA_EXPORTER"


@contextmanager
def kafka_exporter(address: str, log: Path) -> Iterator[str]:
    """The URL of one that looks at the brokers at `address`. Skips the test where there is none."""
    program = os.environ.get(VARIABLE) or shutil.which("kafka_exporter")
    if program is None:
        pytest.skip(f"there is no kafka_exporter on the PATH, and {VARIABLE} names none")
    listening = f"127.0.0.1:{free_port()}"
    servers = [f"--kafka.server={each}" for each in address.split(",")]
    # Without it a scrape may lose its last sample: version 1.9.0 does not wait for whoever gathers them.
    whole = "--concurrent.enable"
    command = [program, *servers, whole, f"--web.listen-address={listening}"]
    process = Process(command, log, ready="Listening")
    process.launch()
    url = f"http://{listening}"

    def serves() -> bool:
        assert process.running, log.read_text()
        try:
            return get(url, "/healthz")[0] == 200
        except OSError:
            return False

    try:
        wait_until(serves, 30, "kafka_exporter serves", 0.05)
        yield url
    finally:
        process.stop(10)
