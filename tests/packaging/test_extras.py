"""What `pip install` of the project and of each extra brings is enough: each in a virtual environment of its
own, which has nothing of what the tests have."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import venv
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest
from confluent_kafka import Producer

from tests.spark.environment import QUICK_START
from tests.support.servers import PROJECT, KafkaCompatBroker

RECORDS = 100


class Installed:
    """A virtual environment with the wheel, and perhaps an extra, in it."""

    def __init__(self, folder: Path, requirement: str) -> None:
        venv.create(folder, with_pip=True)
        self.python = str(folder / "bin" / "python")
        self.program = str(folder / "bin" / "kafka-compat")
        quiet = ("-q", "--no-compile", "--disable-pip-version-check")
        self.run(self.python, "-m", "pip", "install", *quiet, requirement)

    def run(self, *line: str, exit_code: int = 0, environment: Mapping[str, str] | None = None) -> str:
        """Standard output and errors. The folder is none with packages in it."""
        known = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
        result = subprocess.run(
            line,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            cwd="/",
            env={**known, **(environment or {})},
            timeout=280,
        )
        assert result.returncode == exit_code, result.stdout
        return result.stdout


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = tmp_path_factory.mktemp("wheel")
    # From a copy, since a build leaves folders behind.
    source = folder / "source"
    source.mkdir()
    for name in ("kafka_compat", "storage", "coordination"):
        shutil.copytree(
            PROJECT / name, source / name, symlinks=True, ignore=shutil.ignore_patterns("__pycache__")
        )
    for name in ("setup.py", "setup.cfg", "pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(PROJECT / name, source)
    line = [sys.executable, "-m", "pip", "wheel", "-q", "--no-deps", "-w", str(folder), str(source)]
    subprocess.run(line, check=True, timeout=200)
    return str(next(folder.glob("*.whl")))


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KafkaCompatBroker]:
    running = KafkaCompatBroker(tmp_path_factory.mktemp("broker"))
    running.start()
    producer = Producer({"bootstrap.servers": running.address})
    for number in range(RECORDS):
        producer.produce("numbers", str(number))
    assert producer.flush(30) == 0
    yield running
    running.stop()


@pytest.mark.parametrize("extra", ["", "[fast]"])
def test_the_project_serves_and_takes_no_strange_names(wheel: str, tmp_path: Path, extra: str) -> None:
    """Alone, and with what makes it faster."""
    installed = Installed(tmp_path / "venv", f"kafka-compat{extra} @ file://{wheel}")
    ask = (
        "import importlib.util as u; import kafka_compat.storage.log, kafka_compat.coordination.zookeeper, "
        "kafka_compat.broker, kafka_compat.cli.local_cluster; "
        "print([n for n in ('storage', 'coordination', 'tests', 'pytest', 'pyspark') if u.find_spec(n)])"
    )
    assert installed.run(installed.python, "-c", ask).strip() == "[]"
    said = installed.run(
        "timeout",
        "-s",
        "TERM",
        "5",
        installed.program,
        "serve",
        "--verbose",
        "--port",
        "0",
        f"--override=log.dirs={tmp_path / 'data'}",
        exit_code=124,
    )
    assert "Broker 1 ready on PLAINTEXT://127.0.0.1:" in said
    assert ("on the loop of uvloop" in said) == (extra == "[fast]")
    assert "Traceback" not in said


def test_the_extra_spark_archives_a_topic(wheel: str, tmp_path: Path, broker: KafkaCompatBroker) -> None:
    installed = Installed(tmp_path / "venv", f"kafka-compat[spark] @ file://{wheel}")
    line = [installed.program, "pipeline", "archive", "--bootstrap-server", broker.address]
    archive = tmp_path / "archive"
    said = installed.run(*line, "--topic", "numbers", "--to", str(archive), "--json", environment=QUICK_START)
    assert f'"rows": {RECORDS}' in said
    said = installed.run(*line, "--topic", "absent", "--to", str(tmp_path / "other"), exit_code=2)
    assert "No such topic" in said
    installed.run(
        *(installed.program, "pipeline", "report", "--log-dir", str(broker.log_dir)),
        *("--plot", str(tmp_path / "report.png")),
        environment=QUICK_START,
    )
