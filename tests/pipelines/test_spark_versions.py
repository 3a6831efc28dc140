"""All jobs on each version of pyspark that the spark extra permits, each in its own virtual environment."""

import os
import subprocess

import pytest

from tests.pipelines.spark_versions import VERSIONS, python_with
from tests.support import campaign
from tests.support.servers import PROJECT

JOBS = ("archive", "audit", "copy", "dedupe", "lag", "latest", "mirror", "replay", "report", "windows")
OTHERS = ("archive_tables", "environment", "source", "streaming", "submit")


@pytest.mark.timeout(3600)
@pytest.mark.skipif(not campaign.enabled(), reason="installs other versions of Spark: needs --campaign")
@pytest.mark.parametrize("version", VERSIONS)
def test_all_jobs_run_on_every_supported_version_of_spark(version: str) -> None:
    """The daily form of each job's tests: a sample of the flights, with kills of the job and the broker."""
    python = python_with(version)
    environment = {**os.environ, campaign.VARIABLE: "", "PYTEST_ADDOPTS": ""}
    asked = [str(python), "-c", "import pyspark; print(pyspark.__version__)"]
    assert subprocess.run(asked, capture_output=True, text=True, check=True).stdout.strip() == version
    files = [f"tests/pipelines/test_{name}.py" for name in (*JOBS, *OTHERS)]
    assert all((PROJECT / name).is_file() for name in files)
    done = subprocess.run(
        [str(python), "-m", "pytest", "-q", "-p", "no:cacheprovider", *files],
        cwd=PROJECT,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    print(f"pyspark {version}: {done.stdout.splitlines()[-1]}")
    assert done.returncode == 0, done.stdout[-20_000:]
