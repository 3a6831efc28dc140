"""What becomes of scenarios that fail, and of reports of librdkafka's tests."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests.others import librdkafka, scenarios
from tests.others.program import Program


def test_a_scenario_that_fails_leaves_its_name_and_traceback(tmp_path: Path) -> None:
    def failing(directory: Path) -> None:
        assert directory.is_dir()
        raise ValueError("no record")

    outcomes = scenarios.play({"one fails": failing, "one passes": lambda directory: None}, tmp_path)
    assert outcomes == {"one fails": "failed", "one passes": "passed"}
    text = (tmp_path / "1" / "failure.txt").read_text()
    assert text.startswith("one fails\nTraceback")
    assert "ValueError: no record" in text


def test_output_is_awaited_in_its_order(tmp_path: Path) -> None:
    code = "print('first 1'); print('second'); print('first 2')"
    program = Program(tmp_path / "log", [sys.executable, "-c", code])
    program.await_output("first .", "first 2")
    assert program.end() == "first 1\nsecond\nfirst 2\n"
    with pytest.raises(AssertionError, match="ended before third"):
        program.await_output("third")


def test_reports_of_librdkafka_contain_tests_that_ran_only() -> None:
    tests = {
        "<MAIN>": {"state": "PASSED", "duration": 9.0},
        "0001_multiobj": {"state": "PASSED", "duration": 1.5},
        "0004_conf": {"state": "SKIPPED", "duration": 0.0},
        "0030_offset_commit": {"state": "FAILED", "duration": 2.0},
        "0039_event_dr": {"state": "RUNNING", "duration": 2.0},
    }
    assert librdkafka.outcomes({"tests": tests}) == {
        "0001_multiobj": "passed",
        "0030_offset_commit": "failed",
        "0039_event_dr": "failed",
    }
