"""The real Prometheus, where there is one: on the PATH, or where KAFKA_COMPAT_PROMETHEUS says.

The tests neither fetch nor build it; Debian's package was tried (2.42).
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
    """None where there is none."""
    return os.environ.get(VARIABLE) or shutil.which("prometheus")


class Prometheus:
    """One that scrapes some targets."""

    def __init__(self, url: str) -> None:
        self._url = url

    def ask(self, query: str) -> list[dict[str, Any]]:
        """The samples that a query gives now."""
        status, answer = get_json(self._url, f"/api/v1/query?query={quote(query)}")
        assert status == 200, answer
        found: list[dict[str, Any]] = answer["data"]["result"]
        return found


@contextmanager
def prometheus(found: str, directory: Path, targets: Mapping[str, str]) -> Iterator[Prometheus]:
    """`targets` are URLs of servers by the names of their jobs. It has scraped each of them twice."""
    jobs = [
        {"job_name": job, "scrape_interval": "1s", "static_configs": [{"targets": [urlsplit(url).netloc]}]}
        for job, url in targets.items()
    ]
    config = directory / "prometheus.yml"
    # JSON is YAML.
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
            "Prometheus has scraped all of them",
            0.2,
        )
        yield server
    finally:
        process.stop(10)
