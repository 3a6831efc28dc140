"""Entry points of the simulation for tests: `simulate` and `search`."""

import itertools
import os
import sys
import time
from collections.abc import Iterable, Mapping, Sized
from dataclasses import dataclass
from typing import Any, Self

from kafka_compat.testing.simulation.faults import Faults
from kafka_compat.testing.simulation.processes import Keepers, run_apart
from kafka_compat.testing.simulation.run import Main, Options, Report, run

_TOLD_LINES = 20
_TIMEOUT_S = 3600.0


class SimulationFailed(AssertionError):
    """Raised if a simulation fails. `report` contains the details."""

    def __init__(self, report: Report, name: str) -> None:
        last = "\n".join(report.journal[-_TOLD_LINES:])
        super().__init__(
            f"seed {report.seed} failed after {report.simulated_s:.3f} s of simulated time\n\n"
            f"{report.error}\n\n"
            f"Last lines of the journal:\n{last}\n\n"
            f"To repeat this run: simulate({report.seed}, {name})   (journal {report.digest[:16]})"
        )
        self.report = report


@dataclass(frozen=True)
class Found:
    """The result of a search. `failures` contains the reports of the failed seeds."""

    seeds: int
    failures: list[Report]
    took_s: float


def simulate(
    seed: int,
    main: Main,
    *,
    brokers: int = 1,
    settings: Mapping[str, object] | None = None,
    faults: Faults | None = None,
    timeout_s: float = _TIMEOUT_S,
    here: bool = False,
) -> Report:
    """Run `main(simulation)` and its brokers in simulated time, with faults determined by the seed. Runs with
    the same seed are identical.

    `settings` maps Kafka's names of broker settings to values. `main` is a module-level function, and may
    take `timeout_s` of simulated time. If `here` is true, it runs in this process, for a debugger; its
    behavior may differ if it depends on string hashes, or on earlier work of this process. Raises
    SimulationFailed if `main` fails.
    """
    options = _options(brokers, settings, faults, timeout_s)
    report = run(seed, main, options) if here else run_apart(seed, main, options)
    if not report.passed:
        raise SimulationFailed(report, getattr(main, "__name__", repr(main)))
    return report


def search(
    main: Main,
    seeds: Iterable[int] = range(1000),
    *,
    brokers: int = 1,
    settings: Mapping[str, object] | None = None,
    faults: Faults | None = None,
    timeout_s: float = _TIMEOUT_S,
    processes: int | None = None,
    stop_at: int | None = 1,
) -> Found:
    """Simulate many seeds, in `processes` processes (None: one per processor), until `stop_at` seeds have
    failed (None: run all). The other parameters are as in `simulate`. Show progress if stderr is a terminal.
    """
    options = _options(brokers, settings, faults, timeout_s)
    began_s = time.monotonic()
    failures: list[Report] = []
    done = 0
    total = len(seeds) if isinstance(seeds, Sized) else None
    left = iter(seeds)
    with Keepers(processes or os.cpu_count() or 1, main, options) as keepers, _Bar(total) as bar:
        # Run more seeds until enough runs have failed, and then wait for the runs in progress.
        given = itertools.takewhile(lambda _: stop_at is None or len(failures) < stop_at, left)
        for report in keepers.run(given):
            done += 1
            if not report.passed:
                failures.append(report)
            bar.tell(done, failures)
    failures.sort(key=lambda report: report.seed)
    return Found(done, failures, time.monotonic() - began_s)


def _options(
    brokers: int, settings: Mapping[str, object] | None, faults: Faults | None, timeout_s: float
) -> Options:
    if brokers < 1:
        raise ValueError(f"brokers={brokers}: a simulation has one or more")
    return Options(brokers, dict(settings or {}), faults or Faults(), timeout_s)


class _Bar:
    def __init__(self, total: int | None) -> None:
        self._total = total
        self._bar: Any = None
        self._task: Any = None

    def __enter__(self) -> Self:
        if sys.stderr.isatty():
            from rich import progress
            from rich.console import Console

            self._bar = progress.Progress(
                *progress.Progress.get_default_columns(),
                progress.TextColumn("{task.fields[text]}"),
                console=Console(file=sys.stderr),
            )
            self._task = self._bar.add_task("seeds", total=self._total, text="")
            self._bar.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._bar is not None:
            self._bar.stop()

    def tell(self, done: int, failures: list[Report]) -> None:
        """Show the numbers of completed and failed seeds."""
        if self._bar is not None:
            text = f"{len(failures)} failed" + (f", first seed {failures[0].seed}" if failures else "")
            self._bar.update(self._task, completed=done, text=text)
