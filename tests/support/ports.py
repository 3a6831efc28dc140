"""Free TCP ports that stay usable over a restart of the server that gets them."""

from __future__ import annotations

import random
import socket

_LOWEST, _HIGHEST = 10_000, 30_000
"""Below Linux's range for outgoing connections, so that no client takes the port between two starts."""

_given: set[int] = set()


def free_port() -> int:
    """A port on 127.0.0.1 that nobody listens on and that this process has not given out before."""
    for _ in range(1000):
        port = random.SystemRandom().randrange(_LOWEST, _HIGHEST)
        if port in _given:
            continue
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
        _given.add(port)
        return port
    raise RuntimeError(f"no free port between {_LOWEST} and {_HIGHEST}")
