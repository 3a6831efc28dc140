"""Repeated collections of the tests: they must be identical, because pytest-xdist's workers each collect the
tests.
"""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from tests.support import campaign
from tests.support.servers import PROJECT


def collected(hash_seed: int) -> list[str]:
    result = subprocess.run(
        [sys.executable, "-m", "pytest", "--collect-only", "-q", "-p", "no:cacheprovider", "tests"],
        capture_output=True,
        text=True,
        cwd=PROJECT,
        env={**os.environ, "PYTHONHASHSEED": str(hash_seed)},
        timeout=240,
    )
    assert result.returncode == 0, result.stdout + result.stderr
    names = [line for line in result.stdout.splitlines() if "::" in line]
    assert len(names) > 1000
    return names


@pytest.mark.skipif(not campaign.enabled(), reason="xdist fails if collections differ: with --campaign")
def test_two_test_collections_are_identical() -> None:
    # The first collection takes seconds, so the second one starts at a different time.
    assert collected(1) == collected(2)
