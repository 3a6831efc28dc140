"""The outcomes in the JSON lines of `go tool test2json`. No I/O."""

from __future__ import annotations

import json
from collections.abc import Iterable

from tests.others.suite import Outcome

_OUTCOMES: dict[str, Outcome] = {"pass": "passed", "fail": "failed", "skip": "skipped"}


def outcomes(lines: Iterable[str]) -> dict[str, Outcome]:
    """Return the outcome of each test and subtest. A test that started and did not end (because of a panic or
    a timeout) has failed.
    """
    found: dict[str, Outcome] = {}
    for line in lines:
        try:
            event = json.loads(line)
        except ValueError:
            continue  # output that bypasses the test framework
        test, action = event.get("Test"), event.get("Action")
        if test is None:
            continue
        if action == "run":
            found[test] = "failed"
        elif action in _OUTCOMES:
            found[test] = _OUTCOMES[action]
    return found
