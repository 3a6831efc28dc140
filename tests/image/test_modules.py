"""Testcontainers' own modules, unchanged: they start this image, and produced records are consumed."""

from __future__ import annotations

import functools
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support import kafka_jars, node_modules

HERE = Path(__file__).parent
PAGE = HERE.parent.parent / "docs" / "testing.md"
PYTHON_MODULES = ("testcontainers==4.15.0", "confluent-kafka==2.16.1", "packaging")


def run(*command: str | Path, image: str, folder: Path = HERE) -> str:
    """Run the program, which must exit with 0, and return its output."""
    # Testcontainers' cleanup container uses an image that is not available everywhere.
    environment = {**os.environ, "KAFKA_IMAGE": image, "TESTCONTAINERS_RYUK_DISABLED": "true"}
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=540)
    assert done.returncode == 0, f"{done.stdout[-6000:]}{done.stderr[-6000:]}"
    return done.stdout


@functools.cache
def python() -> Path:
    """A Python environment with testcontainers, whose dependencies this project does not have."""
    place = kafka_jars.cache_directory() / "testcontainers" / "-".join(PYTHON_MODULES)
    program = place / "bin" / "python"
    done = place / "done"
    if not done.exists():
        shutil.rmtree(place, ignore_errors=True)
        subprocess.run([sys.executable, "-m", "venv", place], check=True)
        subprocess.run([program, "-m", "pip", "install", "--quiet", *PYTHON_MODULES], check=True)
        done.touch()
    return program


def needs(*programs: str) -> None:
    """Skip the test if one of these programs is not on the PATH."""
    for program in programs:
        if shutil.which(program) is None:
            pytest.skip(f"{program} is not installed")


@pytest.mark.timeout(600)
def test_testcontainers_for_python_starts_the_image(image: str) -> None:
    assert run(python(), "python/modules.py", image=image) == "zookeeper: EWR JFK LGA\nkraft: EWR JFK LGA\n"


@pytest.mark.timeout(600)
def test_testcontainers_for_node_starts_the_image(image: str) -> None:
    if (lacking := node_modules.missing()) is not None:
        pytest.skip(lacking)
    program = node_modules.command(HERE / "node" / "modules.js")
    assert run(*program, image=image) == "zookeeper: EWR JFK LGA\nkraft: EWR JFK LGA\n"


@pytest.mark.timeout(600)
def test_testcontainers_for_go_starts_the_image(image: str) -> None:
    needs("go")
    assert "PASS: TestProducedIsConsumed" in run(
        "go", "test", "-count=1", "-v", "./...", image=image, folder=HERE / "go"
    )


@pytest.mark.timeout(600)
def test_testcontainers_for_java_starts_the_image(image: str, tmp_path: Path) -> None:
    """The test also runs the JUnit 5 test of docs/testing.md."""
    needs("java", "mvn")
    shutil.copytree(HERE / "java", tmp_path, dirs_exist_ok=True)
    example = PAGE.read_text().partition("```java\n")[2].partition("```")[0]
    (tmp_path / "src" / "test" / "java" / "FlightsTest.java").write_text(example)
    told = run("mvn", "-B", "test", image=image, folder=tmp_path)
    assert "Tests run: 6, Failures: 0, Errors: 0, Skipped: 0" in told, told[-4000:]
