"""Each test has a folder for temporary files of its own, as others run at the same time."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.testing.left_over import put_temporary_files_in


@pytest.fixture(autouse=True)
def temporary(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where brokers put their data, those of other processes too."""
    folder = tmp_path_factory.mktemp("temporary")
    put_temporary_files_in(folder, monkeypatch)
    return folder
