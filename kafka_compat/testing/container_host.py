"""The name or address at which containers reach this machine."""

import contextlib
import socket
import sys
from typing import Final

_DOCKER_DESKTOP: Final = "host.docker.internal"
_OUTSIDE: Final = "192.0.2.1"
"""An address in a network that is reserved for documentation (RFC 5737)."""
_ANY_PORT: Final = 9


def container_host() -> str:
    """Return the name or address. Raises OSError if this machine has no network."""
    if not sys.platform.startswith("linux"):
        # Docker runs containers in a virtual machine, where this name stands for the host.
        return _DOCKER_DESKTOP
    from kafka_compat.network import routes

    found = routes.read()
    networks = () if found is None else sorted(found.networks, key=str)
    for destination in (_OUTSIDE, *(str(network[1]) for network in networks if network.version == 4)):
        with contextlib.suppress(OSError):
            return _own_address(destination)
    raise OSError("this machine has no network that containers could use")


def _own_address(destination: str) -> str:
    """Return the address of this machine in the direction of `destination`. Nothing is sent."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        probe.connect((destination, _ANY_PORT))
        return str(probe.getsockname()[0])
