"""Kinds of faults in a simulation, and their frequencies."""

import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Self

_S_PER_MINUTE = 60.0


@dataclass(frozen=True)
class Faults:
    """Average numbers of faults per minute of simulated time (0: none), and the ranges of their durations.
    `delay_ms` is the range of network delays without faults.
    """

    delay_ms: tuple[float, float] = (0.1, 5.0)
    slow_network: float = 1.0
    """The network delay is `slow_ms` for a period of `slow_s` seconds."""
    slow_ms: tuple[float, float] = (20.0, 1500.0)
    slow_s: tuple[float, float] = (0.5, 5.0)
    dropped_connections: float = 2.0
    lost_answers: float = 2.0
    """The broker handles the request, but closes the connection instead of sending the response."""
    broker_kills: float = 0.5
    """The broker is killed (kill -9), and restarted after `down_s` seconds."""
    broker_pauses: float = 0.5
    """The broker is paused (SIGSTOP) for `pause_s` seconds."""
    process_kills: float = 0.5
    """A process that `Simulation.process` started is killed."""
    process_pauses: float = 0.5
    down_s: tuple[float, float] = (0.2, 8.0)
    pause_s: tuple[float, float] = (0.1, 15.0)

    @classmethod
    def none(cls) -> Self:
        """Return a configuration without faults."""
        never: Any = dict.fromkeys(KINDS, 0)
        return cls(**never)


KINDS = (
    "slow_network",
    "dropped_connections",
    "lost_answers",
    "broker_kills",
    "broker_pauses",
    "process_kills",
    "process_pauses",
)


class Bringer:
    """Trigger that calls `bring(kind)` for each kind of fault at random times. `after` schedules a call."""

    def __init__(
        self,
        faults: Faults,
        chance: random.Random,
        after: Callable[[float, Callable[[], None]], object],
        bring: Callable[[str], None],
    ) -> None:
        self._faults = faults
        self._chance = chance
        self._after = after
        self._bring = bring
        self._stopped = False

    def start(self) -> None:
        """Start triggering faults. Call this method only once."""
        for kind in KINDS:
            self._next(kind)

    def stop(self) -> None:
        """Stop triggering faults."""
        self._stopped = True

    def _next(self, kind: str) -> None:
        per_minute: float = getattr(self._faults, kind)
        if per_minute > 0:
            self._after(self._chance.expovariate(per_minute / _S_PER_MINUTE), lambda: self._come(kind))

    def _come(self, kind: str) -> None:
        if not self._stopped:
            self._bring(kind)
            self._next(kind)
