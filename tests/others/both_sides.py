"""One suite on both sides: the outcomes, their comparison, and the result that the documentation shows."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

from tests.others import results
from tests.others.comparison import Comparison, counts
from tests.others.differences import KNOWN
from tests.others.suite import SIDES, Outcomes, Side, Suite


def run(suite: Suite, directory: Path, sides: Sequence[Side] = SIDES) -> dict[Side, Outcomes]:
    """Run a suite on some sides, one after the other. Print the counts, and write the outcomes of each side
    to a file. Raises as the suite.
    """
    found: dict[Side, Outcomes] = {}
    for side in sides:
        found[side] = suite.run(side, directory / side)
        (directory / f"{side}.json").write_text(json.dumps(found[side], indent=1))
        print(f"{suite.name} {suite.version} on {side}: {counts(found[side])}", flush=True)
    return found


def compare(suite: Suite, outcomes: dict[Side, Outcomes]) -> Comparison:
    """Compare the outcomes on both sides, print the differences, and write the result to results.json."""
    comparison = Comparison(outcomes["ours"], outcomes["genuine"], KNOWN.get(suite.name, {}))
    print("passed only on Apache Kafka:", comparison.only_genuine)
    print("passed only here:", comparison.only_ours)
    results.write(suite.name, results.result_of(suite, comparison))
    return comparison
