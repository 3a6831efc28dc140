"""`python -m tests.others SUITE DIRECTORY [SIDE]` runs one suite on one side (default: ours) and prints the
failed tests. All output stays in the directory.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import cast

from tests.others.comparison import counts
from tests.others.suite import SIDES, Side
from tests.others.suites import SUITES


def main(arguments: list[str]) -> int:
    """Run the suite. Return the exit code."""
    suites = {suite.name: suite for suite in SUITES}
    if (
        len(arguments) not in (2, 3)
        or arguments[0] not in suites
        or (arguments[2:] and arguments[2] not in SIDES)
    ):
        print(__doc__, f"Suites: {', '.join(suites)}", sep="\n", file=sys.stderr)
        return 2
    suite, directory, side = suites[arguments[0]], Path(arguments[1]), (*arguments, "ours")[2]
    directory.mkdir(parents=True, exist_ok=True)
    outcomes = suite.run(cast(Side, side), directory)
    (directory / "outcomes.json").write_text(json.dumps(outcomes, indent=1))
    for name in sorted(name for name, outcome in outcomes.items() if outcome == "failed"):
        print("failed:", name)
    print(counts(outcomes))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
