"""The code blocks of docs/walkthrough.md, run as printed except for addresses, directories and the sample."""

import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kafka_compat.cli import main
from tests.pipelines.cluster import Cluster
from tests.pipelines.flights import FLIGHTS, flights
from tests.support.campaign import enabled
from tests.support.servers import PROJECT, KafkaCompatBroker

SAMPLE = FLIGHTS if enabled() else 3_000
_BLOCK = re.compile(r"^```(python|sh)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


@pytest.fixture
def clusters(tmp_path: Path) -> Iterator[dict[str, Cluster]]:
    """The two brokers of the walkthrough, by their addresses in the document."""
    servers = {
        address: KafkaCompatBroker(tmp_path / name)
        for address, name in (("127.0.0.1:9092", "paris"), ("127.0.0.1:9192", "oslo"))
    }
    for server in servers.values():
        server.start()
    yield {address: Cluster(server) for address, server in servers.items()}
    for server in servers.values():
        server.stop()


def sample() -> Iterator[tuple[bytes, bytes, int]]:
    """Yield (tail number, line, departure in ms)."""
    for tail, line, departure_ms, _ in flights(SAMPLE):
        yield tail, line, departure_ms


@pytest.mark.skipif(not enabled(), reason="each job has daily tests: needs --campaign")
@pytest.mark.timeout(1800)
def test_every_code_block_of_the_walkthrough_runs(
    clusters: dict[str, Cluster], spark: Any, tmp_path: Path
) -> None:
    text = (PROJECT / "docs" / "walkthrough.md").read_text()
    for address, cluster in clusters.items():
        text = text.replace(address, cluster.address)
    text = text.replace("./", f"{tmp_path}/")
    names: dict[str, Any] = {"flights": sample}
    jobs = []
    for kind, block in _BLOCK.findall(text):
        if kind == "python":
            exec(block, names)
            continue
        for command in block.replace("\\\n", " ").split("kafka-compat ")[1:]:
            arguments = shlex.split(command)
            jobs.append(arguments[1])
            assert main(arguments) == 0, command
    archives = ["archive", "audit", "archive", "archive"]
    assert jobs == [*archives, "latest", "windows", "mirror", "replay", "copy", "dedupe", "audit"]
    assert (tmp_path / "plots" / "everywhere.png").read_bytes().startswith(b"\x89PNG")
