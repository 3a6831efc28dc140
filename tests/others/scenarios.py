"""Scenarios: what a program of another project must do, each with a name that says what it shows."""

from __future__ import annotations

import functools
import traceback
from collections.abc import Callable, Mapping
from pathlib import Path

from tests.others.servers import SMALL, one_broker
from tests.others.suite import Outcome, Outcomes, Side
from tests.support.servers import Server

Scenario = Callable[[Path], None]
"""Plays a scenario, whose files go to the directory. Raises an exception if the program does not do what it
must.
"""
BrokerScenario = Callable[[Server, Path], None]
"""A scenario on a running broker."""


def play(scenarios: Mapping[str, Scenario], directory: Path) -> Outcomes:
    """Play every scenario. If one fails, its traceback is written to failure.txt in its directory."""
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


def play_on_one_broker(
    scenarios: Mapping[str, BrokerScenario],
    side: Side,
    directory: Path,
    settings: Mapping[str, str] = SMALL,
    *,
    kraft: bool = True,
) -> Outcomes:
    """Start one broker of a side, and play every scenario on it."""
    with one_broker(side, directory / "broker", settings, kraft=kraft) as broker:
        bound = {name: functools.partial(scenario, broker) for name, scenario in scenarios.items()}
        return play(bound, directory)
