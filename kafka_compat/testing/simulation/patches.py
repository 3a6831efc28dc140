"""Time, chance and sockets of a simulation in the place of the machine's, wherever a module has them.

What stands in asks whether a simulation is running, and is the real one where none is: a module that is
imported in a simulation may keep it. Real ones are put back at the end.
"""

from __future__ import annotations

import contextlib
import gc
import os
import random
import socket
import sys
import time
from collections.abc import Callable, Iterator
from types import ModuleType
from typing import TYPE_CHECKING, Any

from kafka_compat.testing.simulation.sockets import SimulatedSocket

if TYPE_CHECKING:
    from kafka_compat.testing.simulation.loop import SimulatedLoop


class _Running:
    """The simulation of this process, if any is running."""

    loop: SimulatedLoop | None = None
    chance: random.Random


_NS = 1_000_000_000
_real_time, _real_time_ns = time.time, time.time_ns
_real_monotonic, _real_monotonic_ns = time.monotonic, time.monotonic_ns
_real_perf_counter, _real_perf_counter_ns = time.perf_counter, time.perf_counter_ns
_real_sleep, _real_urandom = time.sleep, os.urandom
_real_socket, _real_getaddrinfo = socket.socket, socket.getaddrinfo
_real_collect, _real_freeze, _real_set_threshold = gc.collect, gc.freeze, gc.set_threshold
_real_enable, _real_disable = gc.enable, gc.disable


def _time() -> float:
    return _real_time() if _Running.loop is None else _Running.loop.time_of_day_s()


def _time_ns() -> int:
    return _real_time_ns() if _Running.loop is None else int(_Running.loop.time_of_day_s() * _NS)


def _elapsed(real: Callable[[], float]) -> Callable[[], float]:
    return lambda: real() if _Running.loop is None else _Running.loop.time()


def _elapsed_ns(real: Callable[[], int]) -> Callable[[], int]:
    return lambda: real() if _Running.loop is None else int(_Running.loop.time() * _NS)


def _sleep(seconds: float) -> None:
    if _Running.loop is None:
        _real_sleep(seconds)
    else:
        _Running.loop.sleep(seconds)


def _urandom(size: int) -> bytes:
    return _real_urandom(size) if _Running.loop is None else _Running.chance.randbytes(size)


class _Socket:
    """A class, since some ask whether something is an instance of it."""

    def __new__(cls, *arguments: Any, **named: Any) -> Any:
        if _Running.loop is None:
            return _real_socket(*arguments, **named)
        return SimulatedSocket(_Running.loop.network, *arguments, **named)


def _getaddrinfo(*arguments: Any, **named: Any) -> Any:
    if _Running.loop is None:
        return _real_getaddrinfo(*arguments, **named)
    return _Running.loop.network.getaddrinfo(*arguments, **named)


def _unless_simulated(real: Callable[..., Any]) -> Callable[..., Any]:
    """The collector of garbage: when it runs must not depend on what was there before."""

    def collector(*arguments: Any, **named: Any) -> Any:
        return real(*arguments, **named) if _Running.loop is None else 0

    return collector


_STAND_INS: dict[int, tuple[Any, Any]] = {
    id(real): (real, stand_in)
    for real, stand_in in (
        (_real_time, _time),
        (_real_time_ns, _time_ns),
        (_real_monotonic, _elapsed(_real_monotonic)),
        (_real_monotonic_ns, _elapsed_ns(_real_monotonic_ns)),
        (_real_perf_counter, _elapsed(_real_perf_counter)),
        (_real_perf_counter_ns, _elapsed_ns(_real_perf_counter_ns)),
        (_real_sleep, _sleep),
        (_real_urandom, _urandom),
        (_real_socket, _Socket),
        (_real_getaddrinfo, _getaddrinfo),
        *((real, _unless_simulated(real)) for real in (_real_collect, _real_freeze, _real_set_threshold)),
        *((real, _unless_simulated(real)) for real in (_real_enable, _real_disable)),
    )
}
_OWN = __name__

_places: dict[int, tuple[ModuleType, list[tuple[str, Any, Any]]]] = {}
"""Of each module that was looked through, where real ones are, and what stands in for them."""


def _find_places() -> None:
    for name, module in list(sys.modules.items()):
        if id(module) in _places or name == _OWN or not isinstance(module, ModuleType):
            continue
        found = [
            (attribute, *_STAND_INS[id(value)])
            for attribute, value in list(vars(module).items())
            if id(value) in _STAND_INS and not attribute.startswith("_real_")
        ]
        _places[id(module)] = (module, found)


@contextlib.contextmanager
def simulated(loop: SimulatedLoop, seed: int) -> Iterator[None]:
    """Everything is the simulation's. RuntimeError where another one is running."""
    if _Running.loop is not None:
        raise RuntimeError("a simulation is running in this process already")
    _find_places()
    collects, state = gc.isenabled(), random.getstate()
    _real_disable()
    for module, found in _places.values():
        for attribute, _, stand_in in found:
            setattr(module, attribute, stand_in)
    _Running.loop, _Running.chance = loop, random.Random(f"{seed} urandom")
    random.seed(f"{seed} random")
    try:
        yield
    finally:
        _Running.loop = None
        random.setstate(state)
        for module, found in _places.values():
            for attribute, real, _ in found:
                setattr(module, attribute, real)
        if collects:
            _real_enable()
