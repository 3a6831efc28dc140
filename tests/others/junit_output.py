"""The outcomes in a report in JUnit's XML format, as pytest and Maven write it. No I/O."""

from __future__ import annotations

from xml.etree import ElementTree

from tests.others.suite import Outcome


def outcomes(text: str) -> dict[str, Outcome]:
    """Return the outcome of each test, by class and name."""
    found: dict[str, Outcome] = {}
    for case in ElementTree.fromstring(text).iter("testcase"):
        name = ".".join(filter(None, (case.get("classname"), case.get("name"))))
        kinds = {part.tag for part in case}
        outcome: Outcome = "passed"
        if kinds & {"failure", "error"}:
            outcome = "failed"
        elif "skipped" in kinds:
            outcome = "skipped"
        # pytest reports a test whose cleanup fails twice.
        found[name] = "failed" if found.get(name) == "failed" else outcome
    return found
