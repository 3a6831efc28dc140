"""The real Prometheus, if it is on the PATH or KAFKA_COMPAT_PROMETHEUS contains its path.

The tests neither download nor build it. They were run with Debian's package (2.42).
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlsplit

from tests.metrics.scraping import get_json
from tests.support.ports import free_port
from tests.support.process import Process, wait_until

VARIABLE = "KAFKA_COMPAT_PROMETHEUS"


def program() -> str | None:
    """Return the path of the program, or None if it is not installed."""
    return os.environ.get(VARIABLE) or shutil.which("prometheus")


class Prometheus:
    """A Prometheus server that scrapes some targets."""

    def __init__(self, url: str) -> None:
        self._url = url

    def ask(self, query: str) -> list[dict[str, Any]]:
        """Return the current samples of a query."""
        status, answer = get_json(self._url, f"/api/v1/query?query={quote(query)}")
        assert status == 200, answer
        found: list[dict[str, Any]] = answer["data"]["result"]
        return found


@contextmanager
def prometheus(found: str, directory: Path, targets: Mapping[str, str]) -> Iterator[Prometheus]:
    """Start a server, and wait until it has scraped each target twice. `targets` maps job names to URLs."""
    jobs = [
        {"job_name": job, "scrape_interval": "1s", "static_configs": [{"targets": [urlsplit(url).netloc]}]}
        for job, url in targets.items()
    ]
    config = directory / "prometheus.yml"
    # JSON is a subset of YAML.
    config.write_text(json.dumps({"scrape_configs": jobs}))
    listening = f"127.0.0.1:{free_port()}"
    command = [
        found,
        f"--config.file={config}",
        f"--storage.tsdb.path={directory / 'tsdb'}",
        f"--web.listen-address={listening}",
    ]
    process = Process(command, directory / "prometheus.log", ready="Server is ready")
    process.launch()
    process.wait_ready(60)
    server = Prometheus(f"http://{listening}")
    try:
        wait_until(
            lambda: len(server.ask("count_over_time(up[1m]) >= 2 and up == 1")) == len(targets),
            60,
            "two scrapes of every target",
            0.2,
        )
        yield server
    finally:
        process.stop(10)
