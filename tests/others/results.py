"""results.json: the counts of the last campaign, by suite."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from tests.others.comparison import Comparison, counts
from tests.others.suite import Suite

FILE = Path(__file__).with_name("results.json")


@dataclass(frozen=True)
class Result:
    """The result of one suite in the last campaign."""

    version: str
    source: str
    link: str
    servers: str
    ours: dict[str, int]
    """Number of tests by outcome ("passed", "failed", "skipped")."""
    genuine: dict[str, int]
    only_genuine: list[str]
    """The tests that passed on Apache Kafka only."""
    tests: str = "its own"
    """Whose tests ran, as in `Suite`."""


def result_of(suite: Suite, comparison: Comparison) -> Result:
    """Return what results.json keeps of a comparison."""
    return Result(
        version=suite.version,
        source=suite.source,
        link=suite.link,
        servers=suite.servers,
        ours=counts(comparison.ours),
        genuine=counts(comparison.genuine),
        only_genuine=sorted(comparison.only_genuine),
        tests=suite.tests,
    )


def read() -> dict[str, Result]:
    """Return the results by suite."""
    if not FILE.exists():
        return {}
    kept: dict[str, Any] = json.loads(FILE.read_text())
    return {name: Result(**each) for name, each in kept.items()}


def write(name: str, result: Result) -> None:
    """Replace the result of a suite."""
    kept = {**read(), name: result}
    text = json.dumps({key: asdict(kept[key]) for key in sorted(kept)}, indent=1)
    FILE.write_text(f"{text}\n")
