"""Data and processes that brokers for tests must not leave behind."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest

from kafka_compat.cli.ephemeral import PREFIX
from tests.support.process import wait_until


def put_temporary_files_in(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Set the directory for temporary files of this process and its child processes."""
    monkeypatch.setenv("TMPDIR", str(folder))
    monkeypatch.setattr(tempfile, "tempdir", None)


def folders() -> set[Path]:
    """Return the data directories of brokers for tests."""
    return set(Path(tempfile.gettempdir()).glob(f"{PREFIX}*"))


def is_alive(pid: int) -> bool:
    """Return whether the process is running. A zombie does not count."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except FileNotFoundError:
        return False


def wait_gone(pid: int) -> None:
    """Wait until the process has exited."""
    wait_until(lambda: not is_alive(pid), 20, f"exit of process {pid}")
