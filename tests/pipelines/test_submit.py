"""Jobs submitted with spark-submit, with executors in separate processes."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from kafka_compat.pipelines.environment import jars_in, pyspark_home
from tests.pipelines.cluster import Cluster
from tests.pipelines.comparisons import assert_equals_log, assert_same
from tests.pipelines.flights import FLIGHTS, PARTITIONS, flights
from tests.support.campaign import enabled
from tests.support.servers import PROJECT


def submit(jars: Path, *arguments: str) -> Any:
    """Run a pipeline with spark-submit, and return its report."""
    command = [str(pyspark_home() / "bin" / "spark-submit"), "--master", "local-cluster[2,1,1024]"]
    command += ["--jars", ",".join(map(str, jars_in(jars))), str(PROJECT / "kafka_compat" / "__main__.py")]
    environment = {
        "PYSPARK_PYTHON": sys.executable,
        "SPARK_LOCAL_IP": "127.0.0.1",
        "PYTHONPATH": str(PROJECT),
    }
    done = subprocess.run(
        [*command, "pipeline", *arguments, "--json"],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=900,
        check=False,
    )
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
    return json.loads(done.stdout[done.stdout.index("{") :])


@pytest.mark.timeout(1800)
@pytest.mark.skipif(not enabled(), reason="acceptance test: needs --campaign")
def test_archive_and_copy_jobs_run_on_separate_executors(
    kafka: Cluster, connector_jars: Path, tmp_path: Path
) -> None:
    topic, copy = (kafka.create_topic(partitions=PARTITIONS) for _ in range(2))
    kafka.fill(topic, PARTITIONS, flights())
    source = ["--bootstrap-server", kafka.address, "--topic", topic, "--to"]
    report = submit(connector_jars, "archive", *source, str(tmp_path / "archive"))
    assert (report["complete"], report["rows"]) == (True, FLIGHTS)
    assert assert_equals_log(tmp_path / "archive", kafka, topic, PARTITIONS) == FLIGHTS
    report = submit(connector_jars, "copy", *source, str(tmp_path / "copy"), "--to-topic", copy)
    assert (report["complete"], report["copied"]) == (True, FLIGHTS)
    assert_same(kafka, topic, copy, FLIGHTS)
