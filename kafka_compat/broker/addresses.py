"""Where clients, and other brokers, are told that brokers listen (advertised.listeners)."""

from __future__ import annotations

import socket
from collections.abc import Mapping
from typing import Protocol

from kafka_compat.metadata.cache import BrokerMetadata
from kafka_compat.network.server import EVERY_INTERFACE


class Dialled(Protocol):
    """What counts of the connection that a client came by."""

    listener_name: str
    local_host: str
    local_port: int


class Addresses:
    """What one broker tells. `advertised` and `bound` are by the listener's name."""

    def __init__(
        self,
        broker_id: int,
        advertised: Mapping[str, tuple[str, int]],
        bound: Mapping[str, tuple[str, int]],
    ) -> None:
        self._broker_id = broker_id
        self._advertised = advertised
        self._bound = bound

    def own(self) -> dict[str, tuple[str, int]]:
        """What other brokers and tools are told of this broker, without a connection to look at."""
        return {name: self._told(name) for name in self._bound}

    def _told(self, listener: str) -> tuple[str, int]:
        told = self._advertised.get(listener)
        if told is not None:
            return told
        host, port = self._bound[listener]
        return (socket.gethostname() if host in EVERY_INTERFACE else host), port

    def address_for(self, broker: BrokerMetadata, connection: Dialled) -> tuple[str, int]:
        """Where a client that came by `connection` finds `broker`."""
        name = connection.listener_name
        if broker.broker_id == self._broker_id and name not in self._advertised:
            if self._bound[name][0] in EVERY_INTERFACE:
                # The address that this client dialled works for it, whatever other names the machine has.
                return connection.local_host, connection.local_port
            return self._bound[name]
        return broker.endpoints.get(name) or next(iter(broker.endpoints.values()))
