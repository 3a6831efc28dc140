"""Addresses for clients outside the broker's networks, such as the published port of a container
(kafka.compat.published.listeners).

One listener then serves all clients. Clients in the networks of the container, and in the container itself,
receive the address to which they connected: the container's. Connections through a published port come from
the gateway of the container's network, or from other networks. These clients receive the published address.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from kafka_compat.network import routes
from kafka_compat.network.routes import Routes


class PublishedAddresses:
    """The published addresses of one broker, by listener name."""

    def __init__(
        self,
        published: Mapping[str, tuple[str, int]],
        read_routes: Callable[[], Routes | None] = routes.read,
    ) -> None:
        """`read_routes` is called for each connection, because a container can join networks at any time."""
        self._published = published
        self._read_routes = read_routes

    def reached_at(self, listener: str, peer: str, host: str, port: int) -> tuple[str, int]:
        """Return the address at which a client reached this broker. The connection of the client, on
        `listener`, comes from `peer` and ends at `host` and `port`.
        """
        published = self._published.get(listener)
        if published is None:
            return host, port
        try:
            address = routes.address_of(peer)
        except ValueError:
            return host, port
        # A container can also reach its own listener at its own address.
        if address.is_loopback or peer == host:
            return host, port
        found = self._read_routes()
        return (host, port) if found is None or found.is_neighbor(address) else published
