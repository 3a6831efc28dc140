"""Free TCP ports that stay usable over a restart of the server that gets them."""

from __future__ import annotations

import random
import socket

_LOWEST, _HIGHEST = 10_000, 30_000
"""Below Linux's range for outgoing connections, so that no client takes the port between two starts."""

_given: set[int] = set()


def free_port() -> int:
    """A port on 127.0.0.1 that nobody listens on and that this process has not given out before."""
    return adjacent_ports(1)


def adjacent_ports(count: int) -> int:
    """The first of so many such ports in a row."""
    for _ in range(1000):
        first = random.SystemRandom().randrange(_LOWEST, _HIGHEST)
        ports = range(first, first + count)
        if not _given.intersection(ports) and all(_is_free(port) for port in ports):
            _given.update(ports)
            return first
    raise RuntimeError(f"no {count} free ports between {_LOWEST} and {_HIGHEST}")


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True
