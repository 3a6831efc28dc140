"""Connections to the other brokers by their ids, for requests that are sent one at a time."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

from kafka_compat.cluster.broker_client import BrokerClient

AddressOf = Callable[[int], tuple[str, int] | None]


class Peers:
    """One connection to each broker that was asked something; where a broker has moved, a new one."""

    def __init__(self, address_of: AddressOf, client_id: str, request_timeout_ms: int) -> None:
        self._address_of = address_of
        self._client_id = client_id
        self._request_timeout_ms = request_timeout_ms
        self._clients: dict[int, BrokerClient] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    def client(self, broker_id: int) -> BrokerClient:
        """Raises ConnectionError for a broker that nobody knows."""
        address = self._address_of(broker_id)
        if address is None:
            raise ConnectionError(f"broker {broker_id} is not there")
        client = self._clients.get(broker_id)
        if client is None or (client.host, client.port) != address:
            if client is not None:
                self.run(client.close())
            client = self._clients[broker_id] = BrokerClient(
                *address, self._client_id, request_timeout_ms=self._request_timeout_ms
            )
        return client

    def run(self, work: Coroutine[Any, Any, None]) -> None:
        """Do this in the background, until `close`."""
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def close(self) -> None:
        """Close the connections; requests under way are given up."""
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        for client in self._clients.values():
            await client.close()
        self._clients = {}
