"""Scenarios: what a program of another project must do, each with a name that says what it shows."""

from __future__ import annotations

import traceback
from collections.abc import Callable, Mapping
from pathlib import Path

from tests.others.suite import Outcome, Outcomes

Scenario = Callable[[Path], None]
"""Plays a scenario, whose files go to the directory. Raises an exception if the program does not do what it
must.
"""


def play(scenarios: Mapping[str, Scenario], directory: Path) -> Outcomes:
    """Play every scenario. The failure of each is written to failure.txt in its directory."""
    found: dict[str, Outcome] = {}
    for number, (name, scenario) in enumerate(scenarios.items(), 1):
        folder = directory / str(number)
        folder.mkdir(parents=True)
        try:
            scenario(folder)
            found[name] = "passed"
        except Exception:
            (folder / "failure.txt").write_text(f"{name}\n{traceback.format_exc()}")
            found[name] = "failed"
    return found
