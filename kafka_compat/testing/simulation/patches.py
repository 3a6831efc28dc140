"""Replace the machine's time, randomness and sockets with simulated ones, in every module that uses them.

A replacement calls the original unless a simulation is running on the current thread. Modules imported during
a simulation may therefore keep the replacement, and other threads of the process continue in real time. If
they were simulated too, they would consume the seed's randomness and advance the simulated clock with each
sleep, depending on the machine's scheduling. The originals are restored at the end.
"""

import contextlib
import gc
import os
import random
import socket
import sys
import time
from collections.abc import Callable, Iterator
from threading import get_ident
from types import ModuleType
from typing import Any

from kafka_compat.testing.simulation.loop import SimulatedLoop
from kafka_compat.testing.simulation.network import SimulatedSocket


class _Running:
    loop: SimulatedLoop | None = None
    thread = 0
    urandom: random.Random
    random: random.Random


def _loop() -> SimulatedLoop | None:
    return _Running.loop if _Running.loop is not None and get_ident() == _Running.thread else None


_NS = 1_000_000_000
_real_time, _real_time_ns = time.time, time.time_ns
_real_monotonic, _real_monotonic_ns = time.monotonic, time.monotonic_ns
_real_perf_counter, _real_perf_counter_ns = time.perf_counter, time.perf_counter_ns
_real_sleep, _real_urandom = time.sleep, os.urandom
_real_socket, _real_getaddrinfo = socket.socket, socket.getaddrinfo
_real_collect, _real_freeze, _real_set_threshold = gc.collect, gc.freeze, gc.set_threshold
_real_enable, _real_disable = gc.enable, gc.disable
_REAL_RANDOM: dict[str, Callable[..., Any]] = {
    name: function
    for name, function in vars(random).items()
    if isinstance(getattr(function, "__self__", None), random.Random) and not name.startswith("_")
}


def _instead(real: Callable[..., Any], simulated: Callable[..., Any]) -> Callable[..., Any]:
    """Return a replacement for `real` that calls `simulated` with the loop if a simulation is running."""

    def called(*arguments: Any, **named: Any) -> Any:
        loop = _loop()
        return real(*arguments, **named) if loop is None else simulated(loop, *arguments, **named)

    return called


def _elapsed_ns(loop: SimulatedLoop) -> int:
    return int(loop.time() * _NS)


def _chance(name: str) -> Callable[..., Any]:
    return lambda _, *arguments, **named: getattr(_Running.random, name)(*arguments, **named)


class _SocketType(type):
    def __instancecheck__(cls, instance: object) -> bool:
        return isinstance(instance, _real_socket)


class _Socket(metaclass=_SocketType):
    """Replacement for socket.socket. It must be a class, because some code checks isinstance."""

    def __new__(cls, *arguments: Any, **named: Any) -> Any:
        if (loop := _loop()) is None:
            return _real_socket(*arguments, **named)
        return SimulatedSocket(loop.network, *arguments, **named)


def _unless_simulated(real: Callable[..., Any]) -> Callable[..., Any]:
    """Return a replacement for a function of the gc module. During a simulation, it does nothing, on all
    threads, because collections must not depend on earlier garbage.
    """

    def collector(*arguments: Any, **named: Any) -> Any:
        return real(*arguments, **named) if _Running.loop is None else 0

    return collector


_SIMULATED: tuple[tuple[Callable[..., Any], Callable[..., Any]], ...] = (
    (_real_time, SimulatedLoop.time_of_day_s),
    (_real_time_ns, lambda loop: int(loop.time_of_day_s() * _NS)),
    *((real, SimulatedLoop.time) for real in (_real_monotonic, _real_perf_counter)),
    *((real, _elapsed_ns) for real in (_real_monotonic_ns, _real_perf_counter_ns)),
    (_real_sleep, SimulatedLoop.sleep),
    (_real_urandom, lambda loop, size: _Running.urandom.randbytes(size)),
    (_real_getaddrinfo, lambda loop, *place, **hints: loop.network.getaddrinfo(*place, **hints)),
    *((real, _chance(name)) for name, real in _REAL_RANDOM.items()),
)
_STAND_INS: dict[int, tuple[Any, Any]] = {
    id(real): (real, stand_in)
    for real, stand_in in (
        (_real_socket, _Socket),
        *((real, _unless_simulated(real)) for real in (_real_collect, _real_freeze, _real_set_threshold)),
        *((real, _unless_simulated(real)) for real in (_real_enable, _real_disable)),
        *((real, _instead(real, simulated)) for real, simulated in _SIMULATED),
    )
}
_OWN = __name__

_places: dict[int, tuple[ModuleType, list[tuple[str, Any, Any]]]] = {}
"""Maps the id() of each scanned module to its attributes to replace: (name, original, replacement)."""


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
    """Install all replacements for a `with` block. Raises RuntimeError during another simulation."""
    if _Running.loop is not None:
        raise RuntimeError("a simulation is running in this process already")
    _find_places()
    collects = gc.isenabled()
    _real_disable()
    for module, found in _places.values():
        for attribute, _, stand_in in found:
            setattr(module, attribute, stand_in)
    _Running.urandom = random.Random(f"{seed} urandom")
    _Running.random = random.Random(f"{seed} random")
    _Running.thread, _Running.loop = get_ident(), loop
    try:
        yield
    finally:
        _Running.loop = None
        for module, found in _places.values():
            for attribute, real, _ in found:
                setattr(module, attribute, real)
        if collects:
            _real_enable()
