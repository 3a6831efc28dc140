"""Free TCP ports that stay usable over a restart of the server that gets them."""

from __future__ import annotations

from kafka_compat.testing import broker

_given: set[int] = set()


def free_port() -> int:
    """A port on 127.0.0.1 that nobody listens on and that this process has not given out before."""
    return adjacent_ports(1)


def adjacent_ports(count: int) -> int:
    """The first of so many such ports in a row."""
    for _ in range(1000):
        first = broker.adjacent_ports(count)
        found = range(first, first + count)
        if not _given.intersection(found):
            _given.update(found)
            return first
    raise RuntimeError(f"no {count} free ports that were not given out before")
