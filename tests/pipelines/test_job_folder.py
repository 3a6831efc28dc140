"""The directory of a job, without Spark."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from kafka_compat.pipelines.errors import NotStarted
from kafka_compat.pipelines.job_folder import JobFolder

SETTINGS = {"topic": "t", "streams": False}


@pytest.mark.parametrize("left", [["_lock"], ["_lock", "_log/"], ["_lock", "_log/", "__job.json"]])
def test_a_startup_interrupted_by_a_kill_is_resumed(tmp_path: Path, left: list[str]) -> None:
    for name in left:
        if name.endswith("/"):
            (tmp_path / name).mkdir()
        else:
            (tmp_path / name).write_text('{"id": "cut sho')
    folder = JobFolder(tmp_path, SETTINGS)
    job_id = folder.open()
    assert JobFolder(tmp_path, SETTINGS).open() == job_id
    assert json.loads((tmp_path / "_job.json").read_text())["topic"] == "t"


def test_a_directory_that_does_not_belong_to_a_job_is_not_changed(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("mine")
    with pytest.raises(NotStarted, match="not a job's directory"):
        JobFolder(tmp_path, SETTINGS).open()
    assert [path.name for path in tmp_path.iterdir()] == ["notes.txt"]
