"""Every error of a flow file, with its line and its setting."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from kafka_compat.cli import main

GOOD = """\
settings:
  bootstrap-server: 127.0.0.1:9092
  kafka-option: {security.protocol: PLAINTEXT, isolation.level: read_committed}
jobs:
  archive:
    job: archive
    topic: [flights, airports]
    to: ./archive
    accept-loss: true
  by-carrier:
    job: windows
    topic: flights
    to: ./windows
    to-topic: by-carrier
    dead-letter-topic: dead
    schema: carrier STRING, distance DOUBLE
    window: 1h
    group-by: carrier
    sum: [distance]
"""


def checked(tmp_path: Path, capsys: Any, text: str, *arguments: str) -> tuple[int, list[str]]:
    """Return the exit code of `--check`, and the printed lines without the path."""
    file = tmp_path / "flow.yaml"
    file.write_text(text)
    code = main(["pipeline", "run", str(file), "--check", *arguments])
    output = capsys.readouterr()
    return code, [line.replace(f"{file}:", "") for line in (output.out + output.err).splitlines()]


def test_a_correct_file_has_no_errors(tmp_path: Path, capsys: Any) -> None:
    assert checked(tmp_path, capsys, GOOD, "--continuous") == (0, [" 2 jobs, no errors"])


def test_all_errors_are_reported_with_line_and_setting(tmp_path: Path, capsys: Any) -> None:
    text = """\
setings: {}
settings:
  bootstrap: 127.0.0.1:9092
jobs:
  a:
    job: archiv
  b:
    job: archive
    bootstrap-server: x:1
    topics: flights
    to: ./data
    offsets-per-batch: many
    accept-loss: perhaps
    to: ./other
  c:
    job: windows
    bootstrap-server: x:1
    topic: flights
    to: data/
    window: 1 week
    format: xml
    sum: {a: b}
    schema: [a INT]
  d:
    topic: flights
  e: archive
  f:
    job: latest
    bootstrap-server: x:1
    to: ./f
  g g:
    job: latest
    bootstrap-server: x:1
    topic: flights
    to: ./g
    continuous: true
"""
    code, lines = checked(tmp_path, capsys, text)
    assert code == 2
    for line, expected in zip(
        lines,
        [
            "1: setings: unknown (did you mean settings?); expected settings or jobs",
            "3: settings: bootstrap: no job has this setting (did you mean bootstrap-server?)",
            "6: a: job: unknown job 'archiv' (did you mean archive?); expected one of archive, audit",
            "10: b: topics: archive has no such setting (did you mean topic?)",
            "12: b: offsets-per-batch: many is not a whole number",
            "13: b: accept-loss: expected true or false",
            "14: b: to: given twice (first on line 11)",
            "19: c: to: data is the directory of b (line 11); each job needs its own",
            "20: c: window: 1 week is not a duration like 30s, 15m, 1h, 1d",
            "21: c: format: xml is not valid; expected json, csv, avro, protobuf",
            "23: c: schema: expected one value",
            "24: d: job: missing; expected one of archive, audit",
            "26: e: expected `job:` and the job's settings",
            "27: f: one of the arguments topic topic-pattern is required",
            "31: g g: not a name of a job; expected letters, digits, dots, - and _",
            "36: g g: continuous: not for the file; it is an option of `pipeline run`",
        ],
        strict=True,
    ):
        assert line.startswith(expected), (line, expected)


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("jobs: [", "1: not YAML: expected the node content"),
        ("jobs:\n  a: b: c\n", "2: not YAML: mapping values are not allowed here"),
        ("", "1: expected `jobs:` with at least one job"),
        ("jobs: {}\n", "1: jobs: expected at least one job"),
        ("settings: {}\n", "1: jobs: missing; expected at least one job"),
        ("jobs:\n- archive\n", "1: jobs: expected names with values"),
    ],
)
def test_a_file_without_jobs_is_reported(tmp_path: Path, capsys: Any, text: str, error: str) -> None:
    code, lines = checked(tmp_path, capsys, text)
    assert code == 2
    assert len(lines) == 1 and lines[0].startswith(error), lines


def test_a_directory_for_all_jobs_is_an_error(tmp_path: Path, capsys: Any) -> None:
    text = GOOD.replace("    to: ./archive\n", "").replace("    to: ./windows\n", "")
    text = text.replace("settings:\n", "settings:\n  to: ./data\n")
    code, lines = checked(tmp_path, capsys, text)
    assert (code, lines) == (
        2,
        ["2: by-carrier: to: data is the directory of archive (line 2); each job needs its own"],
    )


def test_a_job_that_cannot_run_continuously_is_reported(tmp_path: Path, capsys: Any) -> None:
    text = "jobs:\n  check:\n    job: report\n    log-dir: ./data\n"
    assert checked(tmp_path, capsys, text)[0] == 0
    code, lines = checked(tmp_path, capsys, text, "--continuous")
    assert (code, lines) == (
        2,
        ["3: check: job: report cannot run continuously; run it without --continuous"],
    )


def test_a_missing_file_is_reported(tmp_path: Path, capsys: Any) -> None:
    assert main(["pipeline", "run", str(tmp_path / "none.yaml")]) == 2
    assert "none.yaml cannot be read: No such file or directory." in capsys.readouterr().err
