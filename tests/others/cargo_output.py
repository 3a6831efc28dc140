"""The outcomes in the output of `cargo test`. No I/O."""

from __future__ import annotations

import re
from collections.abc import Iterable

from tests.others.suite import Outcome

_OUTCOMES: dict[str, Outcome] = {"ok": "passed", "FAILED": "failed", "ignored": "skipped"}
_TARGET = re.compile(r"^\s+Running (?:unittests )?(\S+)\.rs\b")
_TEST = re.compile(r"^test (\S+)(?: - should panic)? \.\.\. (ok|FAILED|ignored)\b")


def outcomes(lines: Iterable[str]) -> dict[str, Outcome]:
    """Return the outcome of each test, by source file and name."""
    found: dict[str, Outcome] = {}
    target = ""
    for line in lines:
        if match := _TARGET.match(line):
            target = match[1]
        elif match := _TEST.match(line):
            found[f"{target}::{match[1]}"] = _OUTCOMES[match[2]]
    return found
