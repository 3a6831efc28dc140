"""Where the other brokers listen for brokers."""

from __future__ import annotations

from kafka_compat.coordination.nodes import znodes
from kafka_compat.coordination.nodes.malformed_nodes import MalformedNode
from kafka_compat.coordination.store.metadata_store import MetadataStore, MetadataStoreError
from kafka_compat.metadata.cache import MetadataCache

Address = tuple[str, int]


class BrokerAddresses:
    """What the metadata, the controller's requests and the registrations say."""

    def __init__(self, metadata: MetadataCache, store: MetadataStore, listener: str) -> None:
        """`listener` is the name of the one that brokers use among themselves."""
        self._metadata = metadata
        self._store = store
        self._listener = listener
        self.leaders: dict[int, Address] = {}
        """Addresses of leaders that a LeaderAndIsr named, perhaps before the metadata did."""

    def known(self, broker_id: int) -> Address | None:
        """The address of a broker that the metadata has."""
        broker = self._metadata.brokers.get(broker_id)
        return broker.endpoints.get(self._listener) if broker is not None else None

    def of_leader(self, broker_id: int) -> Address | None:
        """Where to fetch from."""
        return self.known(broker_id) or self.leaders.get(broker_id)

    async def of_controller(self, broker_id: int) -> Address | None:
        """Where the controller is; before the first metadata its registration says it."""
        known = self.known(broker_id)
        if known is not None:
            return known
        try:
            data, _ = await self._store.get(znodes.broker_path(broker_id))
            endpoint = znodes.decode_broker(broker_id, data).endpoint(self._listener)
        except (MetadataStoreError, MalformedNode):
            return None
        return (endpoint.host, endpoint.port) if endpoint is not None else None
