"""`python -m tests.others SUITE DIRECTORY [SIDE]` runs one suite on one side ("ours", the default, or
"genuine") and prints the failed tests. With "both", it also compares both sides, and writes results.json. All
output stays in the directory.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from tests.others import both_sides
from tests.others.suite import SIDES, Side
from tests.others.suites import SUITES

_CHOICES: dict[str, Sequence[Side]] = {"ours": ["ours"], "genuine": ["genuine"], "both": SIDES}


def main(arguments: list[str]) -> int:
    """Run the suite. Return the exit code."""
    suites = {suite.name: suite for suite in SUITES}
    name, directory, choice = (*arguments, "ours")[:3] if len(arguments) in (2, 3) else ("", "", "")
    if name not in suites or choice not in _CHOICES:
        print(__doc__, f"Suites: {', '.join(suites)}", sep="\n", file=sys.stderr)
        return 2
    suite = suites[name]
    Path(directory).mkdir(parents=True, exist_ok=True)
    outcomes = both_sides.run(suite, Path(directory), _CHOICES[choice])
    for side, found in outcomes.items():
        for test in sorted(test for test, outcome in found.items() if outcome == "failed"):
            print(f"failed on {side}: {test}")
    if choice == "both":
        return 1 if both_sides.compare(suite, outcomes).unexpected else 0
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
