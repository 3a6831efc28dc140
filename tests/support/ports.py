"""Free TCP ports that remain reserved when their server restarts."""

from __future__ import annotations

from kafka_compat.testing import broker_process

_given: set[int] = set()


def free_port() -> int:
    """Return an unused port on 127.0.0.1 that this process has not returned before."""
    return adjacent_ports(1)


def adjacent_ports(count: int) -> int:
    """Return the first of `count` consecutive ports that are unused and were not returned before."""
    for _ in range(1000):
        first = broker_process.adjacent_ports(count)
        found = range(first, first + count)
        if not _given.intersection(found):
            _given.update(found)
            return first
    raise RuntimeError(f"no {count} consecutive free ports")
