"""The compiled build (`scripts/test --compiled`): all listed modules are compiled, and requests do not become
more expensive.
"""

from __future__ import annotations

import importlib
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.bench import instructions
from tests.packaging.compiled_modules import compiled_modules
from tests.support.compiled import COMPILED
from tests.support.servers import PROJECT

pytestmark = pytest.mark.skipif(not COMPILED, reason="tests the compiled build")


def test_every_listed_module_is_compiled() -> None:
    names = [
        ".".join(path.relative_to(PROJECT).with_suffix("").parts).removeprefix("kafka_compat.")
        for path in compiled_modules()
    ]
    found = {name: str(importlib.import_module(f"kafka_compat.{name}").__file__) for name in names}
    assert {name: file for name, file in found.items() if not file.endswith(".so")} == {}


def test_processes_started_by_tests_run_compiled_code() -> None:
    asked = [sys.executable, "-c", "import kafka_compat.storage.log.log as log; print(log.__file__)"]
    printed = subprocess.run(asked, cwd=PROJECT, check=True, capture_output=True, text=True, env=os.environ)
    assert printed.stdout.strip().endswith(".so")


def test_the_python_sources_are_installed_next_to_the_extensions() -> None:
    """Tracebacks show source lines, and a different Python version can run the sources."""
    log = importlib.import_module("kafka_compat.storage.log.log")
    folder = os.path.dirname(str(log.__file__))
    assert os.path.isfile(os.path.join(folder, "log.py"))


@pytest.mark.skipif(shutil.which("valgrind") is None, reason="needs valgrind")
@pytest.mark.skipif(
    sys.version != instructions.RECORDED_WITH, reason="the numbers were recorded with another interpreter"
)
def test_requests_execute_at_most_three_percent_more_instructions_than_recorded(tmp_path: Path) -> None:
    broker = instructions.CallgrindBroker(tmp_path, PROJECT, {}, compiled=True)
    counts = broker.measure(instructions.frames())
    grown = {name: n for name, n in counts.items() if n > 1.03 * instructions.RECORDED[name]}
    assert grown == {}
