"""Connections to other brokers, for occasional requests."""

from collections.abc import Callable

from kafka_compat.cluster.broker_client import BrokerClient
from kafka_compat.security.broker_security import NONE, BrokerSecurity
from kafka_compat.tasks import Tasks, Work

AddressOf = Callable[[int], tuple[str, int] | None]


class Peers:
    """Connections, one to each other broker. A connection is replaced when its broker's address changes."""

    def __init__(
        self, address_of: AddressOf, client_id: str, request_timeout_ms: int, security: BrokerSecurity = NONE
    ) -> None:
        self._address_of = address_of
        self._client_id = client_id
        self._request_timeout_ms = request_timeout_ms
        self._security = security
        self._clients: dict[int, BrokerClient] = {}
        self._tasks = Tasks()

    def client(self, broker_id: int) -> BrokerClient:
        """Return the client for a broker. Raises ConnectionError if the broker is unknown."""
        address = self._address_of(broker_id)
        if address is None:
            raise ConnectionError(f"broker {broker_id} is not available")
        client = self._clients.get(broker_id)
        if client is None or (client.host, client.port) != address:
            if client is not None:
                self.run(f"closing the connection to broker {broker_id}", client.close)
            client = self._clients[broker_id] = BrokerClient(
                *address,
                self._client_id,
                request_timeout_ms=self._request_timeout_ms,
                security=self._security,
            )
        return client

    def run(self, name: str, work: Work) -> None:
        """Run `work` in the background until `close` cancels it."""
        if not self._tasks.closed:
            self._tasks.spawn(name, work)

    async def close(self) -> None:
        """Close the connections. Pending requests fail."""
        await self._tasks.close()
        for client in self._clients.values():
            await client.close()
        self._clients = {}
