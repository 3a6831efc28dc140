"""A service of Spark jobs, whose jobs and whose broker are killed with kill -9."""

from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from tests.pipelines.cluster import Cluster
from tests.pipelines.flights import PARTITIONS, flights
from tests.pipelines.flow.service import Service
from tests.support.campaign import enabled

SAMPLE = 40_000


def offsets_in(archive: Path, topic: str) -> list[tuple[int, int]]:
    files = (archive / f"topic_dir={topic}").rglob("*.parquet")
    rows: list[dict[str, Any]] = []
    for file in files:
        rows += pq.ParquetFile(file).read(["partition", "offset"]).to_pylist()
    return sorted((row["partition"], row["offset"]) for row in rows)


@pytest.mark.timeout(3600)
@pytest.mark.skipif(not enabled(), reason="acceptance test: needs --campaign")
def test_each_record_is_archived_once_by_a_service(
    kafka: Cluster, connector_jars: Path, tmp_path: Path
) -> None:
    topic = kafka.create_topic(partitions=PARTITIONS)
    kafka.fill(topic, PARTITIONS, flights(SAMPLE // 2))
    (tmp_path / "flow.yaml").write_text(
        f"""\
settings:
  bootstrap-server: {kafka.address}
  jars: {connector_jars}
  master: local[1]
  interval-s: 1
  offsets-per-batch: 4000
  topic: {topic}
jobs:
  archive: {{job: archive, to: ./archive}}
  latest: {{job: latest, to: ./latest}}
"""
    )
    arguments = ["--continuous", "--status-s", "1"]
    service = Service(str(tmp_path / "flow.yaml"), *arguments, directory=tmp_path)
    for restart in range(3):
        pid = service.await_state("archive", "running", restart, message="batch")["pid"]
        os.killpg(pid, signal.SIGKILL)
        service.await_state("archive", "running", restart + 1)
    kafka.server.restart(kill=True)
    kafka.fill(topic, PARTITIONS, flights(SAMPLE // 2))
    service.await_state("archive", "running", 3, message=", 0 offsets behind")
    service.await_state("latest", "running", message=", 0 offsets behind")
    while len(offsets_in(tmp_path / "archive", topic)) < SAMPLE:
        service.await_state("archive", "running", 3)
    service.process.send_signal(signal.SIGTERM)
    code, last = service.finish(120)
    assert code == 0
    assert {line["state"] for line in last.values()} == {"stopped"}
    assert offsets_in(tmp_path / "archive", topic) == [
        (partition, offset) for partition in range(PARTITIONS) for offset in range(SAMPLE // PARTITIONS)
    ]
