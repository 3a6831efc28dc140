"""Comparison of the outcomes of a suite on both sides. No I/O."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

from tests.others.suite import Outcomes


@dataclass(frozen=True)
class Comparison:
    """The outcomes of one suite on both sides."""

    ours: Outcomes
    genuine: Outcomes
    known: Mapping[str, str]
    """The decision about each test that may pass on Apache Kafka only."""

    @property
    def only_genuine(self) -> list[str]:
        """The tests that pass on Apache Kafka, and not here."""
        return [
            name
            for name, outcome in self.genuine.items()
            if outcome == "passed" and self.ours.get(name) != "passed"
        ]

    @property
    def unexpected(self) -> list[str]:
        """The tests that pass on Apache Kafka only, without a decision.

        A test that contains other tests fails with them: it needs no decision if all of its own that pass on
        Apache Kafka only have one.
        """
        found = set(self.only_genuine)
        return [
            name
            for name in self.only_genuine
            if name not in self.known
            and not any(other in self.known and other.startswith(f"{name}/") for other in found)
        ]

    @property
    def only_ours(self) -> list[str]:
        """The tests that pass here, and not on Apache Kafka."""
        return [
            name
            for name, outcome in self.ours.items()
            if outcome == "passed" and self.genuine.get(name) != "passed"
        ]


def counts(outcomes: Outcomes) -> dict[str, int]:
    """Return the number of tests by outcome."""
    found = Counter(outcomes.values())
    return {"passed": found["passed"], "failed": found["failed"], "skipped": found["skipped"]}
