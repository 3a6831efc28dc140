"""Test suites of users, run in their own process."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from pathlib import Path

PROJECT = Path(__file__).parents[2]


def run(folder: Path, text: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run pytest on one test file, like a user with the package installed."""
    (folder / "test_it.py").write_text(textwrap.dedent(text))
    (folder / "pytest.ini").write_text("[pytest]\n")
    return subprocess.run(
        [sys.executable, "-m", "pytest", "-q", *arguments],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(PROJECT), "PYTEST_ADDOPTS": ""},
        capture_output=True,
        text=True,
    )
