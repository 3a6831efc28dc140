"""Reruns failed tests alone: `python -m tests.support.second_chance PYTEST-ARGUMENTS`.

In normal runs, three test files share two cores with everything that they start, including JVMs and a
compiler. If the machine has other load too, tests that measure time and clients with timeouts fail
occasionally. Tests that fail twice are broken. Tests that pass alone are listed at the end, and must be
fixed.

Tests are not rerun

- if they check for lost records, because one loss in a hundred runs is a bug;
- if more than FEW_MAX tests failed, which is not a coincidence.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

FEW_MAX = 5
CACHE = ".pytest_cache/v/cache/lastfailed"
ONE_CHANCE = (
    "tests/disks/",
    "tests/durability/",
    "tests/faults/",
    "tests/history/",
    "tests/storage/",
    "tests/transactions/",
    "tests/upkeep/",
)


def may_try_again(failed: list[str]) -> bool:
    """Return whether these tests, given as pytest ids, may have failed by coincidence."""
    return 0 < len(failed) <= FEW_MAX and not any(name.startswith(ONE_CHANCE) for name in failed)


def failed_before(root: Path) -> list[str]:
    """Return the tests that failed in the last run of pytest in this directory."""
    try:
        return sorted(json.loads((root / CACHE).read_text()))
    except FileNotFoundError:
        return []


def main(arguments: list[str]) -> int:
    """Rerun the failed tests, and return the exit code: 0 if all of them pass."""
    failed = failed_before(Path.cwd())
    if not may_try_again(failed):
        print(f"{len(failed)} tests failed: too many, or tests that are never rerun")
        return 1
    print(f"\n== {len(failed)} failed while other tests were running: rerunning them alone", flush=True)
    again = [sys.executable, "-m", "pytest", "--last-failed", "--last-failed-no-failures=none", *arguments]
    status = subprocess.run(again, check=False).returncode
    if status == 0:
        print("Passed only when run alone:", *failed, sep="\n    ")
    return status


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
