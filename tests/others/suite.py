"""A test suite of another project: where it comes from, what it needs, and the outcomes of its tests."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

Side = Literal["ours", "genuine"]
SIDES: tuple[Side, ...] = ("ours", "genuine")

Outcome = Literal["passed", "failed", "skipped"]
Outcomes = Mapping[str, Outcome]
"""The outcome of each test, by the name that the suite gives it."""


class SuiteMissing(RuntimeError):
    """The suite cannot be run here. The message says what to install."""


class SuiteBroken(RuntimeError):
    """The suite ended without a result, for example because it does not compile. The message ends with its
    last output.
    """


@dataclass(frozen=True)
class Suite:
    """A test suite of another project."""

    name: str
    version: str
    source: str
    """The package that its tests come from, for the documentation."""
    servers: str
    """The servers that it runs against, for the documentation: "Kafka 4.4.0, one broker"."""
    run: Callable[[Side, Path], Outcomes]
    """Run the suite against new servers of one side, whose files go to the directory. Raises SuiteMissing and
    SuiteBroken.
    """
    link: str = ""
    """The home page of the project."""
    tests: str = "its own"
    """Whose tests run: "its own", or "scenarios" (see scenarios.py)."""
