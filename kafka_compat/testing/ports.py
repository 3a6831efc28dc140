"""Free ports in a row."""

from __future__ import annotations

import random
import socket

_LOWEST, _HIGHEST = 10_000, 30_000
"""Below the ports that systems give to clients, which would take one between two starts of a broker."""
_ATTEMPTS = 1000


def adjacent_ports(count: int) -> int:
    """The first of so many ports of 127.0.0.1 that nobody listens on. OSError when there are none."""
    chance = random.SystemRandom()
    for _ in range(_ATTEMPTS):
        first = chance.randrange(_LOWEST, _HIGHEST)
        if all(_is_free(port) for port in range(first, first + count)):
            return first
    raise OSError(f"no {count} free ports in a row between {_LOWEST} and {_HIGHEST}")


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True
