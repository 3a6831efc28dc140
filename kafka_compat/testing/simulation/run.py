"""Run one seed of a simulation in this process."""

import contextlib
import gc
import logging
import sys
import time
import traceback
import warnings
from collections.abc import Callable, Coroutine, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from kafka_compat.testing.simulation.faults import Faults
from kafka_compat.testing.simulation.loop import SimulatedLoop
from kafka_compat.testing.simulation.patches import simulated
from kafka_compat.testing.simulation.simulation import Simulation


@contextlib.contextmanager
def stamped() -> Iterator[None]:
    """If aiokafka is installed, make its producers set timestamps with time.time, because its C extension
    reads a clock that cannot be replaced.
    """
    try:
        from aiokafka.producer.message_accumulator import BatchBuilder
    except ImportError:
        yield
        return
    real = BatchBuilder.append

    def append(self: Any, *, timestamp: int | None, **named: Any) -> Any:
        if timestamp is None:
            timestamp = int(time.time() * 1000)
        return real(self, timestamp=timestamp, **named)

    BatchBuilder.append = append
    try:
        yield
    finally:
        BatchBuilder.append = real


Main = Callable[[Simulation], Coroutine[Any, Any, None]]


@dataclass(frozen=True)
class Options:
    """Parameters of a simulation, except its seed and program."""

    brokers: int = 1
    settings: Mapping[str, object] = field(default_factory=dict)
    faults: Faults = field(default_factory=Faults)
    timeout_s: float = 3600.0


@dataclass(frozen=True)
class Report:
    """Result of a simulation. Runs with the same digest are identical, to the byte and the microsecond."""

    seed: int
    simulated_s: float
    steps: int
    digest: str
    journal: list[str]
    error: str | None
    """The exception of `main`, with its traceback, or None if `main` returned."""

    @property
    def passed(self) -> bool:
        """Whether `main` returned normally."""
        return self.error is None


def run(seed: int, main: Main, options: Options, *, with_journal: bool = True) -> Report:
    """Run a simulation, and return its report. If the simulation fails, the report includes the journal."""
    loop = SimulatedLoop(seed, options.timeout_s)
    error = None
    # Enter `stamped` first, so that `simulated` also patches the modules that `stamped` imports.
    with stamped(), simulated(loop, seed):
        simulation = Simulation(loop, seed, options.brokers, options.settings, options.faults)
        try:
            loop.run_until_complete(simulation.run(main))
        except Exception as raised:
            error = "".join(traceback.format_exception(raised)).rstrip()
        del simulation
    journal = loop.journal
    lines = journal.lines() if with_journal or error is not None else []
    _forget(loop)
    return Report(seed, loop.time(), loop.steps, journal.digest, lines, error)


def _forget(loop: SimulatedLoop) -> None:
    with _silence():
        left = loop.abandon()
        loop._ready.clear()
        loop._scheduled.clear()
        loop.close()
        del left


@contextlib.contextmanager
def _silence() -> Any:
    heard, sys.unraisablehook = sys.unraisablehook, lambda _: None
    logged = logging.root.manager.disable
    logging.disable(logging.CRITICAL)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
            gc.collect()
    finally:
        logging.disable(logged)
        sys.unraisablehook = heard
