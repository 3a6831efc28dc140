"""Reruns of tests that failed while other tests were running."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.second_chance import FEW_MAX, may_try_again

ROOT = Path(__file__).parents[2]
FLAKY = """
from pathlib import Path

def test_that_passes():
    assert not Path("again").exists(), "what passed is not run again"

def test_that_fails_once():
    again = Path("again").exists()
    Path("again").touch()
    assert again

def test_that_is_broken():
    assert {passes}
"""


def _run(folder: Path, *command: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    running = [sys.executable, "-m", *command]
    return subprocess.run(running, cwd=folder, env=environment, capture_output=True, text=True, check=False)


@pytest.mark.parametrize("passes", [True, False])
def test_a_test_that_fails_twice_has_failed(tmp_path: Path, passes: bool) -> None:
    (tmp_path / "test_flaky.py").write_text(FLAKY.format(passes=passes))
    first = _run(tmp_path, "pytest", "-p", "no:kafka_compat", "test_flaky.py")
    assert first.returncode == 1, first.stdout
    second = _run(tmp_path, "tests.support.second_chance", "-p", "no:kafka_compat", "test_flaky.py")
    assert second.returncode == (0 if passes else 1), second.stdout
    told = "Passed only when run alone:\n    test_flaky.py::test_that_fails_once"
    assert (told in second.stdout) is passes


def test_tests_are_not_repeated_after_data_loss_or_many_failures() -> None:
    few = [f"tests/cli/test_a.py::test_{number}" for number in range(FEW_MAX)]
    assert may_try_again(few)
    assert not may_try_again([*few, "tests/cli/test_b.py::test"])
    assert not may_try_again(["tests/durability/test_kill.py::test"])
    assert not may_try_again([])
