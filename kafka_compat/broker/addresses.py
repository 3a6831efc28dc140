"""Addresses of listeners: binding at startup, and addresses for clients (advertised.listeners)."""

from __future__ import annotations

import errno
import socket
from collections.abc import Mapping
from typing import TYPE_CHECKING

from kafka_compat.errors import StartupError
from kafka_compat.network.server import EVERY_INTERFACE

if TYPE_CHECKING:
    from kafka_compat.api.caller import Caller
    from kafka_compat.config import Listener
    from kafka_compat.metadata.cache import BrokerMetadata
    from kafka_compat.network.server import Server

_LOOPBACK = ("localhost", "127.0.0.1", "::1")


def bind(server: Server, listener: Listener, program: str, remedy: str) -> None:
    """Bind the address of a listener. If this fails, raise StartupError with the remedy; if the address is in
    use, the message also asks whether another `program` is running.
    """
    try:
        server.bind(listener)
    except OSError as error:
        question = f"Is another {program} running? " if error.errno == errno.EADDRINUSE else ""
        raise StartupError(
            f"cannot listen on {listener.name}://{listener.host}:{listener.port}: "
            f"{error.strerror or error}. {question}{remedy}"
        ) from error


def default_address(host: str, port: int) -> tuple[str, int]:
    """Return the address at which other machines reach a listener that is not advertised."""
    return (socket.gethostname() if host in EVERY_INTERFACE else host), port


class Addresses:
    """The advertised, published and bound addresses of one broker, by listener name."""

    def __init__(
        self,
        broker_id: int,
        advertised: Mapping[str, tuple[str, int]],
        bound: Mapping[str, tuple[str, int]],
        published: Mapping[str, tuple[str, int]] | None = None,
    ) -> None:
        """`published` contains addresses for clients outside the broker's networks (see `published`)."""
        self._broker_id = broker_id
        self._advertised = advertised
        self._bound = bound
        self._published = published or {}

    def own(self) -> dict[str, tuple[str, int]]:
        """Return this broker's advertised addresses for other brokers and tools, by listener name."""
        return {name: self._advertised_address(name) for name in self._bound}

    def _advertised_address(self, listener: str) -> tuple[str, int]:
        advertised = self._advertised.get(listener) or self._published.get(listener)
        if advertised is not None:
            return advertised
        return default_address(*self._bound[listener])

    def address_for(self, broker: BrokerMetadata, caller: Caller) -> tuple[str, int]:
        """Return the address of `broker` on the listener that `caller` is connected to."""
        name = caller.listener_name
        if broker.broker_id == self._broker_id and name not in self._advertised:
            if caller.local_host is None:
                return self._advertised_address(name)
            if self._bound[name][0] in EVERY_INTERFACE or name in self._published:
                # Return the address that the client used: other addresses may be unreachable for the client.
                return caller.local_host, caller.local_port
            return self._bound[name]
        endpoint = broker.endpoints.get(name) or next(iter(broker.endpoints.values()))
        published = self._published.get(name)
        if (
            published is not None
            and endpoint[0] == published[0]
            and endpoint[0] in _LOOPBACK
            and caller.local_host is not None
        ):
            # The other broker is in the same container, and the ports of both are as far apart inside as
            # outside. Return its address in the form that this client uses.
            return caller.local_host, endpoint[1] - published[1] + caller.local_port
        return endpoint
