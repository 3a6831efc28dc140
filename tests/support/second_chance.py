"""Has the tests that failed run once more, alone: `python -m tests.support.second_chance PYTEST-ARGUMENTS`.

In the everyday run three files of tests at a time share two cores with all that they start, JVMs and a
compiler among it; where the machine has other work too, a test that measures time, or a client that waits for
some, fails now and then. What fails in both runs is broken. What passes alone is named at the end, to be
mended.

There is no second chance

- for tests that look for lost records: one loss in a hundred runs is a loss;
- where more than FEW_MAX failed, which is no chance any more.
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
    """Whether what failed, as pytest's ids, may have failed by chance."""
    return 0 < len(failed) <= FEW_MAX and not any(name.startswith(ONE_CHANCE) for name in failed)


def failed_before(root: Path) -> list[str]:
    """The tests that failed in the last run of pytest in this folder."""
    try:
        return sorted(json.loads((root / CACHE).read_text()))
    except FileNotFoundError:
        return []


def main(arguments: list[str]) -> int:
    """The exit code: 0 where all that failed passes now."""
    failed = failed_before(Path.cwd())
    if not may_try_again(failed):
        print(f"{len(failed)} tests failed, which are too many or of those that have no second chance")
        return 1
    print(f"\n== {len(failed)} failed beside other tests: once more, alone", flush=True)
    again = [sys.executable, "-m", "pytest", "--last-failed", "--last-failed-no-failures=none", *arguments]
    status = subprocess.run(again, check=False).returncode
    if status == 0:
        print("Passed alone, and not beside others:", *failed, sep="\n    ")
    return status


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
