"""The programs in docs/clients run as printed, in the directory that `security init` created for a user."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from kafka_compat.pipelines.environment import copy_jars, spark_release
from tests.pipelines.environment import QUICK_START
from tests.support import campaign, kafka_jars
from tests.support.ports import free_port
from tests.support.servers import PROJECT, KafkaCompatBroker, run_kafka_compat

_PAGES = PROJECT / "docs" / "clients"
_IN_CAMPAIGNS = ("franz-go", "kafkajs", "spark")
"""Clients tested only in campaigns, because they download packages or start Spark."""


@pytest.fixture(scope="module")
def client_files(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The files that the two commands of docs/security.md create for the user admin."""
    folder = tmp_path_factory.mktemp("pages") / "kafka-secure"
    port = free_port()
    made = run_kafka_compat("security", "init", str(folder), "--port", str(port))
    assert made.returncode == 0, made.stderr
    broker = KafkaCompatBroker(
        tmp_path_factory.mktemp("broker"), port=port, arguments=[str(folder / "server.properties")]
    )
    broker.overrides = {"group.initial.rebalance.delay.ms": "0"}
    broker.start()
    yield folder / "clients" / "admin"
    broker.stop()


def _program(page: str, language: str) -> str:
    """The first program in `language` on a page."""
    found = re.search(rf"^```{language}\n(.*?)^```$", (_PAGES / page).read_text(), re.MULTILINE | re.DOTALL)
    assert found is not None
    return found[1]


def _python(page: str, place: Path) -> list[str]:
    (place / "example.py").write_text(_program(page, "python"))
    return [sys.executable, "example.py"]


def _spark(page: str, place: Path) -> list[str]:
    packages = '"spark.jars.packages", f"org.apache.spark:spark-sql-kafka-0-10_2.13:{__version__}"'
    program = _program(page, "python")
    assert packages in program
    release = spark_release()
    folder = kafka_jars.cache_directory() / f"spark-{release.version}"
    copy_jars(folder, release)
    jars = ",".join(map(str, folder.glob("*.jar")))
    (place / "example.py").write_text(program.replace(packages, f'"spark.jars", "{jars}"'))
    return [sys.executable, "example.py"]


def _java(page: str, place: Path) -> list[str]:
    (place / "Example.java").write_text(_program(page, "java"))
    return ["java", "-cp", kafka_jars.class_path("3.9.1"), "Example.java"]


def _go(page: str, place: Path) -> list[str]:
    if shutil.which("go") is None:
        pytest.skip("needs Go")
    (place / "main.go").write_text(_program(page, "go"))
    (place / "access").mkdir()
    (place / "franz.go").rename(place / "access" / "franz.go")
    (place / "go.mod").write_text("module example\n\nrequire github.com/twmb/franz-go v1.22.2\n")
    subprocess.run(["go", "mod", "tidy"], cwd=place, check=True, capture_output=True, timeout=300)
    return ["go", "run", "."]


def _node(page: str, place: Path) -> list[str]:
    if shutil.which("npm") is None:
        pytest.skip("needs Node.js")
    (place / "example.js").write_text(_program(page, "js"))
    command = ["npm", "install", "--no-audit", "--no-fund", "kafkajs@2.2.4"]
    subprocess.run(command, cwd=place, check=True, capture_output=True, timeout=300)
    return ["node", "example.js"]


_RUNS: dict[str, Callable[[str, Path], list[str]]] = {
    "java": _java,
    "librdkafka": _python,
    "kafka-python": _python,
    "aiokafka": _python,
    "franz-go": _go,
    "kafkajs": _node,
    "spark": _spark,
}


def test_each_client_has_a_documentation_page() -> None:
    assert {page.stem for page in _PAGES.glob("*.md")} == _RUNS.keys()


@pytest.mark.timeout(600)
@pytest.mark.parametrize("client", _RUNS)
def test_the_program_on_each_page_prints_the_record_that_it_sent(
    client_files: Path, tmp_path: Path, client: str
) -> None:
    if client in _IN_CAMPAIGNS and not campaign.enabled():
        pytest.skip("in campaigns")
    place = tmp_path / "place"
    shutil.copytree(client_files, place)
    configuration = place / "librdkafka.conf"
    configuration.write_text(configuration.read_text().replace(str(client_files), str(place)))
    command = _RUNS[client](f"{client}.md", place)
    environment = {**os.environ, **QUICK_START}
    # Set for tests of the compiled form: Python would not find the modules beside the program.
    environment.pop("PYTHONSAFEPATH", None)
    ran = subprocess.run(command, cwd=place, env=environment, capture_output=True, text=True, timeout=300)
    assert ran.returncode == 0, ran.stderr
    assert "hello" in ran.stdout.splitlines(), ran.stdout + ran.stderr
