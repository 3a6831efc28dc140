"""A separate directory for temporary files in each test, because tests run concurrently."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.testing.left_over import put_temporary_files_in


@pytest.fixture(autouse=True)
def temporary(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The directory in which brokers, also in other processes, store their data."""
    folder = tmp_path_factory.mktemp("temporary")
    put_temporary_files_in(folder, monkeypatch)
    return folder
