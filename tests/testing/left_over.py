"""What brokers for tests must not leave behind."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest

from kafka_compat.cli.ephemeral import PREFIX
from tests.support.process import wait_until


def put_temporary_files_in(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Those of this process, and of those that it starts."""
    monkeypatch.setenv("TMPDIR", str(folder))
    monkeypatch.setattr(tempfile, "tempdir", None)


def folders() -> set[Path]:
    """Those for the data of such brokers."""
    return set(Path(tempfile.gettempdir()).glob(f"{PREFIX}*"))


def is_alive(pid: int) -> bool:
    """Whether there is such a process, other than one that has ended and was not waited for."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except FileNotFoundError:
        return False


def wait_gone(pid: int) -> None:
    """Wait until it has ended."""
    wait_until(lambda: not is_alive(pid), 20, f"process {pid} ends")
